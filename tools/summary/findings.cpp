#include "tools/summary/findings.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "framework/symbols/elf_file.h"
#include "tools/profile/call_graph.h"
#include "tools/summary/cycles.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace assay::summary {

namespace {

// Thresholds for rows and sentences, in percent. The manual page lists them.
constexpr double kShownFunction = 1, kShownLine = 2, kShownData = 10;  // of all cycles or misses
constexpr double kCause = 25;  // of a function's cycles; above, names the cause
constexpr double kBound = 10;  // of all cycles; below, the program rarely waits
constexpr double kAllocating = 20, kStarting = 25;  // of all cycles; above, a sentence says so
constexpr double kCyclesOfSystemCall = 200;         // on processors of 2020 with mitigations
constexpr double kStandsOut = 10;                   // of all cycles; below, no function stands out
constexpr std::size_t kMostFunctions = 10, kMostLines = 5, kMostData = 3;

struct LineCost {
    std::uint32_t place, line;
    double cost;  // cycles, or events
};

// The lines with most of an event, if the profile has it.
struct EventLines {
    std::optional<std::size_t> event;
    std::vector<LineCost> lines;
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

// A command to type. One that is too long for a row has its first word only.
std::string command_text(std::string_view command) {
    constexpr std::size_t kWidth = 60;
    if (command.size() <= kWidth) return printable(command);
    return printable(command.substr(0, command.find(' '))) + " ...";
}

class Search {
  public:
    Search(const Profile& profile, const Groups& groups, const DisplayNames& names,
           const std::vector<std::string>& paths, const SourceOptions& where)
        : profile_(profile),
          groups_(groups),
          names_(names),
          cycles_(profile.header()),
          paths_(paths),
          all_(cycles_.of_row(profile.totals())),
          sharing_{event("FalseSharing"), {}},
          system_calls_{event("Sys"), {}},
          finder_(where, profile.objects()) {}

    Findings run() {
        rank();
        Findings found = head();
        found.sections.push_back(functions());
        const auto add = [&](Section section) {
            if (!section.rows.empty()) found.sections.push_back(std::move(section));
        };
        add(lines("Lines", lines_, all_));
        for (const std::string_view kind : {"object", "member"}) add(data(kind));
        if (shares_falsely())
            found.sections.push_back(
                lines(fmt::format("False sharing: {:.0f} % of the level-1 data misses",
                                  share_of_misses()),
                      sharing_));
        if (calls_system_often())
            found.sections.push_back(
                lines(fmt::format("System calls: {}. The estimate leaves out what the kernel does",
                                  with_thousands(profile_.totals()[*system_calls_.event])),
                      system_calls_));
        found.next = next();
        return found;
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
                    for (EventLines* const lines : {&sharing_, &system_calls_})
                        if (lines->event && share_of(*lines->event, row) >= kShownData)
                            lines->lines.push_back(
                                {place, line.line, static_cast<double>(row[*lines->event])});
                }
            cost.cycles = cycles_.of_row(cost.counts);
            if (is_allocating(function)) allocating_ += cost.cycles;
            if (is_starting(function)) starting_ += cost.cycles;
            if (percent(cost.cycles, all_) >= kShownFunction) functions_.push_back(std::move(cost));
        }
        const auto costlier = [](const LineCost& a, const LineCost& b) { return a.cost > b.cost; };
        for (std::vector<LineCost>* const lines :
             {&lines_, &sharing_.lines, &system_calls_.lines}) {
            std::stable_sort(lines->begin(), lines->end(), costlier);
            if (lines->size() > kMostLines) lines->resize(kMostLines);
        }
        std::stable_sort(
            functions_.begin(), functions_.end(),
            [](const FunctionCost& a, const FunctionCost& b) { return a.cycles > b.cycles; });
        if (functions_.size() > kMostFunctions) functions_.resize(kMostFunctions);
    }

    // Functions of glibc's allocator, or of C++ and Rust.
    bool is_allocating(const Profile::Function& function) const {
        static const std::set<std::string_view> kNames{
            "malloc",       "calloc",        "realloc",       "free",
            "cfree",        "__libc_malloc", "__libc_calloc", "__libc_realloc",
            "__libc_free",  "_int_malloc",   "_int_free",     "_int_realloc",
            "unlink_chunk", "sysmalloc",     "systrim",       "malloc_consolidate",
            "__rust_alloc", "__rust_dealloc"};
        const std::string_view name = profile_.text(function.name);
        return kNames.contains(name) || name.starts_with("operator new") ||
               name.starts_with("operator delete") || base_name(function) == "malloc.c";
    }

    // Functions of glibc's dynamic linker.
    bool is_starting(const Profile::Function& function) const {
        const std::string_view name = profile_.text(function.name), file = base_name(function);
        return name.starts_with("_dl_") || name == "do_lookup_x" || name == "dl_main" ||
               file.starts_with("dl-") || file == "rtld.c" || file == "do-rel.h";
    }

    std::string_view base_name(const Profile::Function& function) const {
        const std::string_view file = profile_.text(function.file);
        return file.substr(file.rfind('/') + 1);
    }

    std::string file_of(std::uint32_t place) const {
        const std::string_view file = profile_.text(profile_.places()[place].file);
        return is_unknown_file(file) ? "" : std::string(file);
    }

    Findings head() const {
        Findings found{profile_.commands(),
                       cycles_.are_estimated(),
                       0,
                       {},
                       {},
                       {},
                       {},
                       profile_.incomplete(),
                       {},
                       {}};
        if (!cycles_.are_estimated()) {
            found.total = profile_.totals()[0];
            found.total_name = profile_.events().front().name;
            found.meaning = profile_.events().front().description;
            return found;
        }
        found.total = static_cast<std::uint64_t>(std::llround(all_));
        found.total_name = "estimated cycles";
        found.meaning = cycles_.formula();
        add_cycles(found);
        return found;
    }

    // Adds the cycles by cause.
    void add_cycles(Findings& found) const {
        const double executing = percent(
            cycles_.of_cause(profile_.totals(), {"executing instructions", "", {*event("Ir")}}),
            all_);
        found.cycles.push_back({executing, "executing instructions"});
        double rest = 100 - executing;
        for (const Cause& cause : cycles_.causes()) {
            const double share = percent(cycles_.of_cause(profile_.totals(), cause), all_);
            rest -= share;
            if (share >= 1) found.cycles.push_back({share, std::string(cause.name)});
            if (share >= kCause && !cause.remedy.empty())
                found.remarks.push_back(
                    fmt::format("{:.0f} % are {}: {}.", share, cause.name, cause.remedy));
        }
        // A user's machine can have events that no cause names.
        if (rest >= 1) found.cycles.push_back({rest, "other events"});
        if (percent(allocating_, all_) >= kAllocating)
            found.remarks.push_back(
                fmt::format("Allocating and freeing memory takes {:.0f} %. Fewer, larger or reused "
                            "blocks take less.",
                            percent(allocating_, all_)));
        if (percent(starting_, all_) >= kStarting)
            found.remarks.push_back(
                fmt::format("Starting takes {:.0f} %: the dynamic linker finds libraries and "
                            "symbols. Fewer libraries, or -static, take less.",
                            percent(starting_, all_)));
        if (all_ > 0 && 100 - executing < kBound && !calls_system_often())
            found.remarks.emplace_back(
                "The program rarely waits. Fewer instructions make it faster.");
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
        if (!has_contexts()) return "";
        if (!calls_) calls_ = calls_of_functions(call_graph(profile_));
        Strings::Id name = profile_.functions()[cost.function].name;
        for (int steps = 0; steps < 3; ++steps) {
            const std::optional<Strings::Id> caller = costliest_caller(name);
            if (!caller) return "";
            name = *caller;
            if (const std::string_view text = text_of(profile_, name); text != kUnknownFile)
                return ", called by " + names_(text);
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

    Section functions() {
        Section section{Of::kFunctions,
                        fmt::format("Functions by {}", cycles_.are_estimated() ? "estimated cycles"
                                                                               : cycles_.formula()),
                        {},
                        {}};
        if (functions_.empty() || percent(functions_.front().cycles, all_) < kStandsOut)
            section.remark = "No function stands out.";
        for (const FunctionCost& cost : functions_) {
            std::string why = reason(cost) + caller_of(cost);
            if (why.starts_with(", ")) why.erase(0, 2);
            section.rows.push_back({percent(cost.cycles, all_),
                                    names_(profile_.text(profile_.functions()[cost.function].name)),
                                    file_of(cost.hottest.place), cost.hottest.line, std::move(why),
                                    std::nullopt});
        }
        return section;
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
            return std::string(found);
        } catch (const Error&) {
            return "";  // annotate prints the reason
        }
    }

    Section lines(std::string title, const EventLines& costs) {
        return lines(std::move(title), costs.lines,
                     static_cast<double>(profile_.totals()[*costs.event]));
    }
    Section lines(std::string title, const std::vector<LineCost>& costs, double all) {
        Section section{Of::kLines, std::move(title), {}, {}};
        for (const LineCost& cost : costs)
            section.rows.push_back({percent(cost.cost, all),
                                    {},
                                    file_of(cost.place),
                                    cost.line,
                                    source_text(cost.place, cost.line),
                                    std::nullopt});
        return section;
    }

    // Finds the data that miss the caches, if the run had --objects or --types.
    Section data(std::string_view kind) const {
        Section section{Of::kData, fmt::format("Data cache misses by {}", kind), {}, {}};
        if (cycles_.causes().empty()) return section;
        const Cause& misses = cycles_.causes().front();
        const double all = cycles_.of_cause(profile_.totals(), misses);
        if (misses.name != "data cache misses" || percent(all, all_) < kBound) return section;
        const std::vector<Groups::Group>& groups = groups_.groups();
        for (std::uint32_t i = 0; i < groups.size(); ++i) {
            if (groups[i].kind != kind) continue;
            const double share = percent(cycles_.of_cause(groups[i].counts, misses), all);
            if (share >= kShownData)
                section.rows.push_back({share, name_of(groups[i]), {}, 0, {}, i});
        }
        std::stable_sort(section.rows.begin(), section.rows.end(),
                         [](const Finding& a, const Finding& b) { return a.share > b.share; });
        if (section.rows.size() > kMostData) section.rows.resize(kMostData);
        return section;
    }

    std::string name_of(const Groups::Group& group) const {
        std::string name = names_.of_group(group);
        if (group.kind == "member" && group.parent != Groups::kNone)
            name.insert(0, names_.of_group(groups_.groups()[group.parent]) + ".");
        if (const std::string_view type = group.attribute("class"); !type.empty())
            name = fmt::format("{} {}", type, name);
        return name;
    }

    std::optional<std::size_t> event(std::string_view name) const {
        for (std::size_t i = 0; i < profile_.events().size(); ++i)
            if (profile_.events()[i].name == name) return i;
        return std::nullopt;
    }

    // True if cores often take lines from each other needlessly. Few machines count it.
    bool shares_falsely() const { return sharing_.event && share_of_misses() >= kShownData; }
    bool calls_system_often() const {
        return system_calls_.event && cycles_.are_estimated() &&
               percent(static_cast<double>(profile_.totals()[*system_calls_.event]) *
                           kCyclesOfSystemCall,
                       all_) >= kBound;
    }
    double share_of_misses() const {
        const auto reads = event("D1mr"), writes = event("D1mw");
        const Counts totals = profile_.totals();
        return !reads || !writes ? 0
                                 : percent(static_cast<double>(totals[*sharing_.event]),
                                           static_cast<double>(totals[*reads] + totals[*writes]));
    }

    // True for what a machine executes that QEMU emulates. Otherwise QEMU is an object itself.
    bool is_machine() const {
        if (profile_.commands().empty() || profile_.objects().empty()) return false;
        const std::string command = command_text(profile_.commands().front());
        std::string_view name = std::string_view(command).substr(0, command.find(' '));
        name.remove_prefix(name.rfind('/') + 1);
        return name.starts_with("qemu-system-") &&
               std::none_of(profile_.objects().begin(), profile_.objects().end(),
                            [&](const auto& object) { return object.path.ends_with(name); });
    }

    // True for what runs under QEMU, where there are no counts by object.
    bool is_foreign() const {
        if (profile_.objects().empty()) return false;
        if (is_machine()) return true;
        const auto program = symbols::ElfFile::open(profile_.objects().front().path);
        return program && program->header().e_machine != EM_X86_64;
    }

    // The end of a command line that runs the program again. An emulated machine also needs the
    // file that it runs.
    std::string program() const {
        if (profile_.commands().empty()) return "-- PROGRAM";
        const std::string command = command_text(profile_.commands().front());
        return is_machine()
                   ? fmt::format("--image={} -- {}", profile_.objects().front().path, command)
                   : "-- " + command;
    }

    // Some profilers count only their own events by context.
    bool has_contexts() const { return profile_.context_totals().front() != 0; }

    // The two commands that show more.
    std::vector<Step> next() const {
        const std::string file = join(paths_, " ");
        const auto has_kind = [&](std::string_view kind) {
            const std::vector<std::string>& kinds = groups_.kinds();
            return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
        };
        const bool waits_for_data =
            !cycles_.causes().empty() &&
            percent(cycles_.of_cause(profile_.totals(), cycles_.causes().front()), all_) >= kBound;
        const std::string program = this->program();
        std::vector<Step> steps{
            {fmt::format("assay annotate {}", file), "the sources with their counts"}};
        const auto add = [&](std::string command, std::string purpose) {
            steps.push_back({std::move(command), std::move(purpose)});
        };
        if (calls_system_often())
            add("assay --plugin=syscalls --time " + program, "which calls take how long");
        else if (shares_falsely())
            add("assay --plugin=effective_address " + program, "the members that share a line");
        else if (waits_for_data && !has_kind("object") && !is_foreign())
            add("assay --plugin=cache --objects --types " + program, "the data that miss");
        else if (waits_for_data && has_kind("object"))
            add("assay annotate --by=object --lines " + file, "all data");
        else if (!has_contexts())
            add("assay --plugin=cache --contexts " + program, "who calls what");
        else
            add("assay annotate --calls " + file, "who calls what");
        return steps;
    }

    const Profile& profile_;
    const Groups& groups_;
    const DisplayNames& names_;
    const Cycles cycles_;
    const std::vector<std::string>& paths_;
    const double all_;
    EventLines sharing_, system_calls_;
    SourceFinder finder_;
    std::vector<FunctionCost> functions_;
    std::vector<LineCost> lines_;
    double allocating_ = 0, starting_ = 0;  // cycles in functions of the allocator, of the linker
    std::optional<std::map<std::pair<FunctionKey, FunctionKey>, Calls>> calls_;
};

}  // namespace

Findings findings(const Profile& profile, const Groups& groups, const DisplayNames& names,
                  const std::vector<std::string>& paths, const SourceOptions& where) {
    return Search(profile, groups, names, paths, where).run();
}

}  // namespace assay::summary
