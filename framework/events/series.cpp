#include "framework/events/series.h"

#include "framework/events/lexical.h"
#include "framework/support/error.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace assay::events {
namespace {

bool is_text(const std::string& text) {
    return text.size() <= kMostSeriesText;
}

bool is_axis(const Axis& axis) {
    return !axis.name.empty() && is_text(axis.name) && is_text(axis.unit);
}

// Compares everything except the input file and the points.
bool are_about_the_same(const Series& a, const Series& b) {
    return a.name == b.name && a.profiler == b.profiler && a.thread == b.thread &&
           a.phase == b.phase && a.log_x == b.log_x && a.each == b.each && a.x == b.x &&
           a.columns == b.columns;
}

}  // namespace

const char* defect(const Series& series) {
    if (series.name.empty()) return "a series without a name";
    for (const std::string* text :
         {&series.name, &series.description, &series.profiler, &series.phase, &series.from})
        if (!is_text(*text)) return "a text of a series has more than 4096 bytes";
    if (series.each == 0) return "a series that combines 0 points into one";
    if (series.columns.empty() || series.columns.size() > kMostSeriesColumns)
        return "a series has 1 to 8 columns";
    if (!is_axis(series.x) || !std::all_of(series.columns.begin(), series.columns.end(), is_axis))
        return "an axis of a series has a name, of at most 4096 bytes";
    if (series.numbers.size() % series.width() != 0)
        return "a point of a series has a number for each column";
    if (series.points() > kMostSeriesPoints) return "a series has at most 1024 points";
    for (std::size_t i = 1; i < series.points(); ++i)
        if (series.x_of(i) <= series.x_of(i - 1))
            return "the points of a series must be in ascending order of x";
    return nullptr;
}

std::uint64_t neighbours_of_one(std::uint64_t points) {
    std::uint64_t each = 1;
    while (points / each + (points % each != 0) > kMostSeriesPoints) each *= 2;
    return each;
}

bool add(Series& into, const Series& other) {
    if (!into.adds || !other.adds || !are_about_the_same(into, other)) return false;
    const Series& longer = into.points() < other.points() ? other : into;
    const Series& shorter = &longer == &into ? other : into;
    if (shorter.points() == 0) return longer.points() == 0;
    for (std::size_t i = 0; i < shorter.points(); ++i)
        if (shorter.x_of(i) != longer.x_of(i)) return false;
    std::vector<std::uint64_t> numbers = longer.numbers;
    for (std::size_t i = 0; i < longer.points(); ++i) {
        const std::size_t at = std::min(i, shorter.points() - 1);
        for (std::size_t column = 0; column < longer.columns.size(); ++column)
            if (std::uint64_t& sum = numbers[i * longer.width() + 1 + column];
                __builtin_add_overflow(sum, shorter.y_of(at, column), &sum))
                throw Error("the sum of the series " + excerpt(into.name) + " exceeds 64 bits");
    }
    into.numbers = std::move(numbers);
    return true;
}

namespace {

bool by_value(const HotValue& a, const HotValue& b) {
    return a.value < b.value;
}

// Combines the counts of equal values.
void unite(std::vector<HotValue>& values) {
    std::sort(values.begin(), values.end(), by_value);
    std::size_t kept = 0;
    for (const HotValue& each : values) {
        if (kept > 0 && values[kept - 1].value == each.value)
            values[kept - 1].count += each.count;
        else
            values[kept++] = each;
    }
    values.resize(kept);
}

}  // namespace

void sort_by_count(std::vector<HotValue>& values) {
    std::sort(values.begin(), values.end(), [](const HotValue& a, const HotValue& b) {
        return std::tie(b.count, a.value) < std::tie(a.count, b.value);
    });
}

void merge(Hotlist& into, const Hotlist& other, std::size_t most) {
    if (__builtin_add_overflow(into.total, other.total, &into.total))
        throw Error("the total of values of " + into.name + " exceeds 64 bits");
    into.error += other.error;
    into.values.insert(into.values.end(), other.values.begin(), other.values.end());
    unite(into.values);
    sort_by_count(into.values);
    if (into.values.size() <= most) return;
    into.error = std::min(into.error + into.values[most].count, into.total);
    into.values.resize(most);
}

const char* defect(const Hotlist& list) {
    if (list.error > list.total) return "the error exceeds the total";
    std::uint64_t sum = 0, before = std::numeric_limits<std::uint64_t>::max();
    for (const HotValue& each : list.values) {
        if (each.count == 0) return "a value was never seen";
        if (each.count > before) return "the values are not sorted by their counts";
        before = each.count;
        if (__builtin_add_overflow(sum, each.count, &sum) || sum > list.total)
            return "the counts exceed the total";
    }
    std::vector<HotValue> sorted = list.values;
    std::sort(sorted.begin(), sorted.end(), by_value);
    const auto twice =
        std::adjacent_find(sorted.begin(), sorted.end(),
                           [](const HotValue& a, const HotValue& b) { return a.value == b.value; });
    return twice == sorted.end() ? nullptr : "a value occurs twice";
}

}  // namespace assay::events
