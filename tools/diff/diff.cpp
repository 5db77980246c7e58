#include "tools/diff/diff.h"

#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/diff/programs.h"
#include "tools/diff/writers.h"

#include <fmt/core.h>

namespace assay::diff {
namespace {

void write(const Options& options, Programs& programs, Output& output) {
    const Comparison& first = *programs.all.front().comparison;
    switch (options.format) {
        case Format::kEventsFile:
            if (programs.are_many)
                throw Error("-o FILE takes the differences of two files, not of folders");
            return write_events_file(options, first);
        case Format::kText:
            if (programs.are_many)
                write_text(options, programs, output);
            else
                write_text(options, first, output);
            return output.finish();
        case Format::kJson:
        case Format::kMarkdown:
        case Format::kHtml:
            break;
    }
    Sink sink(options.out);
    if (options.format == Format::kHtml)
        write_html(options, programs, sink);
    else if (options.format == Format::kMarkdown)
        write_markdown(options, programs, sink);
    else if (programs.are_many)
        write_json(options, programs, sink);
    else
        write_json(options, first, sink);
    sink.finish();
}

void name_exceeded(const Programs& programs) {
    for (const Programs::Program& program : programs.all)
        for (const Verdict& verdict : program.comparison->verdicts())
            if (verdict.is_exceeded)
                log::problem(programs.are_many
                                 ? fmt::format("{}: {}", program.command, verdict_text(verdict))
                                 : verdict_text(verdict));
}

}  // namespace

bool diff(const Options& options, Output& output) {
    Programs programs = compare_programs(options);
    write(options, programs, output);
    name_exceeded(programs);
    return !programs.are_exceeded();
}

}  // namespace assay::diff

namespace assay {

int diff_main(int argc, char** argv) {
    // As those of diff(1) and cmp(1).
    constexpr int kExceeded = 1, kTrouble = 2;
    try {
        const std::optional<diff::Options> options = diff::parse_options(argc, argv);
        if (!options) return 0;
        Output output(stdout, options->pager ? Output::Paging::kIfLong : Output::Paging::kNever);
        return diff::diff(*options, output) ? 0 : kExceeded;
    } catch (const Error& error) {
        throw Error(error.what(), kTrouble);
    }
}

}  // namespace assay
