#include "tools/summary/summary.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/output/output.h"
#include "tools/profile/call_graph.h"
#include "tools/profile/profile.h"
#include "tools/profile/profile_files.h"
#include "tools/sources/source_finder.h"
#include "tools/summary/cycles.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::summary {

namespace {

// Thresholds for rows and sentences, in percent. The manual page lists them.
constexpr double kShownFunction = 1, kShownLine = 2, kShownData = 10;  // of all cycles or misses
constexpr double kCause = 25;      // of a function's cycles; above, names the cause
constexpr double kBound = 10;      // of all cycles; below, the program rarely waits
constexpr double kStandsOut = 10;  // of all cycles; below, no function stands out
constexpr std::size_t kMostFunctions = 10, kMostLines = 5, kMostData = 3;

struct LineCost {
    std::uint32_t place, line;
    double cost;  // cycles, or events
};

struct FunctionCost {
    std::uint32_t function;
    std::vector<std::uint64_t> counts;
    double cycles = 0;
    LineCost hottest{};  // the line with the most cycles
};

double percent(double part, double whole) {
    return whole == 0 ? 0 : 100 * part / whole;
}

std::string base_name(std::string_view path) {
    return std::string(path.substr(path.rfind('/') + 1));
}

// Removes parameters, and writes names as people do.
std::string short_name(std::string_view name) {
    std::string text(name);
    for (const std::string_view inner : {"std::__cxx11::", "std::__1::"})
        for (std::size_t at; (at = text.find(inner)) != std::string::npos;)
            text.replace(at, inner.size(), "std::");
    constexpr std::string_view kString =
        "std::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    for (std::size_t at; (at = text.find(kString)) != std::string::npos;)
        text.replace(at, kString.size(), "std::string");
    const std::size_t operator_call = text.find("operator()");
    const std::size_t from = operator_call == std::string::npos ? 0 : operator_call + 10;
    int depth = 0;
    for (std::size_t i = from; i < text.size(); ++i) {
        if (text[i] == '<') ++depth;
        if (text[i] == '>') --depth;
        if (text[i] == '(' && depth == 0 && i > 0 && text.compare(i, 11, "(anonymous ") != 0)
            return text.substr(0, i);
    }
    return text;
}

// A command to type. One that is too long for a row has its first word only.
std::string command_text(std::string_view command) {
    constexpr std::size_t kWidth = 60;
    if (command.size() <= kWidth) return printable(command);
    return printable(command.substr(0, command.find(' '))) + " ...";
}

// Ends a row of a table. The last column can be empty and leave blanks.
std::string ended(std::string row) {
    row.erase(row.find_last_not_of(' ') + 1);
    return row + "\n";
}

// Breaks a formula before a + into lines of at most 96 characters.
std::string wrapped(std::string_view formula, std::size_t column) {
    constexpr std::size_t kWidth = 96;
    std::string text;
    for (std::size_t begin = 0; begin < formula.size();) {
        const std::size_t plus = formula.find(" + ", begin + 1);
        const std::string_view term = formula.substr(begin, plus - begin);
        if (column + term.size() > kWidth) {
            text += "\n   ";
            column = 3;
        }
        text += term;
        column += term.size();
        begin = std::min(plus, formula.size());
    }
    return text;
}

class Summary {
  public:
    Summary(const Profile& profile, const Cycles& cycles, std::vector<std::string> paths)
        : profile_(profile),
          cycles_(cycles),
          paths_(std::move(paths)),
          all_(cycles.of_row(profile.totals())),
          sharing_(event("FalseSharing")),
          finder_({}, profile.objects()) {
        rank();
    }

    void write(Output& output) {
        write_head(output);
        write_functions(output);
        write_lines(output);
        write_data(output);
        write_sharing(output);
        write_next(output);
    }

  private:
    void rank() {
        std::vector<std::uint64_t> row(profile_.totals().size());
        for (std::uint32_t i = 0; i < profile_.functions().size(); ++i) {
            const Profile::Function& function = profile_.functions()[i];
            FunctionCost cost{i, std::vector<std::uint64_t>(row.size()), 0, {}};
            for (std::uint32_t place = function.first_place; place < function.end_place; ++place)
                for (const Profile::Line& line : profile_.lines(place)) {
                    profile_.counts().read(line.row, row);
                    add_counts(cost.counts, row);
                    const LineCost found{place, line.line, cycles_.of_row(row)};
                    if (found.cost > cost.hottest.cost) cost.hottest = found;
                    if (line.line != 0 && percent(found.cost, all_) >= kShownLine)
                        lines_.push_back(found);
                    if (sharing_ && share_of(*sharing_, row) >= kShownData)
                        sharing_lines_.push_back(
                            {place, line.line, static_cast<double>(row[*sharing_])});
                }
            cost.cycles = cycles_.of_row(cost.counts);
            if (percent(cost.cycles, all_) >= kShownFunction) functions_.push_back(std::move(cost));
        }
        const auto costlier = [](const LineCost& a, const LineCost& b) { return a.cost > b.cost; };
        for (std::vector<LineCost>* const lines : {&lines_, &sharing_lines_}) {
            std::stable_sort(lines->begin(), lines->end(), costlier);
            if (lines->size() > kMostLines) lines->resize(kMostLines);
        }
        std::stable_sort(
            functions_.begin(), functions_.end(),
            [](const FunctionCost& a, const FunctionCost& b) { return a.cycles > b.cycles; });
        if (functions_.size() > kMostFunctions) functions_.resize(kMostFunctions);
    }

    std::string place_text(std::uint32_t place, std::uint32_t line) const {
        if (is_unknown_file(profile_.text(profile_.places()[place].file))) return "";
        const std::string file = base_name(profile_.text(profile_.places()[place].file));
        return line == 0 ? file : fmt::format("{}:{}", file, line);
    }

    void write_head(Output& output) const {
        const std::vector<std::string>& commands = profile_.commands();
        if (!commands.empty())
            output.write(shortened(printable(commands.front()), 100) +
                         (commands.size() == 1
                              ? "\n"
                              : fmt::format(" and {} other command{}\n", commands.size() - 1,
                                            commands.size() == 2 ? "" : "s")));
        if (cycles_.are_estimated())
            write_cycles(output);
        else
            output.write(fmt::format("{} {} ({})\n", with_thousands(profile_.totals()[0]),
                                     profile_.events().front().name,
                                     printable(profile_.events().front().description)));
        for (const std::string& reason : profile_.incomplete())
            output.write(
                fmt::format("INCOMPLETE, not the counts of a whole run: {}\n", printable(reason)));
        output.write("\n");
    }

    void write_cycles(Output& output) const {
        const std::string number =
            with_thousands(static_cast<unsigned long long>(std::llround(all_)));
        output.write(fmt::format("{} estimated cycles = {}\n", number,
                                 wrapped(cycles_.formula(), number.size() + 20)));
        const double executing = percent(
            cycles_.of_cause(profile_.totals(), {"executing instructions", {*event("Ir")}}), all_);
        std::vector<std::string> parts{fmt::format("{:.0f} % executing instructions", executing)};
        double rest = 100 - executing;
        for (const Cause& cause : cycles_.causes()) {
            const double share = percent(cycles_.of_cause(profile_.totals(), cause), all_);
            rest -= share;
            if (share >= 1) parts.push_back(fmt::format("{:.0f} % {}", share, cause.name));
        }
        // A user's machine can have events that no cause names.
        if (rest >= 1) parts.push_back(fmt::format("{:.0f} % other events", rest));
        output.write(fmt::format("  {}\n", join(parts, ", ")));
        if (all_ > 0 && 100 - executing < kBound)
            output.write("The program rarely waits. Fewer instructions make it faster.\n");
    }

    // The main reason for the cycles of a function.
    std::string reason(const FunctionCost& cost) const {
        const Cause* worst = nullptr;
        double most = 0;
        for (const Cause& cause : cycles_.causes())
            if (const double part = cycles_.of_cause(cost.counts, cause); part > most) {
                worst = &cause;
                most = part;
            }
        if (worst && percent(most, cost.cycles) >= kCause)
            return fmt::format("{:.0f} % in {} ({:.0f} % of all)", percent(most, cost.cycles),
                               worst->name,
                               percent(most, cycles_.of_cause(profile_.totals(), *worst)));
        if (!cycles_.are_estimated()) return "";
        return fmt::format("{:.0f} % of all instructions", share_of(*event("Ir"), cost.counts));
    }

    double share_of(std::size_t event, Counts counts) const {
        return percent(static_cast<double>(counts[event]),
                       static_cast<double>(profile_.totals()[event]));
    }

    // The caller that contributes most, as ", called by find". Skips stubs of the linker, which
    // have no names. "" without contexts.
    std::string caller_of(const FunctionCost& cost) {
        if (!profile_.has_contexts()) return "";
        if (!calls_) calls_ = calls_of_functions(call_graph(profile_));
        Strings::Id name = profile_.functions()[cost.function].name;
        for (int steps = 0; steps < 3; ++steps) {
            const std::optional<Strings::Id> caller = costliest_caller(name);
            if (!caller) return "";
            name = *caller;
            if (const std::string_view text = text_of(profile_, name); text != kUnknownFile)
                return ", called by " + short_name(printable(text));
        }
        return "";
    }

    std::optional<Strings::Id> costliest_caller(Strings::Id callee) const {
        std::optional<Strings::Id> best;
        double most = 0;
        for (const auto& [edge, calls] : *calls_) {
            const auto& [caller, called] = edge;
            if (called.name != callee || caller == kOutsideCaller || caller.name == callee)
                continue;
            if (const double part = cycles_.of_row(calls.inclusive); part > most) {
                best = caller.name;
                most = part;
            }
        }
        return best;
    }

    void write_functions(Output& output) {
        output.write(fmt::format("Functions by {}\n",
                                 cycles_.are_estimated() ? "estimated cycles" : cycles_.formula()));
        if (functions_.empty() || percent(functions_.front().cycles, all_) < kStandsOut)
            output.write("  No function stands out.\n");
        for (const FunctionCost& cost : functions_) {
            const std::string name =
                short_name(printable(profile_.text(profile_.functions()[cost.function].name)));
            output.write(ended(fmt::format(
                "  {:4.1f} %  {}  {}  {}", percent(cost.cycles, all_),
                padded(shortened(name, 34), 34),
                padded(shortened(place_text(cost.hottest.place, cost.hottest.line), 20), 20),
                reason(cost) + caller_of(cost))));
        }
        output.write("\n");
    }

    std::string source_text(std::uint32_t place, std::uint32_t line) {
        const std::string name(profile_.text(profile_.places()[place].file));
        if (is_unknown_file(name)) return "";
        const SourceFinder::Source source = finder_.find(name);
        if (source.status != SourceFinder::Status::kFound) return "";
        try {
            const std::string text = read_source(source.path);
            const std::vector<std::string_view> lines = split_lines(text);
            if (line == 0 || line > lines.size()) return "";
            std::string_view found = lines[line - 1];
            found.remove_prefix(std::min(found.find_first_not_of(" \t"), found.size()));
            return shortened(printable(found), 60);
        } catch (const Error&) {
            return "";  // annotate prints the reason
        }
    }

    void write_lines(Output& output) {
        if (lines_.empty()) return;
        output.write("Lines\n");
        for (const LineCost& line : lines_) write_line(line, percent(line.cost, all_), output);
        output.write("\n");
    }

    void write_line(const LineCost& line, double share, Output& output) {
        output.write(ended(fmt::format("  {:4.1f} %  {}  {}", share,
                                       padded(shortened(place_text(line.place, line.line), 24), 24),
                                       source_text(line.place, line.line))));
    }

    // Writes the data that miss the caches, if the run had --objects or --types.
    void write_data(Output& output) const {
        if (cycles_.causes().empty()) return;
        const Cause& misses = cycles_.causes().front();
        const double all = cycles_.of_cause(profile_.totals(), misses);
        if (misses.name != "data cache misses" || percent(all, all_) < kBound) return;
        for (const std::string_view kind : {"object", "member"}) {
            std::vector<std::pair<double, const Groups::Group*>> found;
            for (const Groups::Group& group : profile_.groups().groups())
                if (group.kind == kind)
                    if (const double part = cycles_.of_cause(group.counts, misses);
                        percent(part, all) >= kShownData)
                        found.emplace_back(part, &group);
            if (found.empty()) continue;
            std::stable_sort(found.begin(), found.end(),
                             [](const auto& a, const auto& b) { return a.first > b.first; });
            if (found.size() > kMostData) found.resize(kMostData);
            output.write(fmt::format("Data cache misses by {}\n", kind));
            for (const auto& [part, group] : found) {
                std::string name = group->name;
                if (kind == "member" && group->parent != Groups::kNone)
                    name.insert(0, profile_.groups().groups()[group->parent].name + ".");
                if (const std::string_view type = group->attribute("class"); !type.empty())
                    name = fmt::format("{} {}", type, name);
                output.write(fmt::format("  {:4.1f} %  {}\n", percent(part, all),
                                         shortened(printable(name), 80)));
            }
            output.write("\n");
        }
    }

    std::optional<std::size_t> event(std::string_view name) const {
        for (std::size_t i = 0; i < profile_.events().size(); ++i)
            if (profile_.events()[i].name == name) return i;
        return std::nullopt;
    }

    // True if cores often take lines from each other needlessly. Few machines count it.
    bool shares_falsely() const { return sharing_ && share_of_misses() >= kShownData; }
    double share_of_misses() const {
        const auto reads = event("D1mr"), writes = event("D1mw");
        const Counts totals = profile_.totals();
        return !reads || !writes ? 0
                                 : percent(static_cast<double>(totals[*sharing_]),
                                           static_cast<double>(totals[*reads] + totals[*writes]));
    }

    void write_sharing(Output& output) {
        if (!shares_falsely()) return;
        output.write(
            fmt::format("False sharing: {:.0f} % of the level-1 data misses\n", share_of_misses()));
        const auto all = static_cast<double>(profile_.totals()[*sharing_]);
        for (const LineCost& line : sharing_lines_)
            write_line(line, percent(line.cost, all), output);
        output.write("\n");
    }

    // Writes the two commands that show more.
    void write_next(Output& output) const {
        const std::string file = join(paths_, " ");
        const auto has_kind = [&](std::string_view kind) {
            const std::vector<std::string>& kinds = profile_.groups().kinds();
            return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
        };
        const bool waits_for_data =
            !cycles_.causes().empty() &&
            percent(cycles_.of_cause(profile_.totals(), cycles_.causes().front()), all_) >= kBound;
        const std::string program =
            profile_.commands().empty() ? "PROGRAM" : command_text(profile_.commands().front());
        output.write("Next\n");
        output.write(fmt::format("  assay annotate {}    the sources with their counts\n", file));
        if (shares_falsely())
            output.write(fmt::format(
                "  assay --plugin=effective_address -- {}    the members that share a line\n",
                program));
        else if (waits_for_data && !has_kind("object"))
            output.write(fmt::format(
                "  assay --plugin=cache --objects --types -- {}    the data that miss\n", program));
        else if (waits_for_data)
            output.write(
                fmt::format("  assay annotate --by=object --lines {}    all data\n", file));
        else if (!profile_.has_contexts())
            output.write(fmt::format("  assay --plugin=cache --contexts -- {}    who calls what\n",
                                     program));
        else
            output.write(fmt::format("  assay annotate --calls {}    who calls what\n", file));
    }

    const Profile& profile_;
    const Cycles& cycles_;
    const std::vector<std::string> paths_;
    const double all_;
    const std::optional<std::size_t> sharing_;  // the event FalseSharing
    SourceFinder finder_;
    std::vector<FunctionCost> functions_;
    std::vector<LineCost> lines_;
    std::vector<LineCost> sharing_lines_;  // with most of the false sharing
    std::optional<std::map<std::pair<FunctionKey, FunctionKey>, Calls>> calls_;
};

constexpr const char* kPurpose =
    "Shows on one screen what is slow in a profile, and why: functions and lines by estimated\n"
    "cycles, and the data that miss the caches.\n\n"
    "  assay summary [FILE...]\n";

constexpr const char* kExamples =
    "Without FILE, it shows the newest profile of the folder.\n\n"
    "Exit status: 0, or 125 if something could not be read or written.\n";

struct Arguments {
    std::vector<std::string> files;
};

void add_options(CommandLine& line, Arguments& arguments) {
    line.describe("assay summary", kPurpose, kExamples);
    line.add_arguments("FILE", arguments.files, Need::kOptional);
}

}  // namespace

std::vector<Option> options() {
    return options_of(add_options);
}

}  // namespace assay::summary

namespace assay {

int summary_main(int argc, char** argv) {
    const auto arguments = parse_arguments(summary::add_options, argc, argv);
    if (!arguments) return 0;
    std::vector<std::string> names = arguments->files;
    if (names.empty()) names.push_back(newest_profile());
    const ProfileFiles files = profile_files(names);
    Profile profile(parts::kLines | parts::kContexts | parts::kGroups);
    for (const std::string& path : files.paths) profile.add_file(path);
    profile.finish();
    const summary::Cycles cycles(profile.header());
    Output output(stdout);
    summary::Summary(profile, cycles, names).write(output);
    output.finish();
    return 0;
}

}  // namespace assay
