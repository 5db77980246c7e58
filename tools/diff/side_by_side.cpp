#include "tools/diff/side_by_side.h"

#include <algorithm>

namespace assay::diff {
namespace {

using Lines = std::vector<std::string_view>;

// What is equal in the middle: Myers, "An O(ND) difference algorithm and its variations" (1986),
// with the furthest reaching paths of each step kept, to go back along them.
class Middle {
  public:
    Middle(const Lines& before, const Lines& after, std::size_t first, std::size_t old_end,
           std::size_t new_end)
        : before_(before),
          after_(after),
          first_(first),
          old_size_(static_cast<std::ptrdiff_t>(old_end - first)),
          new_size_(static_cast<std::ptrdiff_t>(new_end - first)) {}

    // Pairs of equal lines, the last first; none if there are too many differences.
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
        // Lines that have changed stand beside one another.
        while (old_line < next.before && new_line < next.after)
            pairs.push_back({old_line++, new_line++});
        while (old_line < next.before) pairs.push_back({old_line++, LinePair::kNone});
        while (new_line < next.after) pairs.push_back({LinePair::kNone, new_line++});
        if (old_line < before.size() && new_line < after.size())
            pairs.push_back({old_line++, new_line++});
    }
    while (old_line < before.size() && new_line < after.size())
        pairs.push_back({old_line++, new_line++});
    return pairs;
}

}  // namespace assay::diff
