#include "tools/merge/merge.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "tools/command_line/command_line.h"
#include "tools/merge/block_vectors.h"
#include "tools/merge/merged_file.h"
#include "tools/profile/profile_files.h"

#include <fmt/core.h>
#include <algorithm>
#include <string>

namespace assay {

namespace {

struct Arguments {
    std::vector<std::string> files;
    std::string out = "-";
    std::vector<std::string> addresses;
    std::string addresses_out;
    std::string by;
    bool one_run = false;
};

constexpr const char* kPurpose =
    "Adds up events files, assay's, Cachegrind's or Callgrind's: by line, by\n"
    "instruction, by calling context, and lists of values. The result is an events\n"
    "file. A file named twice counts twice. The index of a run stands for its files.\n\n"
    "  assay merge -o OUT FILE...\n\n"
    "Files of block vectors, bbv's or exp-bbv's, become one: the intervals of each\n"
    "behind those of the file before it. Blocks are the same that have the same\n"
    "address and function, which their --pc-file has; or, with --one-run, the same\n"
    "number.\n";

constexpr const char* kExamples =
    "Examples:\n\n"
    "  assay merge -o all.out assay.out.*      processes of one run, or several runs\n"
    "  assay merge -o all.out.zst assay.out.*  compressed, as .gz is\n"
    "  assay merge -o all.out --by=rank assay.out.rank*   of a run under mpirun\n\n"
    "  assay merge --one-run -o all.bb bb.out bb.out.2                two threads\n"
    "  assay merge -o all.bb --pc-file=1.pc --pc-file=2.pc 1.bb 2.bb  two runs\n\n"
    "Exit status: 0, or 125 if something could not be read or written, or if the\n"
    "files do not have the same events.\n";

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay merge", kPurpose, kExamples);
    line.add_arguments("FILE", arguments.files);
    line.add_text("-o,--out", arguments.out, "FILE",
                  "where to write; .gz and .zst compress; default: standard output");
    line.add_text("--by", arguments.by, "KIND",
                  "keep what is whose: program, process or rank\n"
                  "For annotate --by=KIND of the result, and for report. The ranks are those of "
                  "processes under mpirun.");
    line.add_list(
        "--pc-file", arguments.addresses, "FILE",
        "addresses of blocks, from --pc-out-file of the run: once for each file of vectors, in "
        "their order\nBlocks that have the same address and function are the same.");
    line.add_text("--pc-out-file", arguments.addresses_out, "FILE",
                  "write the addresses of all blocks, by their new numbers");
    line.add_flag("--one-run", arguments.one_run,
                  "the files are of the threads of one run, which has one number for each block");
}

// Of a pipe, only the options tell.
bool have_block_vectors(const Arguments& arguments) {
    const std::string& first = arguments.files.front();
    if (events::can_be_read_again(first)) return begins_as_block_vectors(first);
    return arguments.one_run || !arguments.addresses.empty();
}

void check_block_vectors(const Arguments& arguments) {
    for (const std::string& file : arguments.files)
        if (events::can_be_read_again(file) && !begins_as_block_vectors(file))
            throw Error(fmt::format("{} has block vectors, {} has not; merge such files apart",
                                    arguments.files.front(), file));
    if (arguments.one_run != arguments.addresses.empty())
        throw Error(
            "block vectors: name a --pc-file for each file, or say --one-run if the files are of "
            "the threads of one run; other runs number blocks differently");
    if (!arguments.one_run && arguments.addresses.size() != arguments.files.size())
        throw Error(fmt::format("--pc-file: {} for {} files of block vectors; name one for each",
                                arguments.addresses.size(), arguments.files.size()));
    if (arguments.one_run && !arguments.addresses_out.empty())
        throw Error("--pc-out-file: with --one-run, the addresses are those of the run");
}

void check_events_files(const Arguments& arguments) {
    if (arguments.one_run || !arguments.addresses.empty() || !arguments.addresses_out.empty())
        throw Error(
            fmt::format("--pc-file, --pc-out-file and --one-run are for block vectors; {} "
                        "has none",
                        arguments.files.front()));
}

// Groups are read by themselves.
GroupProfile read_groups(const WholeProfile& profile, const ProfileFiles& files,
                         const std::string& by) {
    GroupProfile groups;
    if (!profile.has_groups() && by.empty()) return groups;
    FileGroups whole(groups, files, {by}, true);
    for (const std::string& file : files.paths) {
        if (!events::can_be_read_again(file))
            throw Error(
                fmt::format("{} has groups, and cannot be read twice: write it to a file first",
                            file == "-" ? "standard input" : file));
        if (by.empty())
            groups.add_file(file);
        else
            whole.add_file(file);
    }
    if (!by.empty()) whole.check_any();
    groups.finish();
    return groups;
}

}  // namespace

std::vector<Option> merge_options() {
    return options_of(add_options);
}

int merge_main(int argc, char** argv) {
    const std::optional<Arguments> parsed = parse_arguments(add_options, argc, argv);
    if (!parsed) return 0;
    const Arguments& arguments = *parsed;
    if (!arguments.by.empty() && !FileGroups::is_kind(arguments.by))
        throw Error(fmt::format("--by={}: give program, process or rank", arguments.by));
    if (have_block_vectors(arguments)) {
        if (!arguments.by.empty()) throw Error("--by is for events files, not block vectors");
        check_block_vectors(arguments);
        merge_block_vectors(
            {arguments.files, arguments.addresses, arguments.out, arguments.addresses_out});
        return 0;
    }
    check_events_files(arguments);
    const ProfileFiles files = profile_files(arguments.files);
    WholeProfile profile;
    for (const std::string& file : files.paths) profile.add_file(file);
    profile.finish();
    if (profile.series_left_out() != 0)
        log::remark(
            fmt::format("{} series are left out: an events file has at most {}; merge fewer "
                        "files for them",
                        profile.series_left_out(), events::kMostSeries));
    if (const std::string builds = profile.mixed_builds(); !builds.empty())
        log::remark(builds + "; assay diff compares builds");
    if (!profile.calls().empty())
        log::remark(
            "Callgrind's calls are left out: an events file has calls only in calling contexts; "
            "use annotate --calls on Callgrind's files");
    write_events_file(profile, read_groups(profile, files, arguments.by), arguments.out);
    return 0;
}

}  // namespace assay
