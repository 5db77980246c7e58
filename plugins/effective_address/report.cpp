#include "plugins/effective_address/report.h"

#include <assay/text.hpp>

#include <algorithm>
#include <cstdio>
#include <set>

namespace effective_address {
namespace {

using assay::percent;
using assay::scaled;
using assay::with_commas;

// A pattern is named after its strides if at least this many of a thousand references have them.
constexpr std::uint64_t kNearlyAll = 950;
constexpr std::size_t kHottest = 4, kLinesInSummary = 5, kSidesOfLine = 6;

std::string hexadecimal(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

std::string about(std::uint64_t number, bool exact) {
    return (exact ? "" : "about ") + with_commas(number);
}

std::string bytes_of(std::uint64_t mask) {
    const int first = __builtin_ctzll(mask), last = 63 - __builtin_clzll(mask);
    return first == last ? "byte " + std::to_string(first)
                         : "bytes " + std::to_string(first) + "-" + std::to_string(last);
}

// Describes the references of an operand in a thread.
std::string side(const Touch& touch, const Results& results) {
    const Operand& operand = results.tracker.operand(touch.operand);
    const std::uint64_t address =
        (touch.line << kLineShift) + static_cast<std::uint64_t>(__builtin_ctzll(touch.bytes));
    const Field field = results.field(touch.operand, address);
    return bytes_of(touch.bytes) + (operand.writes() ? " written " : " read ") +
           with_commas(scaled(touch.count * results.tracker.sharing().scale(), results.scale)) +
           " times by thread " + std::to_string(touch.thread + 1) + " at " +
           results.place(operand.pc()) + (field.member.empty() ? "" : ": " + field.name());
}

// For each thread the operand that references the line most, followed by the others.
std::vector<Touch> sides(const FalselyShared& line) {
    std::vector<Touch> found(line.touches.begin(), line.touches.end());
    std::stable_sort(found.begin(), found.end(),
                     [](const Touch& a, const Touch& b) { return a.count > b.count; });
    std::set<std::uint32_t> threads;
    std::stable_partition(found.begin(), found.end(),
                          [&](const Touch& touch) { return threads.insert(touch.thread).second; });
    if (found.size() > kSidesOfLine) found.resize(kSidesOfLine);
    return found;
}

std::string shared_lines(const Results& results, std::size_t most) {
    std::string out;
    for (std::size_t i = 0; i < std::min(most, results.sharing.lines.size()); ++i) {
        const FalselyShared& line = results.sharing.lines[i];
        const std::uint64_t address = line.touches.front().line << kLineShift;
        const std::string data = results.data(address);
        out += "  line " + hexadecimal(address) + (data.empty() ? "" : " of " + data) +
               ", at most " + with_commas(scaled(line.transfers, results.scale)) + " transfers, " +
               with_commas(scaled(line.references, results.scale)) + " references\n";
        for (const Touch& touch : sides(line)) out += "    " + side(touch, results) + "\n";
        const std::string advice = parting(line, results.field, results.data);
        if (!advice.empty()) out += "    to part them: " + advice + "\n";
    }
    return out;
}

std::string row(const char* label, std::uint64_t part, std::uint64_t whole) {
    char text[96];
    std::snprintf(text, sizeof text, "%-22s %16s %9s\n", label, with_commas(part).c_str(),
                  whole == 0 ? "" : percent(part, whole, 1).c_str());
    return text;
}

struct Totals {
    std::uint64_t references = 0;
    Pattern pattern;
    Alignment alignment;
};

Totals totals_of(const Tracker& tracker, double scale) {
    Totals sum;
    for (const Operand& operand : tracker.operands()) {
        const Pattern pattern = operand.pattern();
        sum.references += operand.references();
        sum.pattern.constant += pattern.constant;
        sum.pattern.few += pattern.few;
        sum.alignment.misaligned += operand.alignment().misaligned;
        sum.alignment.line_crossing += operand.alignment().line_crossing;
        sum.alignment.page_crossing += operand.alignment().page_crossing;
    }
    for (std::uint64_t* const count :
         {&sum.references, &sum.pattern.constant, &sum.pattern.few, &sum.alignment.misaligned,
          &sum.alignment.line_crossing, &sum.alignment.page_crossing})
        *count = scaled(*count, scale);
    return sum;
}

std::string describe(const Operand& operand, const Results& results) {
    const Alignment& alignment = operand.alignment();
    const auto number = [&](std::uint64_t count) {
        return with_commas(scaled(count, results.scale));
    };
    std::string out = results.place(operand.pc()) + "\n";
    out += "  " + hexadecimal(operand.pc()) + ": " + number(operand.references()) +
           (operand.writes() ? " writes of " : " reads of ") + std::to_string(operand.bytes()) +
           " bytes\n";
    out += "  strides: " + describe_strides(operand) + "\n";
    out += "  touched: " + about(operand.footprint().lines(), operand.footprint().exact()) +
           " lines in " + about(operand.footprint().pages(), operand.footprint().exact()) +
           " pages\n";
    if (alignment.misaligned + alignment.line_crossing != 0)
        out += "  misaligned: " + number(alignment.misaligned) +
               ", across lines: " + number(alignment.line_crossing) +
               ", across pages: " + number(alignment.page_crossing) + "\n";
    const std::vector<Item> addresses = operand.addresses(kHottest);
    out += addresses.empty() ? "  most frequent: none stands out" : "  most frequent:";
    for (const Item& item : addresses)
        out += " " + hexadecimal(item.value) + " " + percent(item.count, operand.references(), 1) +
               "  ";
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
}

std::vector<const Operand*> by_references(const Tracker& tracker) {
    std::vector<const Operand*> sorted;
    for (const Operand& operand : tracker.operands())
        if (operand.references() != 0) sorted.push_back(&operand);
    std::stable_sort(sorted.begin(), sorted.end(), [](const Operand* a, const Operand* b) {
        if (a->references() != b->references()) return a->references() > b->references();
        return a->pc() < b->pc();
    });
    return sorted;
}

}  // namespace

std::string describe_strides(const Operand& operand) {
    const auto nearly_all = [&](std::uint64_t part, std::uint64_t whole) {
        return part * 1000 >= whole * kNearlyAll;
    };
    const std::uint64_t whole = operand.references();
    const Pattern pattern = operand.pattern();
    const std::vector<Item> strides = operand.strides(Operand::kMostOfFew);
    const auto text = [&](const Item& stride) {
        return std::to_string(static_cast<std::int64_t>(stride.value));
    };
    if (whole <= 1) return "none";
    if (strides.empty()) return "irregular";
    // The first reference has no stride. Counting it keeps short walks from being called irregular.
    if (nearly_all(pattern.constant + 1, whole)) return "constant " + text(strides[0]);
    const bool few = nearly_all(pattern.constant + pattern.few + 1, whole);
    std::string out = few ? "few:" : "irregular; most frequent:";
    for (const Item& stride : strides)
        out += (&stride == &strides[0] ? " " : ", ") + text(stride) + " " +
               percent(stride.count, whole, 1);
    return out;
}

std::vector<std::uint64_t> instructions_of_summary(const Results& results) {
    std::vector<std::uint64_t> found;
    for (std::size_t i = 0; i < std::min(kLinesInSummary, results.sharing.lines.size()); ++i)
        for (const Touch& touch : sides(results.sharing.lines[i]))
            found.push_back(results.tracker.operand(touch.operand).pc());
    return found;
}

std::vector<std::uint64_t> instructions_of_report(const Results& results) {
    std::vector<std::uint64_t> found;
    for (const Operand* operand : by_references(results.tracker)) found.push_back(operand->pc());
    return found;
}

std::string summarise(const Results& results) {
    const Totals sum = totals_of(results.tracker, results.scale);
    const SharingResult& sharing = results.sharing;
    std::string out = row("references:", sum.references, 0);
    out += row("  constant stride:", sum.pattern.constant, sum.references);
    out += row("  few strides:", sum.pattern.few, sum.references);
    out += row("  irregular:", sum.references - sum.pattern.constant - sum.pattern.few,
               sum.references);
    out += row("  misaligned:", sum.alignment.misaligned, sum.references);
    out += row("  across lines:", sum.alignment.line_crossing, sum.references);
    out += row("  across pages:", sum.alignment.page_crossing, sum.references);
    out += row("lines shared truly:", sharing.lines_shared_truly, 0);
    out += row("lines shared falsely:", sharing.lines_shared_falsely, 0);
    return out + shared_lines(results, kLinesInSummary);
}

bool write_report(const Results& results, const std::string& file) {
    std::FILE* out = std::fopen(file.c_str(), "w");
    if (!out) return false;
    bool good = std::fputs(summarise(results).c_str(), out) >= 0;
    if (results.sharing.lines.size() > kLinesInSummary) {
        std::fputs("\nAll falsely shared lines\n", out);
        std::fputs(shared_lines(results, results.sharing.lines.size()).c_str(), out);
    }
    std::fputs("\nInstructions\n", out);
    for (const Operand* operand : by_references(results.tracker))
        good = std::fputs(("\n" + describe(*operand, results)).c_str(), out) >= 0 && good;
    return std::fclose(out) == 0 && good;
}

}  // namespace effective_address
