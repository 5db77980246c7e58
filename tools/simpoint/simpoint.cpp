#include "tools/simpoint/simpoint.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "tools/block_vectors/simulation_points.h"
#include "tools/command_line/command_line.h"
#include "tools/output/output.h"
#include "tools/simpoint/clustering.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <map>

namespace assay::simpoint {

namespace {

// A selection of xterm's 256 colours that differ clearly on dark and on light backgrounds.
constexpr std::array<unsigned, 12> kColors{33, 208, 34, 161, 99, 178, 37, 130, 205, 244, 70, 25};

// The most frequent phase, the earliest of equals.
std::uint32_t usual(std::span<const std::uint32_t> phases) {
    std::map<std::uint32_t, std::size_t> times;
    for (const std::uint32_t phase : phases) ++times[phase];
    std::uint32_t best = phases[0];
    for (const std::uint32_t phase : phases)
        if (times[phase] > times[best]) best = phase;
    return best;
}

}  // namespace

char letter(std::uint32_t phase) {
    constexpr std::uint32_t kLetters = 26;
    if (phase < kLetters) return static_cast<char>('A' + phase);
    return phase < 2 * kLetters ? static_cast<char>('a' + (phase - kLetters)) : '?';
}

std::string in_color(std::uint32_t phase, const std::string& text) {
    return fmt::format("\033[38;5;{}m{}\033[0m", kColors[phase % kColors.size()], text);
}

std::string strip(std::span<const std::uint32_t> phases, std::size_t width, bool color) {
    std::string text;
    const std::size_t cells = std::min(width, phases.size());
    for (std::size_t cell = 0; cell < cells; ++cell) {
        const std::size_t begin = cell * phases.size() / cells;
        const std::size_t end = (cell + 1) * phases.size() / cells;
        const std::uint32_t phase = usual(phases.subspan(begin, end - begin));
        text += color ? in_color(phase, "\u2588") : std::string(1, letter(phase));
    }
    return text;
}

}  // namespace assay::simpoint

namespace assay {

namespace simpoint {
namespace {

struct Arguments {
    std::string file;
    Search search;
    std::size_t dimensions = 15;
    double coverage = 1;
    std::string points, weights, labels;
    std::string color = "auto";
};

constexpr const char* kPurpose =
    "Finds the phases of a program in its basic block vectors, and for each phase an\n"
    "interval that represents it. Projects the vectors to a few dimensions and\n"
    "clusters them by k-means. As SimPoint 3.2 does, takes the smallest number of\n"
    "clusters with a good enough BIC.\n\n"
    "  assay simpoint [options] BBFILE\n";

constexpr const char* kFooter =
    "BBFILE is a file of --plugin=bbv or valgrind --tool=exp-bbv, and may be\n"
    "compressed. Results go to BBFILE.simpts (lines \"INTERVAL PHASE\", intervals\n"
    "counted from 0), BBFILE.weights (lines \"WEIGHT PHASE\") and BBFILE.labels (the\n"
    "phase of each interval), and the phases to the terminal. The same file, options\n"
    "and seed give the same result.\n\n"
    "Examples:\n\n"
    "  assay --plugin=bbv --interval-size=10000000 --bb-out-file=bb.out -- ./program\n"
    "  assay simpoint bb.out\n"
    "  assay simpoint --maxK=10 --save-labels=phases.txt bb.out\n\n"
    "Exit status: 0, or 125 if something could not be read or written.\n";

void add_search(CommandLine& line, Arguments& arguments) {
    Search& search = arguments.search;
    constexpr std::size_t kMostClusters = 1000, kMostSeeds = 1000, kMostIterations = 100'000;
    line.add_number("--maxK", search.most_clusters, 1, kMostClusters, "N",
                    "find at most N phases; default: 30");
    line.add_number("--k", search.clusters, 1, kMostClusters, "N", "find exactly N phases");
    line.add_number("--dim", arguments.dimensions, 1, kMostDimensions, "N",
                    "project to N dimensions; default: 15");
    line.add_number("--seeds", search.seeds, 1, kMostSeeds, "N",
                    "take the best of N initialisations for each k; default: 5");
    line.add_number("--seed", search.seed, 0, ~std::size_t{0}, "N",
                    "use the seed N for all random numbers; default: 0");
    line.add_number("--iters", search.iterations, 1, kMostIterations, "N",
                    "run at most N iterations of k-means; default: 100");
    line.add_number(
        "--bic-threshold", search.threshold, 0, 1, "X",
        "take the smallest number of phases that reaches this part of the range of scores; "
        "default: 0.9");
    line.add_number("--coverage", arguments.coverage, 0, 1, "X",
                    "leave out the rarest phases beyond this part of the instructions; default: 1");
}

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay simpoint", kPurpose, kFooter);
    line.add_argument("BBFILE", arguments.file);
    add_search(line, arguments);
    line.add_text("--save-simpoints", arguments.points, "FILE",
                  "write the intervals that represent phases to FILE; default: BBFILE.simpts");
    line.add_text("--save-weights", arguments.weights, "FILE",
                  "write the weights of the phases to FILE; default: BBFILE.weights");
    line.add_text("--save-labels", arguments.labels, "FILE",
                  "write the phase of each interval to FILE; default: BBFILE.labels");
    line.add_choice("--color", arguments.color, "auto|always|never",
                    "show phases in colours; default: on a terminal, unless NO_COLOR is set");
}

struct Phase {
    std::uint32_t number = 0;
    std::size_t representative = 0;  // an interval
    std::size_t intervals = 0;
    double weight = 0;  // part of all instructions
};

std::vector<Phase> phases_of(const Clustering& clustering, const Intervals& intervals) {
    const std::vector<std::size_t> points = representatives(clustering, intervals.points);
    std::vector<Phase> phases(points.size());
    double all = 0;
    for (std::size_t i = 0; i < clustering.cluster.size(); ++i) {
        Phase& phase = phases[clustering.cluster[i]];
        ++phase.intervals;
        phase.weight += static_cast<double>(intervals.instructions[i]);
        all += static_cast<double>(intervals.instructions[i]);
    }
    for (std::uint32_t number = 0; number < phases.size(); ++number) {
        phases[number].number = number;
        phases[number].representative = points[number];
        if (all > 0) phases[number].weight /= all;
    }
    return phases;
}

// The most frequent phases that together have `coverage` of the instructions.
std::vector<Phase> covering(std::vector<Phase> phases, double coverage) {
    std::stable_sort(phases.begin(), phases.end(),
                     [](const Phase& a, const Phase& b) { return a.weight > b.weight; });
    constexpr double kRounding = 1e-9;
    double covered = 0;
    std::size_t count = 0;
    while (count < phases.size() && (count == 0 || covered < coverage - kRounding))
        covered += phases[count++].weight;
    phases.resize(count);
    std::sort(phases.begin(), phases.end(),
              [](const Phase& a, const Phase& b) { return a.number < b.number; });
    return phases;
}

void write_file(const std::string& path, const std::string& text) {
    events::OutputFile file(path);
    file.write(text);
    file.finish();
}

// Divides weights by the covered part, so that they add up to 1.
void write_results(const Arguments& arguments, const std::vector<Phase>& phases,
                   const Clustering& clustering) {
    const SimulationPointFiles usual = simulation_point_files(arguments.file);
    double covered = 0;
    for (const Phase& phase : phases) covered += phase.weight;
    std::string points, weights, labels;
    for (const std::uint32_t phase : clustering.cluster) labels += fmt::format("{}\n", phase);
    for (const Phase& phase : phases) {
        points += fmt::format("{} {}\n", phase.representative, phase.number);
        weights +=
            fmt::format("{:.6g} {}\n", covered > 0 ? phase.weight / covered : 0, phase.number);
    }
    write_file(arguments.points.empty() ? usual.points : arguments.points, points);
    write_file(arguments.weights.empty() ? usual.weights : arguments.weights, weights);
    write_file(arguments.labels.empty() ? usual.labels : arguments.labels, labels);
}

std::size_t terminal_width() {
    constexpr std::size_t kUsual = 80;
    winsize size{};
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0;
    return known ? std::size_t{size.ws_col} : kUsual;
}

void print_phase(const Phase& phase, bool color) {
    const std::string name(1, letter(phase.number));
    print("  {}     {:5.1f}%  {:>9}  {:>9}\n",
          color ? in_color(phase.number, "\u2588\u2588") : name + " ", phase.weight * 100,
          phase.intervals, phase.representative);
}

void print_report(const Arguments& arguments, const std::vector<Phase>& phases,
                  const Clustering& clustering, const Intervals& intervals) {
    const bool color =
        arguments.color == "always" || (arguments.color == "auto" && terminal_has_color());
    print("{}\n\n", strip(clustering.cluster, terminal_width(), color));
    print("  phase  weight  intervals  simulate\n");
    double covered = 0, simulated = 0, all = 0;
    for (const std::uint64_t instructions : intervals.instructions)
        all += static_cast<double>(instructions);
    for (const Phase& phase : phases) {
        print_phase(phase, color);
        covered += phase.weight;
        simulated += static_cast<double>(intervals.instructions[phase.representative]);
    }
    print(
        "\n{} of {} intervals stand for {:.1f}% of the instructions: {:.2f}% of them to simulate.\n"
        "The phases explain {:.1f}% of the differences between intervals.\n",
        phases.size(), intervals.instructions.size(), covered * 100,
        all > 0 ? simulated / all * 100 : 0,
        explained_variance(clustering, intervals.points) * 100);
}

}  // namespace

std::vector<Option> options() {
    return options_of(add_options);
}

}  // namespace simpoint

int simpoint_main(int argc, char** argv) {
    const auto parsed = parse_arguments(simpoint::add_options, argc, argv);
    if (!parsed) return 0;
    const simpoint::Arguments& arguments = *parsed;
    if (arguments.file == "-" &&
        (arguments.points.empty() || arguments.weights.empty() || arguments.labels.empty()))
        throw Error(
            "simpoint -: results of standard input have no names; give them with --save-simpoints, "
            "--save-weights and --save-labels");
    const simpoint::Intervals intervals =
        simpoint::read_intervals(arguments.file, arguments.dimensions, arguments.search.seed);
    const simpoint::Clustering clustering =
        simpoint::find_phases(intervals.points, arguments.search);
    const auto phases =
        simpoint::covering(simpoint::phases_of(clustering, intervals), arguments.coverage);
    simpoint::write_results(arguments, phases, clustering);
    simpoint::print_report(arguments, phases, clustering, intervals);
    return 0;
}

}  // namespace assay
