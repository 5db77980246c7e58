#include "tools/report/report.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/block_vectors/simulation_points.h"
#include "tools/command_line/command_line.h"
#include "tools/output/formats.h"
#include "tools/profile/profile_files.h"
#include "tools/report/data.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <filesystem>

namespace assay {

namespace report {

namespace {

constexpr const char* kDescription =
    "Writes events files as one page of HTML, which needs no other files and can be\n"
    "sent to others.\n\n"
    "  assay report [options] [FILE...]\n"
    "  assay report --diff [options] OLD NEW\n";

constexpr const char* kFooter =
    "Examples:\n"
    "  assay report assay.out.1234                      then open report.html\n"
    "  assay report --diff -o diff.html before.out after.out\n"
    "  assay report --block-vectors=bb.out assay.out.7  with phases of assay simpoint\n"
    "\nExit status: 0, or 125 if something could not be read or written.\n";

// Options as given, before their texts are parsed.
struct Arguments {
    Options options;
    std::vector<std::string> old_moved;
    bool difference = false, quiet = false;
    std::string names = "short";
};

void add_options(CommandLine& line, Arguments& arguments) {
    Options& options = arguments.options;
    line.describe("assay report", kDescription, kFooter);
    line.add_arguments("FILE", options.profiles, Need::kOptional);
    line.add_text("-o,--out", options.output, "FILE",
                  "write the page to FILE; default: report.html");
    line.add_flag("--diff", arguments.difference, "show how NEW differs from OLD");
    add_names(line, arguments.names);
    add_source_search(line, options.where);
    line.add_list(
        "--old-map", arguments.old_moved, "OLD=NEW",
        "with --diff, look in NEW for sources of the OLD profile that were compiled in folder OLD");
    line.add_text("--block-vectors", options.block_vectors, "FILE",
                  "show the phases of the run, from a file of the profiler bbv or of exp-bbv");
    line.add_text("--simpoints", options.simulation_points, "FILE",
                  "read the points of the phases, which assay simpoint or SimPoint has chosen; "
                  "default: .simpts beside the vectors, if it exists");
    line.add_text(
        "--weights", options.weights, "FILE",
        "read the weights of the points; default: .weights beside the vectors, if it exists");
    line.add_text(
        "--labels", options.labels, "FILE",
        "read the phase of each interval; default: .labels beside the vectors, if it exists");
    line.add_flag("-q,--quiet", arguments.quiet, "print errors only");
}

void check(const Arguments& arguments) {
    const Options& options = arguments.options;
    if (arguments.difference && options.profiles.size() != 2)
        throw Error(fmt::format("--diff compares two files, but {} are given: merge others first",
                                options.profiles.size()));
    if (!arguments.difference && !arguments.old_moved.empty())
        throw Error("--old-map is for the sources of OLD: give --diff OLD NEW");
    if (options.block_vectors.empty() && !options.simulation_points.empty())
        throw Error(
            "--simpoints needs the block vectors that SimPoint has read: name them with "
            "--block-vectors");
}

// Finds the files that assay simpoint writes beside the vectors.
void find_points(Options& options) {
    const SimulationPointFiles usual = simulation_point_files(options.block_vectors);
    const auto find = [&](std::string& path, const std::string& candidate) {
        if (path.empty() && std::filesystem::exists(candidate)) path = candidate;
    };
    if (options.block_vectors.empty() || !options.simulation_points.empty()) return;
    find(options.simulation_points, usual.points);
    if (options.simulation_points.empty()) return;
    find(options.weights, usual.weights);
    find(options.labels, usual.labels);
}

std::optional<Options> parse_options(int argc, const char* const* argv) {
    std::optional<Arguments> parsed = parse_arguments(add_options, argc, argv);
    if (!parsed) return std::nullopt;
    Arguments& arguments = *parsed;
    log::set_quiet(arguments.quiet);
    if (arguments.options.profiles.empty() && !arguments.difference)
        arguments.options.profiles.push_back(newest_profile());
    check(arguments);
    Options& options = arguments.options;
    options.names = name_style(arguments.names);
    options.old_where = options.where;
    if (!arguments.old_moved.empty())
        options.old_where.moved = parse_moved("--old-map", arguments.old_moved);
    find_points(options);
    if (options.simulation_points.empty() && !(options.weights.empty() && options.labels.empty()))
        throw Error("--weights and --labels need their points: name them with --simpoints");
    if (arguments.difference) {
        options.old_profile = options.profiles.front();
        options.profiles.erase(options.profiles.begin());
    }
    return options;
}

// Encodes base 64 (RFC 4648) piece by piece.
class Base64 {
  public:
    explicit Base64(Sink& sink) : sink_(sink) {}

    void write(std::string_view bytes) {
        for (const char byte : bytes) {
            bits_ = bits_ << 8 | static_cast<unsigned char>(byte);
            if (++count_ == 3) write_group();
        }
    }
    void finish() {
        const unsigned missing = (3 - count_) % 3;
        for (unsigned i = 0; i < missing; ++i) {
            bits_ <<= 8;
            ++count_;
        }
        if (count_ == 3) write_group(missing);
    }

  private:
    void write_group(unsigned missing = 0) {
        constexpr std::string_view kDigits =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        std::array<char, 4> group{};
        for (unsigned i = 0; i < 4; ++i) group[i] = kDigits[bits_ >> (18 - 6 * i) & 63];
        for (unsigned i = 0; i < missing; ++i) group[3 - i] = '=';
        sink_.write({group.data(), group.size()});
        bits_ = count_ = 0;
    }

    Sink& sink_;
    unsigned bits_ = 0, count_ = 0;
};

std::string compressed_data(const Content& content, const Options& options) {
    std::string bytes;
    Sink sink([&](std::string_view more) { bytes += more; }, Compress::kGzip);
    write_data(content, options, sink);
    sink.finish();
    return bytes;
}

// Lowers the limits of a page that is too large.
std::string data_that_fit(Content content, const Options& options) {
    constexpr int kMostTries = 8;
    constexpr std::size_t kRoom = (Limits::kMostPageBytes - 150'000) / 4 * 3;  // less scripts
    log::say_once_among_processes();  // each try has the same messages
    std::string data = compressed_data(content, options);
    for (int i = 1; i < kMostTries && data.size() > kRoom; ++i) {
        const double part = static_cast<double>(kRoom) / static_cast<double>(data.size());
        content.limits = content.limits.scaled(std::min(0.6, 0.9 * part));
        data = compressed_data(content, options);
    }
    return data;
}

// Data of a profile cannot inject HTML into the page: the title is escaped, and the data are
// compressed and in base 64.
void write_page(const Content& content, const Options& options, Sink& sink) {
    begin_page(html_text(printable(content.profile.commands().front())) + " - assay", kStyle, true,
               sink);
    sink.write(
        "<div id=\"app\"><p class=\"loading\">Unpacking the profile ...</p></div>\n"
        "<noscript>This page shows its profile by JavaScript.</noscript>\n"
        "<script type=\"application/octet-stream\" id=\"data\">");
    Base64 encoder(sink);
    encoder.write(data_that_fit(content, options));
    encoder.finish();
    sink.write("</script>\n<script>\n");
    for (const std::string_view piece : kScript) sink.write(piece);
    sink.write("</script>\n</body>\n</html>\n");
}

}  // namespace

std::vector<Option> options() {
    return options_of(add_options);
}

}  // namespace report

int report_main(int argc, char** argv) {
    using namespace report;
    const std::optional<Options> options = parse_options(argc, argv);
    if (!options) return 0;
    const bool difference = !options->old_profile.empty();
    const ProfileFiles files = profile_files(options->profiles);
    const bool has_groups = !difference;
    Profile profile(has_groups ? parts::kRows | parts::kGroups : parts::kRows), old(parts::kRows);
    constexpr std::size_t kMostWithLines = 64;  // more would take too much memory
    // An index also lists processes and programs.
    FileGroups(profile, files,
               has_groups && files.has_index ? std::vector<std::string>{"process", "program"}
                                             : std::vector<std::string>(),
               files.paths.size() <= kMostWithLines)
        .add_files();
    profile.finish();
    if (const std::string builds = profile.heads().mixed_builds(); !builds.empty())
        log::remark(builds);
    if (difference) {
        old.choose_events(events::choice_of(profile.events()));
        for (const std::string& path : profile_files({options->old_profile}).paths)
            old.add_file(path);
        old.finish();
        profile.check_same_events(old);
    }
    const Groups& groups = profile.groups();
    Content content{profile,
                    difference ? &old : nullptr,
                    has_groups && (files.has_index || !groups.groups().empty()) ? &groups : nullptr,
                    std::nullopt,
                    {}};
    if (!options->block_vectors.empty())
        content.phases = read_phases(options->block_vectors, options->simulation_points,
                                     options->weights, options->labels);
    Sink sink(options->output);
    write_page(content, *options, sink);
    sink.finish();
    return 0;
}

}  // namespace assay
