#include "tools/merge/merge.h"

#include "tools/merge/merged_file.h"

#include <CLI/CLI.hpp>
#include <string>

namespace assay {

namespace {

struct Arguments {
    std::vector<std::string> files;
    std::string out = "/dev/stdout";
};

constexpr const char* kPurpose =
    "Adds up events files, assay's, Cachegrind's or Callgrind's: by line, by instruction, by "
    "calling\n"
    "context, and lists of values. The result is an events file. A file named twice counts "
    "twice.\n\n"
    "  assay merge -o OUT FILE...\n";

constexpr const char* kExamples =
    "Examples:\n\n"
    "  assay merge -o all.out assay.out.*      the processes of one run, or several runs\n"
    "  assay merge -o all.out.zst assay.out.*  compressed, as .gz is\n\n"
    "Exit status: 0, or 125 if something could not be read or written, or if the files do not "
    "have\n"
    "the same events.\n";

void add_options(CLI::App& app, Arguments& arguments) {
    app.description(kPurpose);
    app.footer(kExamples);
    app.set_help_flag("-h,--help", "show this");
    app.add_option("FILE", arguments.files, "events files")->required();
    app.add_option("-o,--out", arguments.out, "where to write; default: standard output")
        ->type_name("FILE");
}

}  // namespace

std::vector<OptionDescription> merge_options() {
    Arguments arguments;
    CLI::App app("", "assay merge");
    add_options(app, arguments);
    return describe_options(app);
}

int merge_main(int argc, char** argv) {
    Arguments arguments;
    CLI::App app("", "assay merge");
    add_options(app, arguments);
    if (!parse_arguments(app, argc, argv)) return 0;
    WholeProfile profile;
    for (const std::string& file : arguments.files) profile.add_file(file);
    profile.finish();
    write_events_file(profile, arguments.out);
    return 0;
}

}  // namespace assay
