#include "tools/merge/merge.h"

#include "framework/events/file.h"
#include "framework/events/writer.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/command_line/command_line.h"
#include "tools/profile/own_view.h"
#include "tools/profile/profile_files.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace assay {
namespace {

events::Header header_of(const Profile& profile) {
    events::Header header;
    header.descriptions = profile.heads().common_descriptions();
    header.command = join(profile.commands(), "; ");
    header.events = profile.events();
    header.derived = profile.derived();
    header.objects = profile.objects();
    header.incomplete = join(profile.incomplete(), "; ");
    header.series = profile.series();
    return header;
}

// Writes rows of a profile whose counts are packed.
class MergedFile {
  public:
    MergedFile(const Profile& profile, events::Writer& writer)
        : profile_(profile),
          groups_(profile.groups()),
          writer_(writer),
          counts_(profile.events().size()) {}

    void write() {
        const std::span<const Profile::Site> sites = profile_.sites();
        for (std::uint32_t i = 1; i < sites.size(); ++i)
            writer_.site({i, sites[i].parent, sites[i].line, profile_.text(sites[i].file),
                          profile_.text(sites[i].function)});
        write_groups();
        for (const auto& [function, name] : profile_.linkage_names())
            writer_.linkage(function, name);
        for (const Profile::Function& function : profile_.functions())
            if (const std::optional<std::uint32_t> object = profile_.binary_of(function.name))
                writer_.binary(profile_.text(function.name), *object);
        for (std::uint32_t place = 0; place < profile_.places().size(); ++place) write_place(place);
        const std::span<const Profile::Context> contexts = profile_.contexts();
        for (std::uint32_t i = 1; i < contexts.size(); ++i)
            writer_.stack(
                {i, contexts[i].parent, contexts[i].kind, contexts[i].object, contexts[i].address,
                 contexts[i].line, profile_.text(contexts[i].function)},
                read(contexts[i].row));
        if (profile_.counts_calls()) write_calls();
    }

  private:
    // File, function and line.
    using Line = std::tuple<std::string_view, std::string_view, std::uint32_t>;
    struct Part {
        std::uint32_t group;  // number of the group in the file
        std::vector<std::uint64_t> counts;
    };

    void write_calls() {
        std::vector<std::uint64_t> numbers;
        for (const Profile::Context& context : profile_.contexts().subspan(1))
            numbers.push_back(context.calls);
        writer_.calls(numbers);
        for (const auto& [at, number] : profile_.recursions())
            writer_.recursion({at.context, at.caller, at.object, at.address, at.line}, number);
    }

    void write_groups() {
        if (groups_.groups().empty()) return;
        const std::map<std::string, std::uint32_t> contexts = contexts_by_calls();
        for (std::uint32_t i = 0; i < groups_.groups().size(); ++i) {
            const Groups::Group& group = groups_.groups()[i];
            events::Group written{i + 1,
                                  group.parent == Groups::kNone ? 0 : group.parent + 1,
                                  group.kind,
                                  group.name,
                                  {}};
            for (const auto& [key, value] : group.attributes) {
                if (key == "binary") continue;
                if (key == "stack") {
                    const auto context = contexts.find(join(group.callers, "\n"));
                    if (context != contexts.end())
                        written.attributes.emplace_back(key, std::to_string(context->second));
                    continue;
                }
                written.attributes.emplace_back(key, value);
            }
            if (const auto binary = index_of(group.binary))
                written.attributes.emplace_back("binary", std::to_string(*binary));
            writer_.group(written);
            for (Groups::Line& line : groups_.lines(i))
                parts_[{groups_.text(line.file), groups_.text(line.function), line.line}].push_back(
                    {i + 1, std::move(line.counts)});
        }
    }

    std::optional<std::size_t> index_of(std::string_view binary) const {
        const std::vector<events::Object>& objects = profile_.objects();
        for (std::size_t i = 0; i < objects.size(); ++i)
            if (!binary.empty() && objects[i].path == binary) return i;
        return std::nullopt;
    }

    // Contexts by the names of their functions, in the form of Groups::Group::callers. Only the
    // first context of each such text.
    std::map<std::string, std::uint32_t> contexts_by_calls() const {
        std::map<std::string, std::uint32_t> found;
        const std::span<const Profile::Context> contexts = profile_.contexts();
        for (std::uint32_t i = 1; i < contexts.size(); ++i) {
            std::vector<std::string> callers;
            for (std::uint32_t at = i; at != 0 && callers.size() < Groups::kMostCallers;
                 at = contexts[at].parent)
                callers.emplace_back(profile_.text(contexts[at].function));
            found.try_emplace(join(callers, "\n"), i);
        }
        return found;
    }

    void write_parts(const Profile::Place& at, std::uint32_t line) {
        const auto found = parts_.find({profile_.text(at.file), profile_.text(at.function), line});
        if (found == parts_.end()) return;
        for (const Part& part : found->second) writer_.counts_of(part.group, part.counts);
    }

    // Writes a line before its instructions and values. The line may have no counts if the file was
    // not written by a profiler.
    void write_place(std::uint32_t place) {
        const Profile::Place& at = profile_.places()[place];
        writer_.location(profile_.text(at.file), profile_.text(at.function));
        const auto lines = profile_.lines_by_site(place);
        const auto instructions = profile_.instructions(place);
        const auto values = profile_.values(place);
        auto line = lines.begin();
        auto instruction = instructions.begin();
        auto value = values.begin();
        while (line != lines.end() || instruction != instructions.end() || value != values.end()) {
            constexpr std::uint32_t kNone = ~std::uint32_t{0};
            const std::uint32_t number =
                std::min({line == lines.end() ? kNone : line->line,
                          instruction == instructions.end() ? kNone : instruction->line,
                          value == values.end() ? kNone : value->line});
            if (line == lines.end() || line->line != number) {
                std::fill(counts_.begin(), counts_.end(), 0);
                writer_.line(number, counts_);
            }
            for (; line != lines.end() && line->line == number; ++line)
                writer_.line(number, read(line->row), line->site);
            for (; instruction != instructions.end() && instruction->line == number; ++instruction)
                writer_.instruction(instruction->object, instruction->address,
                                    read(instruction->row), instruction->site);
            for (; value != values.end() && value->line == number; ++value)
                writer_.values(value->object, value->address, value->list);
            write_parts(at, number);
        }
    }

    Counts read(CountStore::Row row) {
        profile_.counts().read(row, counts_);
        return counts_;
    }

    const Profile& profile_;
    const Groups& groups_;
    std::map<Line, std::vector<Part>> parts_;
    events::Writer& writer_;
    std::vector<std::uint64_t> counts_;
};

}  // namespace

void write_events_file(const Profile& profile, const std::string& path) {
    events::Writer writer(path, header_of(profile));
    MergedFile(profile, writer).write();
    writer.finish();
}

namespace {

struct Arguments {
    std::vector<std::string> files;
    std::string out = "-";
    std::vector<std::string> addresses;
    std::string addresses_out;
    std::string by;
    OwnOptions own;
    bool one_run = false;
};

constexpr const char* kPurpose =
    "Adds up events files of assay, Cachegrind or Callgrind: by line, by instruction,\n"
    "by calling context, and lists of values. The result is an events file. A file\n"
    "that is named twice counts twice. The index of a run stands for its files.\n\n"
    "  assay merge -o OUT FILE...\n\n"
    "Files of block vectors of bbv or exp-bbv are joined: the intervals of each file\n"
    "follow those of the file before it. Blocks are the same if they have the same\n"
    "address and function in their --pc-file or, with --one-run, the same number.\n";

constexpr const char* kExamples =
    "Examples:\n\n"
    "  assay merge -o all.out assay.out.*      processes of one run, or several runs\n"
    "  assay merge -o all.out.zst assay.out.*  compressed, as .gz is\n"
    "  assay merge -o all.out --by=rank assay.out.rank*   of a run under mpirun\n"
    "  assay merge --only-own -o own.out assay.out.1234   own code, for any command\n\n"
    "  assay merge --one-run -o all.bb bb.out bb.out.2                two threads\n"
    "  assay merge -o all.bb --pc-file=1.pc --pc-file=2.pc 1.bb 2.bb  two runs\n\n"
    "Exit status: 0, or 125 if something could not be read or written, or if the\n"
    "files do not have the same events.\n";

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay merge", kPurpose, kExamples);
    line.add_arguments("FILE", arguments.files);
    line.add_text("-o,--out", arguments.out, "FILE",
                  "write to FILE; .gz and .zst compress; default: standard output");
    line.add_text("--by", arguments.by, "KIND",
                  "keep counts apart by program, process or rank\n"
                  "annotate --by=KIND and report show them. Ranks are those of processes under "
                  "mpirun.");
    add_own(line, arguments.own);
    line.add_list(
        "--pc-file", arguments.addresses, "FILE",
        "read addresses of blocks, written by --pc-out-file of the run\n"
        "Give it once for each file of vectors, in their order. Blocks with the same address and "
        "function are the same.");
    line.add_text("--pc-out-file", arguments.addresses_out, "FILE",
                  "write the addresses of all blocks, by their new numbers");
    line.add_flag("--one-run", arguments.one_run,
                  "take the files for threads of one run, which have the same numbers of blocks");
}

// Options decide for pipes, whose beginning cannot be read twice.
bool have_block_vectors(const Arguments& arguments) {
    const std::string& first = arguments.files.front();
    if (events::can_be_read_again(first)) return begins_as_block_vectors(first);
    return arguments.one_run || !arguments.addresses.empty();
}

void check_block_vectors(const Arguments& arguments) {
    for (const std::string& file : arguments.files)
        if (events::can_be_read_again(file) && !begins_as_block_vectors(file))
            throw Error(fmt::format("{} has block vectors and {} does not; merge them separately",
                                    arguments.files.front(), file));
    if (arguments.one_run != arguments.addresses.empty())
        throw Error(
            "block vectors: name a --pc-file for each file, or give --one-run if the files are the "
            "threads of one run; other runs number blocks differently");
    if (!arguments.one_run && arguments.addresses.size() != arguments.files.size())
        throw Error(fmt::format("--pc-file: {} for {} files of block vectors; name one for each",
                                arguments.addresses.size(), arguments.files.size()));
    if (arguments.one_run && !arguments.addresses_out.empty())
        throw Error("--pc-out-file: with --one-run, the addresses are those of the run");
}

void check_events_files(const Arguments& arguments) {
    if (arguments.one_run || !arguments.addresses.empty() || !arguments.addresses_out.empty())
        throw Error(fmt::format(
            "--pc-file, --pc-out-file and --one-run are for block vectors; {} is an events file",
            arguments.files.front()));
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
    const bool by_file = !arguments.by.empty();
    if (arguments.own.wanted()) {
        if (by_file) throw Error("--only-own leaves all groups out: leave out --by");
        write_own_view(files.paths, OwnCode(arguments.own.paths), arguments.out);
        return 0;
    }
    Profile profile(parts::kRows | parts::kGroups);
    profile.choose_events({});  // those of the files, without estimates
    FileGroups groups(profile, files,
                      by_file ? std::vector{arguments.by} : std::vector<std::string>(), true);
    groups.add_files();
    profile.finish();
    if (profile.series_left_out() != 0)
        log::remark(fmt::format(
            "{} series are left out: an events file has at most {}; merge fewer files to keep them",
            profile.series_left_out(), events::kMostSeries));
    if (const std::string builds = profile.heads().mixed_builds(); !builds.empty())
        log::remark(builds + "; assay diff compares builds");
    if (!profile.calls().empty())
        log::remark(
            "Callgrind's calls are left out: an events file has calls only in calling contexts; "
            "use annotate --calls on Callgrind's files");
    if (by_file) groups.check_any();
    write_events_file(profile, arguments.out);
    return 0;
}

}  // namespace assay
