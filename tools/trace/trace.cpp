#include "tools/trace/trace.h"

#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "framework/symbols/image_cache.h"
#include "framework/symbols/symbolizer.h"
#include "tools/trace/check.h"
#include "tools/trace/import.h"
#include "tools/trace/listing.h"

#include <fmt/core.h>
#include <unistd.h>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

namespace assay::tracing {

namespace {

// The options as texts, before they are parsed.
struct Arguments {
    Options plain;  // options that need no parsing
    std::string format = "text", import;
    std::string pid, image, thread, from, to, function, address;
    std::vector<std::string> kinds;
};

constexpr const char* kPurpose =
    "Shows the content of a trace of assay record: blocks and references, in the\n"
    "order of the program. On a terminal, without any filter, shows the summary.\n\n"
    "  assay trace [options] TRACE\n"
    "  assay trace --import=FORMAT FILE -o TRACE\n";

struct Kind {
    std::string_view name;
    const char* shown;
    std::uint32_t kinds;
};

constexpr const char* kFormatNames = "text|csv|json|trace|champsim|din|lackey|memref";

Format format_named(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, Format>, 8> kFormats{
        {{"csv", Format::kCsv},
         {"json", Format::kJson},
         {"trace", Format::kTrace},
         {"champsim", Format::kChampsim},
         {"din", Format::kDin},
         {"drmemtrace", Format::kDrmemtrace},
         {"lackey", Format::kLackey},
         {"memref", Format::kMemref}}};
    for (const auto& [each, format] : kFormats)
        if (each == name) return format;
    return Format::kText;
}

constexpr std::uint32_t bit(unsigned kind) {
    return std::uint32_t{1} << kind;
}

constexpr std::array kKinds = {
    Kind{"block", "block", bit(TRACE_SITE_BLOCK)},
    Kind{"read", "read", bit(TRACE_SITE_READ)},
    Kind{"write", "write", bit(TRACE_SITE_WRITE)},
    Kind{"modify", "modify", bit(TRACE_SITE_MODIFY)},
    Kind{"call", "call", bit(TRACE_SITE_CALL)},
    Kind{"return", "return", bit(TRACE_SITE_RETURN)},
    Kind{"signal", "signal", bit(TRACE_SITE_SIGNAL)},
    Kind{"syscall", "syscall", bit(TRACE_SITE_SYSTEM_CALL)},
    Kind{"result", "result", bit(TRACE_SITE_SYSTEM_CALL_RESULT)},
    Kind{"burst", "burst", bit(TRACE_SITE_BURST)},
    Kind{"value", "value", bit(TRACE_SITE_VALUE) | bit(TRACE_SITE_VALUE_REST)},
};
constexpr std::uint32_t kDefaultKinds = bit(TRACE_SITE_BLOCK) | bit(TRACE_SITE_READ) |
                                        bit(TRACE_SITE_WRITE) | bit(TRACE_SITE_MODIFY) |
                                        bit(TRACE_SITE_BURST);

void add_filters(CommandLine& line, Arguments& arguments) {
    line.add_text("--pid", arguments.pid, "N", "show only this process");
    line.add_text("--image", arguments.image, "N",
                  "show only the N-th program that a process has become by execve, from 1");
    line.add_text("--thread", arguments.thread, "N",
                  "show only this thread; 1 is the first of each process");
    line.add_text("--from-instruction", arguments.from, "N",
                  "start at the N-th instruction of each thread; the first is 1");
    line.add_text("--to-instruction", arguments.to, "N",
                  "stop after the N-th instruction of each thread");
    line.add_text("--function", arguments.function, "REGEX",
                  "show only records of functions whose name contains a match");
    line.add_text(
        "--address", arguments.address, "LOW-HIGH",
        "show only references to these addresses, in hexadecimal; both ends are included");
    line.add_list(
        "--kind", arguments.kinds, "A,B,...",
        "show only these records: block, read, write, modify, burst (its begin, end or end of "
        "its warm-up), call, return, signal, syscall, result (of a system call), value (of "
        "operands), all; default: the first five");
}

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay trace", kPurpose,
                  "Exit status: 0, or 125 if something could not be read or written, or if the\n"
                  "trace is damaged.\n");
    line.add_argument("TRACE", arguments.plain.file);
    line.add_flag("--summary", arguments.plain.summary,
                  "show the threads, instructions, references and bytes of each process");
    line.add_flag("--check", arguments.plain.check,
                  "check that a program can have made the trace: control flow, references, "
                  "threads, events and counts; show the first violation of each kind");
    line.add_flag("--instructions", arguments.plain.instructions,
                  "show each executed instruction, disassembled, instead of each block");
    line.add_choice("--format", arguments.format, kFormatNames,
                    "write a line for each record, a smaller trace for replays, or a trace for "
                    "other programs; default: text");
    line.add_text("-o,--out", arguments.plain.output, "FILE",
                  "write to FILE; .gz and .zst compress; default: standard output");
    add_filters(line, arguments);
    line.add_choice("--import", arguments.import, "champsim|din|drmemtrace|lackey",
                    "convert a trace of another program to FILE of -o");
    line.add_number(
        "--reference-bytes", arguments.plain.reference_bytes, 1, 4096, "N",
        "with --import, take N bytes per reference in formats that do not contain sizes; "
        "default: 1");
}

template <typename Number>
Number number(std::string_view option, std::string_view text, int base, std::uint64_t least,
              std::uint64_t most = std::numeric_limits<Number>::max()) {
    Number value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, base);
    if (error != std::errc() || stop != end || value < least || value > most)
        throw Error(fmt::format("{}={}: not a {}number from {} to {}", option, text,
                                base == 16 ? "hexadecimal " : "", least, most));
    return value;
}

std::uint64_t address(std::string_view text) {
    if (text.starts_with("0x")) text.remove_prefix(2);
    return number<std::uint64_t>("--address", text, 16, 0);
}

std::pair<std::uint64_t, std::uint64_t> addresses(const std::string& text) {
    const std::size_t dash = text.find('-');
    if (dash == std::string::npos)
        throw Error(
            fmt::format("--address={}: not LOW-HIGH, such as 7f0000001000-7f0000001fff", text));
    const std::pair found{address(std::string_view(text).substr(0, dash)),
                          address(std::string_view(text).substr(dash + 1))};
    if (found.first > found.second)
        throw Error(fmt::format("--address={}: the first address is higher than the second", text));
    return found;
}

std::uint32_t kinds(const std::vector<std::string>& words) {
    std::uint32_t found = 0;
    std::vector<std::string> names{"all"};
    for (const Kind& kind : kKinds) names.emplace_back(kind.name);
    for (const std::string& word : words) {
        std::uint32_t meant = 0;
        for (const Kind& kind : kKinds)
            if (word == kind.name || word == "all") meant |= kind.kinds;
        const std::string near = nearest(word, names);
        if (meant == 0)
            throw Error(fmt::format("--kind={}: unknown kind; give one of {}{}", word,
                                    join(names, ", "),
                                    near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
        found |= meant;
    }
    return found;
}

void take_region(Options& options, const Arguments& arguments) {
    if (!arguments.thread.empty())
        options.region.thread = number<std::uint32_t>("--thread", arguments.thread, 10, 1) - 1;
    if (!arguments.from.empty())
        options.region.from = number<std::uint64_t>("--from-instruction", arguments.from, 10, 1);
    if (!arguments.to.empty())
        options.region.to = number<std::uint64_t>("--to-instruction", arguments.to, 10, 1);
    if (options.region.from > options.region.to)
        throw Error(fmt::format("--from-instruction={} is after --to-instruction={}",
                                options.region.from, options.region.to));
}

// Programs that read other formats expect every executed instruction. A smaller trace has whole
// blocks.
void check_export(const Options& options, const Arguments& arguments) {
    const bool is_cut = options.format == Format::kTrace;
    if (!is_export(options.format) && !is_cut) return;
    if (is_cut && options.output.empty())
        throw Error("--format=trace writes a trace: name its file with -o");
    const std::pair<std::string_view, bool> refused[] = {
        {"--summary", options.summary},
        {"--instructions", options.instructions},
        {"--function", options.function.has_value() && !is_cut},
        {"--address", options.addresses.has_value()},
        {"--kind", !arguments.kinds.empty()}};
    for (const auto& [option, given] : refused)
        if (given)
            throw Error(fmt::format("{} is for text, csv and json; --format={} always has {}",
                                    option, arguments.format,
                                    is_cut ? "whole blocks" : "every instruction of a thread"));
}

void check_check(const Options& options) {
    const bool is_alone = options.kinds == kDefaultKinds && options.region.is_all() &&
                          options.format == Format::kText && options.output.empty() &&
                          !options.function && !options.addresses && !options.summary &&
                          !options.instructions && !options.import;
    if (!is_alone)
        throw Error("--check reads whole programs: besides it give only --pid or --image");
}

void check_import(const Options& options) {
    if (options.output.empty()) throw Error("--import writes a trace: name its file with -o");
    if (!options.nothing_asked || options.summary)
        throw Error(
            "--import converts a whole file; leave out filters and formats, or use them when you "
            "show the trace");
}

}  // namespace

const char* kind_name(unsigned kind) {
    for (const Kind& each : kKinds)
        if (each.kinds == bit(kind)) return each.shown;
    return "";
}

std::vector<Option> options() {
    return options_of(add_options);
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
    std::optional<Arguments> parsed = parse_arguments(add_options, argc, argv);
    if (!parsed) return std::nullopt;
    const Arguments& arguments = *parsed;
    Options options = std::move(parsed->plain);
    options.format = format_named(arguments.format);
    if (options.output == "-") options.output.clear();
    if (!arguments.pid.empty()) options.pid = number<std::uint32_t>("--pid", arguments.pid, 10, 0);
    if (!arguments.image.empty())
        options.image = number<std::uint32_t>("--image", arguments.image, 10, 1);
    take_region(options, arguments);
    if (!arguments.function.empty()) options.function = Pattern("--function", arguments.function);
    if (!arguments.address.empty()) options.addresses = addresses(arguments.address);
    options.kinds = arguments.kinds.empty() ? kDefaultKinds : kinds(arguments.kinds);
    check_export(options, arguments);
    if (options.check) check_check(options);
    options.nothing_asked = arguments.format == "text" && arguments.kinds.empty() &&
                            arguments.function.empty() && arguments.address.empty() &&
                            arguments.pid.empty() && arguments.image.empty() &&
                            options.region.is_all() && !options.instructions;
    if (!arguments.import.empty()) {
        options.import = format_named(arguments.import);
        check_import(options);
    }
    return options;
}

}  // namespace assay::tracing

namespace assay::tracing {
namespace {

std::vector<recording::RecordedImage> selected_images(const recording::TraceFileReader& file,
                                                      const Options& options) {
    std::vector<recording::RecordedImage> selected;
    for (const recording::RecordedImage& image : file.images())
        if ((!options.pid || image.pid == *options.pid) &&
            (!options.image || image.number == *options.image))
            selected.push_back(image);
    if (!selected.empty()) return selected;
    if (file.images().empty()) throw Error(fmt::format("{} has no process", file.path()));
    throw Error(fmt::format("{} has no such process; assay trace --summary {} lists all processes",
                            file.path(), file.path()));
}

// A damaged trace is shown up to the damage, and gives the exit status of a failure.
int tell_of(const std::set<std::string>& problems) {
    for (const std::string& problem : problems) log::problem(problem);
    return problems.empty() ? 0 : kExitFailure;
}

int summarize(const Options& options, const recording::TraceFileReader& file) {
    Sink sink(options.output);
    write_summary_head(options, sink);
    std::set<std::string> problems;
    for (const recording::RecordedImage& image : selected_images(file, options)) {
        try {
            write_summary(options, replay::ImageTrace(file, image), image, sink);
        } catch (const Error& error) {
            problems.insert(error.what());
        }
    }
    sink.finish();
    if (!file.damage().empty()) problems.insert(file.damage());
    return tell_of(problems);
}

int check(const Options& options, const recording::TraceFileReader& file) {
    std::set<std::string> problems;
    Checked all;
    for (const recording::RecordedImage& recorded : selected_images(file, options)) {
        try {
            const replay::ImageTrace image(file, recorded);
            for (const std::string& problem : check_image(options, image, recorded, all))
                problems.insert(problem);
        } catch (const Error& error) {
            problems.insert(error.what());
        }
    }
    if (!file.damage().empty()) problems.insert(file.damage());
    if (problems.empty()) fmt::print("{} is consistent: {}\n", file.path(), description(all));
    return tell_of(problems);
}

int list(const Options& options, const recording::TraceFileReader& file) {
    const std::vector<recording::RecordedImage> images = selected_images(file, options);
    symbols::Symbolizer symbolizer(symbols::kDebugRoot, symbols::ImageCache::folder_of_user());
    Sink sink(options.output);
    Listing listing(options, sink);
    std::set<std::string> problems, said;
    for (const recording::RecordedImage& recorded : images) {
        try {
            const replay::ImageTrace image(file, recorded);
            const Places places(image, symbolizer);
            for (const std::string& remark : places.problems())
                if (said.insert(remark).second) log::remark(remark);
            const std::string missing = listing.write(image, places, images.size() > 1);
            for (const std::string& problem : {image.problem(), missing})
                if (!problem.empty()) problems.insert(problem);
        } catch (const Error& error) {
            problems.insert(error.what());
        }
    }
    sink.finish();
    return tell_of(problems);
}

// A trace with a part of the records.
int cut(const Options& options, const recording::TraceFileReader& file) {
    const std::vector<recording::RecordedImage> images = selected_images(file, options);
    std::error_code ignored;
    if (std::filesystem::equivalent(options.file, options.output, ignored))
        throw Error(
            fmt::format("-o {}: this is the trace itself; choose another name", options.output));
    symbols::Symbolizer symbolizer(symbols::kDebugRoot, symbols::ImageCache::folder_of_user());
    recording::TraceFileWriter writer(options.output);
    std::set<std::string> problems;
    std::uint64_t instructions = 0;
    for (const recording::RecordedImage& recorded : images) {
        const replay::ImageTrace image(file, recorded);
        std::vector<bool> functions;
        if (options.function)
            functions = in_functions(options.function, image, Places(image, symbolizer));
        problems.insert(
            cut_image(image, options.region, std::move(functions), writer, instructions));
        problems.insert(image.problem());
    }
    problems.erase("");
    if (instructions == 0) {
        problems.insert("no instruction of the trace is in that part");
        if (std::filesystem::is_regular_file(options.output, ignored))
            std::filesystem::remove(options.output, ignored);
    }
    return tell_of(problems);
}

// Other formats contain one process and, except memref, one thread: the first ones, unless the user
// chooses others.
int convert(const Options& options, const recording::TraceFileReader& file) {
    if (options.format == Format::kChampsim && options.output.empty() && isatty(STDOUT_FILENO) != 0)
        throw Error("--format=champsim is not for terminals: name a file with -o");
    const std::vector<recording::RecordedImage> images = selected_images(file, options);
    const replay::ImageTrace image(file, images.front());
    if (const std::string lacks =
            recording::missing_records(TRACE_RECORDED_REFERENCES, image.content());
        !lacks.empty())
        throw Error(fmt::format("{} does not have {}", file.path(), lacks));
    if (options.format == Format::kChampsim && image.emulated() != nullptr &&
        image.emulated()->elf != isa::kX86)
        throw Error(fmt::format(
            "--format=champsim: process {} of {} is an {} program, but ChampSim's traces have "
            "registers of x86-64; choose another format",
            image.pid(), file.path(), image.emulated()->name));
    Region region = options.region;
    if (options.format != Format::kMemref && !region.thread) region.thread = 0;
    std::set<std::uint32_t> threads;
    for (const recording::ChunkPlace& chunk : images.front().chunks)
        if (chunk.header.kind == TRACE_CHUNK_RECORDS) threads.insert(chunk.header.thread);
    if (region.thread && !threads.contains(*region.thread))
        throw Error(fmt::format("{} has no thread {} of process {}", file.path(),
                                *region.thread + 1, image.pid()));
    const bool chosen = !region.thread || options.region.thread || threads.size() == 1;
    if (images.size() > 1 || !chosen)
        log::remark(fmt::format(
            "shown is process {}, image {}{}; choose others with --pid, --image and --thread",
            image.pid(), image.number(),
            region.thread ? fmt::format(", thread {}", *region.thread + 1) : ""));
    Sink sink(options.output);
    const std::string missing = export_image(options.format, image, region, sink);
    sink.finish();
    std::set<std::string> problems{image.problem(), missing};
    problems.erase("");
    return tell_of(problems);
}

int run(const Options& options) {
    if (options.import) {
        import_trace({*options.import, options.file, options.output, options.reference_bytes});
        return 0;
    }
    const recording::TraceFileReader file(options.file);
    if (options.check) return check(options, file);
    if (options.format == Format::kTrace) return cut(options, file);
    if (is_export(options.format)) return convert(options, file);
    const bool glance = options.nothing_asked && options.output.empty() && isatty(STDOUT_FILENO);
    return options.summary || glance ? summarize(options, file) : list(options, file);
}

}  // namespace
}  // namespace assay::tracing

namespace assay {

int trace_main(int argc, char** argv) {
    const std::optional<tracing::Options> options = tracing::parse_options(argc, argv);
    return options ? tracing::run(*options) : 0;
}

}  // namespace assay
