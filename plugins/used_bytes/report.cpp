#include "plugins/used_bytes/report.h"

#include <assay/text.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

namespace used_bytes {
namespace {

using assay::percent;
using assay::right;
using assay::with_commas;
using Row = std::vector<std::string>;

constexpr std::size_t kShort = 5;       // rows of a table in the summary
constexpr std::size_t kLong = 20;       // occurrences of a section
constexpr std::size_t kLinesShown = 5;  // of an arena

// Aligns the first column to the left, and the others to the right.
std::string table(const std::vector<Row>& rows) {
    std::vector<std::size_t> widths(rows.front().size());
    for (const Row& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string text;
    for (const Row& row : rows) {
        text += "  " + row[0] + std::string(widths[0] - row[0].size(), ' ');
        for (std::size_t i = 1; i < row.size(); ++i) text += "  " + right(row[i], widths[i]);
        text += '\n';
    }
    return text;
}

std::string arena_name(const Arenas::Name& name) {
    if (name.owner.empty()) return name.label.empty() ? "(none)" : name.label;
    return name.label.empty() ? name.owner : name.owner + ": " + name.label;
}

class Report {
  public:
    explicit Report(const ReportInput& input, bool is_long)
        : input_(input), accounts_(input.accounts), long_(is_long) {}

    std::string write() {
        totals();
        sections();
        arenas();
        threads();
        if (long_) double_reads();
        return std::move(text_);
    }

  private:
    struct Named {
        std::string name;
        Usage usage;
        std::uint64_t times = 1;
    };

    std::uint64_t address_of(std::uint64_t line) const { return line * input_.line_bytes; }
    std::uint64_t scaled(std::uint64_t bytes) const { return assay::scaled(bytes, input_.scale); }
    std::uint64_t bytes(std::uint64_t lines) const { return scaled(lines * input_.line_bytes); }

    void totals() {
        const Usage& all = accounts_.total();
        const std::uint64_t read = bytes(all.lines), used = scaled(all.used);
        const std::uint64_t unique = read - bytes(all.again);
        const std::size_t width = with_commas(read).size();
        const auto line = [&](const char* label, std::uint64_t number, const std::string& remark) {
            text_ += label + right(with_commas(number), width) + " B" + remark + "\n";
        };
        text_ += "cache:   " + input_.cache + "\n";
        line("read:    ", read, "");
        line("unique:  ", unique,
             "  " + percent(read - unique, unique, 1) +
                 " overhead of lines that were read more than once");
        line("used:    ", used, "");
        line("wasted:  ", read - used, "  " + percent(read - used, read, 1) + " of what was read");
        const Usage& code = accounts_.code();
        if (code.lines == 0) return;
        const std::uint64_t of_code = bytes(code.lines), used_code = scaled(code.used);
        const std::uint64_t wasted = of_code - used_code;
        line("code:    ", of_code,
             " were read for instruction fetches: used " + with_commas(used_code) + " B, wasted " +
                 with_commas(wasted) + " B  " + percent(wasted, of_code, 1));
    }

    Row numbers(const std::string& name, const Usage& usage) const {
        const std::uint64_t read = bytes(usage.lines), used = scaled(usage.used);
        const std::uint64_t unique = read - bytes(usage.again);
        return {name,
                with_commas(read),
                with_commas(unique),
                percent(read - unique, unique, 1),
                with_commas(used),
                with_commas(read - used),
                percent(read - used, read, 1)};
    }
    static Row heading(const std::string& what) {
        return {what, "read", "unique", "again", "used", "wasted", "wasted"};
    }

    // Shows up to `most` rows, by lines read.
    void show(const std::string& what, std::vector<Named> all, std::size_t most) {
        std::stable_sort(all.begin(), all.end(), [](const Named& a, const Named& b) {
            return a.usage.lines > b.usage.lines;
        });
        std::vector<Row> rows{heading(what)};
        for (std::size_t i = 0; i < std::min(all.size(), most); ++i)
            rows.push_back(numbers(all[i].name, all[i].usage));
        text_ += "\n" + table(rows);
        if (all.size() > most) text_ += "  ... " + with_commas(all.size() - most) + " more\n";
    }

    void sections() {
        const auto& all = accounts_.sections().all();
        const auto& names = accounts_.sections().names();
        std::vector<Named> sums;
        sums.reserve(names.size());
        std::vector<std::vector<Named>> occurrences(names.size());
        for (const std::string& name : names) sums.push_back({name, {}, 0});
        for (std::size_t i = 1; i < all.size(); ++i) {
            Named& sum = sums[all[i].name];
            // Nested sections of the same name count once for the name.
            if (!accounts_.sections().lies_in_its_name(static_cast<std::uint32_t>(i)))
                sum.usage += all[i].usage;
            ++sum.times;
            if (long_)
                occurrences[all[i].name].push_back(
                    {sum.name + "#" + std::to_string(all[i].occurrence), all[i].usage});
        }
        if (sums.empty()) return;
        for (Named& sum : sums)
            if (sum.times != 1) sum.name += " (" + with_commas(sum.times) + " times)";
        show("section", sums, long_ ? SIZE_MAX : kShort);
        if (!long_) return;
        for (std::size_t i = 0; i < names.size(); ++i)
            if (occurrences[i].size() > 1) show(names[i], std::move(occurrences[i]), kLong);
    }

    void arenas() {
        const auto& names = accounts_.arenas().names();
        if (names.size() < 2) return;
        std::vector<Named> all;
        for (std::size_t i = 0; i < names.size(); ++i)
            all.push_back({arena_name(names[i]), accounts_.by_arena()[i].usage});
        show("arena", std::move(all), long_ ? SIZE_MAX : kShort);
    }

    void threads() {
        std::vector<Named> all;
        for (const auto& [thread, usage] : accounts_.threads())
            if (usage.lines != 0) all.push_back({std::to_string(thread + 1), usage});
        if (all.size() < 2) return;
        std::sort(all.begin(), all.end(), [](const Named& a, const Named& b) {
            return a.name.size() != b.name.size() ? a.name.size() < b.name.size() : a.name < b.name;
        });
        show("thread", std::move(all), long_ ? SIZE_MAX : kShort);
    }

    // Small numbers of fetches get their own row, others are grouped by order of magnitude.
    void histogram(const Histogram& counts) {
        std::map<std::uint32_t, std::uint64_t> classes;
        std::uint64_t all = 0;
        for (const auto& [fetches, lines] : counts) {
            std::uint32_t from = 1;
            while (fetches / 10 >= from) from *= 10;
            classes[from == 1 ? fetches : from] += lines;
            all += lines;
        }
        for (auto of = classes.rbegin(); of != classes.rend(); ++of) {
            const auto& [from, lines] = *of;
            text_ += "  " + with_commas(lines) + (lines == 1 ? " line" : " lines") + " read " +
                     with_commas(from) +
                     (from < 10 ? "" : " to " + with_commas(std::uint64_t{from} * 10 - 1)) +
                     (from == 1 ? " time" : " times") + " (" + percent(lines, all, 0) + ")\n";
        }
    }

    void double_reads() {
        Histogram all;
        std::vector<Histogram> by_arena;
        for (const Accounts::Arena& arena : accounts_.by_arena()) by_arena.push_back(arena.earlier);
        accounts_.lines().for_each([&](std::uint64_t, const LineHistory& history) {
            if (history.fetches == 0) return;
            ++all[history.fetches];
            ++by_arena[history.arena][history.fetches_in_arena];
        });
        text_ += input_.scale == 1 ? "\nLines read more than once\n"
                                   : "\nLines read more than once, within bursts\n";
        histogram(all);
        for (std::size_t i = 0; i < by_arena.size(); ++i) {
            const Accounts::Arena& arena = accounts_.by_arena()[i];
            if (by_arena[i].empty()) continue;
            const std::uint64_t read = bytes(arena.usage.lines);
            text_ += "\nRead " + with_commas(read) + " B (" +
                     percent(read, bytes(accounts_.total().lines), 0) + ") " +
                     (i == 0 ? "outside of all arenas"
                             : "in " + arena_name(accounts_.arenas().names()[i])) +
                     "\n";
            histogram(by_arena[i]);
            const auto lines = arena.most_fetched.sorted();
            for (std::size_t n = 0; n < std::min(lines.size(), kLinesShown); ++n)
                most_fetched(lines[n]);
        }
    }

    void most_fetched(const MostFetched::Line& line) {
        char address[32];
        std::snprintf(address, sizeof address, "0x%llx",
                      static_cast<unsigned long long>(address_of(line.line)));
        const std::uint32_t shown = line.known();
        text_ += "\n  Line at " + std::string(address) + ", read " + with_commas(line.fetches) +
                 " times" +
                 (shown < line.fetches ? "; the last " + std::to_string(shown) + ":" : ":") + "\n";
        for (std::uint32_t fetch = line.fetches - shown + 1; fetch <= line.fetches; ++fetch) {
            const MostFetched::Stay& stay = line.stays[fetch % MostFetched::kStays];
            PointNumber evicted_by = stay.evicted_by;
            if (fetch == line.fetches) evicted_by = accounts_.evicted_last(line.line);
            text_ += "    " + std::to_string(fetch) + ". read at\n";
            stack(stay.fetched_by);
            text_ +=
                evicted_by == kNoPoint ? "       and not evicted\n" : "       and evicted by\n";
            stack(evicted_by);
        }
    }

    void stack(PointNumber point) {
        if (point == kNoPoint) return;
        for (const std::string& call : input_.stack(point)) text_ += "         " + call + "\n";
    }

    const ReportInput& input_;
    const Accounts& accounts_;
    bool long_;
    std::string text_;
};

}  // namespace

std::vector<PointNumber> points_of_report(const Accounts& accounts) {
    std::vector<PointNumber> points;
    for (const Accounts::Arena& arena : accounts.by_arena()) {
        const auto lines = arena.most_fetched.sorted();
        for (std::size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) {
            for (const MostFetched::Stay& stay : lines[i].stays)
                points.insert(points.end(), {stay.fetched_by, stay.evicted_by});
            points.push_back(accounts.evicted_last(lines[i].line));
        }
    }
    std::erase(points, kNoPoint);
    return points;
}

std::string short_report(const ReportInput& input) {
    return Report(input, false).write();
}

std::string long_report(const ReportInput& input) {
    return Report(input, true).write();
}

}  // namespace used_bytes
