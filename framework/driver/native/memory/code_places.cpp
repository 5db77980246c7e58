#include "framework/driver/native/memory/code_places.h"

#include <algorithm>

namespace assay::native {
namespace {

bool have_common(const Range& a, const Range& b) {
    return a.start < b.end && b.start < a.end;
}

}  // namespace

void CodePlaces::add(const Range& range, const MappedFile& file) {
    const bool known = std::any_of(places_.begin(), places_.end(), [&](const Place& place) {
        return place.file == file && place.range.start <= range.start &&
               range.end <= place.range.end;
    });
    if (!known) places_.push_back({range, file});
}

bool CodePlaces::overlap(const Range& range) const {
    return std::any_of(places_.begin(), places_.end(),
                       [&](const Place& place) { return have_common(place.range, range); });
}

bool CodePlaces::are_of_others(const Range& range, const std::optional<MappedFile>& file) const {
    return std::any_of(places_.begin(), places_.end(), [&](const Place& place) {
        return have_common(place.range, range) && place.file != file;
    });
}

std::optional<Range> CodePlaces::below(Range range) const {
    const std::uint64_t size = range.end - range.start;
    for (bool moved = true; moved;) {
        moved = false;
        for (const Place& place : places_) {
            if (!have_common(place.range, range)) continue;
            if (place.range.start < size) return std::nullopt;
            range = {place.range.start - size, place.range.start};
            moved = true;
        }
    }
    return range;
}

}  // namespace assay::native
