#include "tools/sources/side_by_side.h"

#include <algorithm>

namespace assay {
namespace {

using Lines = std::vector<std::string_view>;

// Finds the equal lines between the equal beginning and end: Myers, "An O(ND) difference algorithm
// and its variations" (1986). Keeps the furthest reaching paths of each step, to trace the result
// back.
class Middle {
  public:
    Middle(const Lines& before, const Lines& after, std::size_t first, std::size_t old_end,
           std::size_t new_end)
        : before_(before),
          after_(after),
          first_(first),
          old_size_(static_cast<std::ptrdiff_t>(old_end - first)),
          new_size_(static_cast<std::ptrdiff_t>(new_end - first)) {}

    // Pairs of equal lines, the last pair first. Empty if there are too many differences.
    std::vector<LinePair> equal_lines() {
        constexpr std::ptrdiff_t kMostSteps = 2000;  // some 32 MB
        const std::ptrdiff_t most = std::min(old_size_ + new_size_, kMostSteps);
        std::vector<std::ptrdiff_t> reach(static_cast<std::size_t>(2 * most + 3));
        const auto at = [&](std::ptrdiff_t diagonal) -> std::ptrdiff_t& {
            return reach[static_cast<std::size_t>(diagonal + most + 1)];
        };
        for (std::ptrdiff_t step = 0; step <= most; ++step) {
            for (std::ptrdiff_t k = -step; k <= step; k += 2) {
                std::ptrdiff_t x =
                    k == -step || (k != step && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
                while (x < old_size_ && x - k < new_size_ && x - k >= 0 && is_equal(x, x - k)) ++x;
                at(k) = x;
                if (x == old_size_ && x - k == new_size_) {
                    keep(step, at);
                    return way_back(step);
                }
            }
            keep(step, at);
        }
        return {};
    }

  private:
    bool is_equal(std::ptrdiff_t x, std::ptrdiff_t y) const {
        return before_[first_ + static_cast<std::size_t>(x)] ==
               after_[first_ + static_cast<std::size_t>(y)];
    }

    template <typename At>
    void keep(std::ptrdiff_t step, const At& at) {
        std::vector<std::ptrdiff_t>& kept = steps_.emplace_back();
        for (std::ptrdiff_t k = -step; k <= step; ++k) kept.push_back(at(k));
    }

    std::ptrdiff_t kept(std::ptrdiff_t step, std::ptrdiff_t k) const {
        return steps_[static_cast<std::size_t>(step)][static_cast<std::size_t>(k + step)];
    }

    std::vector<LinePair> way_back(std::ptrdiff_t step) const {
        std::vector<LinePair> pairs;
        std::ptrdiff_t x = old_size_, y = new_size_;
        const auto back_to = [&](std::ptrdiff_t least_x) {
            while (x > least_x && x > 0 && y > 0) {
                --x;
                --y;
                pairs.push_back(
                    {first_ + static_cast<std::size_t>(x), first_ + static_cast<std::size_t>(y)});
            }
        };
        for (; step > 0; --step) {
            const std::ptrdiff_t k = x - y;
            const auto reached = [&](std::ptrdiff_t diagonal) {
                return diagonal < -(step - 1) || diagonal > step - 1 ? -1
                                                                     : kept(step - 1, diagonal);
            };
            const bool is_down = k == -step || (k != step && reached(k - 1) < reached(k + 1));
            const std::ptrdiff_t from = is_down ? reached(k + 1) : reached(k - 1);
            back_to(is_down ? from : from + 1);
            x = from;
            y = from - (is_down ? k + 1 : k - 1);
        }
        back_to(0);
        return pairs;
    }

    const Lines &before_, &after_;
    const std::size_t first_;
    const std::ptrdiff_t old_size_, new_size_;
    std::vector<std::vector<std::ptrdiff_t>> steps_;  // by step: how far each diagonal reaches
};

// How similar two lines are, from 0 to 1: the share of their common beginning and end, without
// blanks around the lines.
double likeness(std::string_view a, std::string_view b) {
    const auto trimmed = [](std::string_view line) {
        constexpr std::string_view kBlanks = " \t\r";
        const std::size_t first = line.find_first_not_of(kBlanks);
        if (first == std::string_view::npos) return std::string_view();
        return line.substr(first, line.find_last_not_of(kBlanks) + 1 - first);
    };
    a = trimmed(a);
    b = trimmed(b);
    const std::size_t shorter = std::min(a.size(), b.size()), longer = std::max(a.size(), b.size());
    if (longer == 0) return 1;
    std::size_t begin = 0, end = 0;
    while (begin < shorter && a[begin] == b[begin]) ++begin;
    while (end < shorter - begin && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
    return static_cast<double>(begin + end) / static_cast<double>(longer);
}

// Pairs of changed lines that are similar enough to be one edited line. Dynamic programming finds
// the pairs, in order, with the largest sum of similarities. Empty if there are too many lines.
std::vector<LinePair> alike_lines(const Lines& before, LinePair first, const Lines& after,
                                  LinePair end) {
    constexpr std::size_t kMostComparisons = 40'000;
    constexpr double kAlike = 0.5;
    const std::size_t rows = end.before - first.before, columns = end.after - first.after;
    if (rows == 0 || columns == 0 || rows > kMostComparisons / columns) return {};
    std::vector<double> likenesses(rows * columns), best((rows + 1) * (columns + 1));
    // The largest sum for the lines from here to the ends.
    const auto sum = [&](std::size_t row, std::size_t column) -> double& {
        return best[row * (columns + 1) + column];
    };
    for (std::size_t row = rows; row-- > 0;)
        for (std::size_t column = columns; column-- > 0;) {
            double& alike = likenesses[row * columns + column];
            alike = likeness(before[first.before + row], after[first.after + column]);
            const double with = alike < kAlike ? 0 : alike + sum(row + 1, column + 1);
            sum(row, column) = std::max({with, sum(row + 1, column), sum(row, column + 1)});
        }
    std::vector<LinePair> pairs;
    for (std::size_t row = 0, column = 0; row < rows && column < columns;) {
        const double alike = likenesses[row * columns + column];
        if (alike >= kAlike && sum(row, column) == alike + sum(row + 1, column + 1))
            pairs.push_back({first.before + row++, first.after + column++});
        else if (sum(row, column) == sum(row + 1, column))
            ++row;
        else
            ++column;
    }
    return pairs;
}

// Puts changed lines beside one another: similar lines as pairs, the lines between them in their
// order.
void add_changed(const Lines& before, LinePair first, const Lines& after, LinePair end,
                 std::vector<LinePair>& pairs) {
    std::vector<LinePair> alike = alike_lines(before, first, after, end);
    alike.push_back(end);
    for (const LinePair& next : alike) {
        while (first.before < next.before && first.after < next.after)
            pairs.push_back({first.before++, first.after++});
        while (first.before < next.before) pairs.push_back({first.before++, LinePair::kNone});
        while (first.after < next.after) pairs.push_back({LinePair::kNone, first.after++});
        if (next == end) break;
        pairs.push_back(next);
        first = {next.before + 1, next.after + 1};
    }
}

}  // namespace

std::vector<LinePair> side_by_side(const Lines& before, const Lines& after) {
    std::size_t first = 0, old_end = before.size(), new_end = after.size();
    while (first < old_end && first < new_end && before[first] == after[first]) ++first;
    while (old_end > first && new_end > first && before[old_end - 1] == after[new_end - 1]) {
        --old_end;
        --new_end;
    }
    std::vector<LinePair> equal = Middle(before, after, first, old_end, new_end).equal_lines();
    std::reverse(equal.begin(), equal.end());
    equal.push_back({old_end, new_end});

    std::vector<LinePair> pairs;
    for (std::size_t i = 0; i < first; ++i) pairs.push_back({i, i});
    std::size_t old_line = first, new_line = first;
    for (const LinePair& next : equal) {
        add_changed(before, {old_line, new_line}, after, next, pairs);
        old_line = next.before;
        new_line = next.after;
        if (old_line < before.size() && new_line < after.size())
            pairs.push_back({old_line++, new_line++});
    }
    while (old_line < before.size() && new_line < after.size())
        pairs.push_back({old_line++, new_line++});
    return pairs;
}

}  // namespace assay
