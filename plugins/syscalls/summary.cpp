#include "plugins/syscalls/summary.h"

#include "plugins/syscalls/names.h"

#include <assay/text.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

namespace syscalls {
namespace {

using assay::right;
using assay::with_commas;
using Row = std::pair<std::uint64_t, Tally>;

constexpr std::size_t kCalls = 12, kErrors = 10, kBytes = 18, kTime = 12;

std::vector<Row> sorted(const std::map<std::uint64_t, Tally>& by_number, bool times) {
    std::vector<Row> rows(by_number.begin(), by_number.end());
    std::erase_if(rows, [](const Row& row) { return row.second.calls == 0; });
    std::stable_sort(rows.begin(), rows.end(), [times](const Row& a, const Row& b) {
        return times ? a.second.nanoseconds > b.second.nanoseconds
                     : a.second.calls > b.second.calls;
    });
    return rows;
}

std::string seconds(std::uint64_t nanoseconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6f", static_cast<double>(nanoseconds) / 1e9);
    return text;
}

std::string row(const Tally& tally, bool times, const std::string& name) {
    std::string text =
        right(with_commas(tally.calls), kCalls) + right(with_commas(tally.errors), kErrors) +
        right(with_commas(tally.read), kBytes) + right(with_commas(tally.written), kBytes);
    if (times) text += right(seconds(tally.nanoseconds), kTime);
    return text + "  " + name + "\n";
}

}  // namespace

std::string summarise(const std::map<std::uint64_t, Tally>& by_number, bool times) {
    std::string text = right("calls", kCalls) + right("errors", kErrors) +
                       right("bytes read", kBytes) + right("bytes written", kBytes);
    if (times) text += right("seconds", kTime);
    text += "  system call\n";
    Tally all;
    for (const auto& [number, tally] : sorted(by_number, times)) {
        all += tally;
        text += row(tally, times, name_of_call(number));
    }
    return text + row(all, times, "in all");
}

std::string in_one_line(const std::map<std::uint64_t, Tally>& by_number) {
    constexpr std::size_t kMost = 20;
    std::vector<Row> rows = sorted(by_number, false);
    const bool cut = rows.size() > kMost;
    if (cut) rows.resize(kMost);
    std::string text;
    for (const auto& [number, tally] : rows) {
        if (!text.empty()) text += ", ";
        text += name_of_call(number) + " " + std::to_string(tally.calls);
    }
    return text + (cut ? ", ..." : "");
}

}  // namespace syscalls
