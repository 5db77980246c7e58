#include "plugins/used_bytes/footprint_cache.h"

#include <algorithm>

namespace used_bytes {

FootprintCache::FootprintCache(const cache::Geometry& geometry)
    : line_shift_(static_cast<std::uint32_t>(std::countr_zero(geometry.line))),
      piece_(std::min(geometry.line, 64U)),
      ways_(geometry.ways),
      pieces_(geometry.line / piece_),
      set_mask_(geometry.sets() - 1),
      words_of_set_(ways_ * (2 + pieces_)),
      sets_(sets() * words_of_set_) {}

namespace {

bool fewer(const MostFetched::Line& a, const MostFetched::Line& b) {
    return a.fetches < b.fetches;
}

}  // namespace

std::uint32_t MostFetched::Line::known() const {
    std::uint32_t count = 0;
    while (count < std::min<std::uint32_t>(fetches, kStays) &&
           stays[(fetches - count) % kStays].fetched_by != kNoPoint)
        ++count;
    return count;
}

MostFetched::Line* MostFetched::find(std::uint64_t line) {
    const auto found = std::find_if(lines_.begin(), lines_.end(),
                                    [&](const Line& known) { return known.line == line; });
    return found == lines_.end() ? nullptr : &*found;
}

// A line gets into the full table only if it has more fetches than a line in the table. Lines in
// the table have at least `fewest_` fetches, so lines below this number need no search.
void MostFetched::fetched_again(std::uint64_t line, const LineHistory& history, PointNumber by) {
    const std::uint32_t before = history.fetches_in_arena;
    if (before < fewest_) return;
    Line* entry = find(line);
    if (!entry) {
        if (lines_.size() < kLines) {
            entry = &lines_.emplace_back();
        } else {
            if (before + 1 <= fewest_) return;
            entry = &*std::min_element(lines_.begin(), lines_.end(), fewer);
        }
        *entry = {.line = line};
        entry->stays.fill({kNoPoint, kNoPoint});
    }
    entry->stays[before % kStays] = {history.fetched_by, history.evicted_by};
    entry->fetches = before + 1;
    entry->stays[entry->fetches % kStays] = {by, kNoPoint};
    if (lines_.size() == kLines)
        fewest_ = std::min_element(lines_.begin(), lines_.end(), fewer)->fetches;
}

std::vector<MostFetched::Line> MostFetched::sorted() const {
    std::vector<Line> lines = lines_;
    std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
        return a.fetches != b.fetches ? a.fetches > b.fetches : a.line < b.line;
    });
    return lines;
}

}  // namespace used_bytes
