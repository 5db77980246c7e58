#include "tools/profile/strings.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/profile/count_store.h"

#include <fmt/core.h>
#include <algorithm>
#include <functional>
#include <utility>

namespace assay {

Strings::Id Strings::id(std::string_view text) {
    if (texts_.size() * 2 >= slots_.size()) grow();
    const auto hash = static_cast<std::uint32_t>(std::hash<std::string_view>()(text));
    Slot& slot = slot_of(text, hash);
    if (slot.number == 0) {
        bytes_ += text.size() + sizeof(std::string_view);
        if (bytes_ > kMostBytes)
            throw Error(
                fmt::format("the names in the profile have more than {} bytes, which those of "
                            "no program have",
                            kMostBytes));
        texts_.push_back(keep(text));
        slot = {hash, static_cast<std::uint32_t>(texts_.size())};
    }
    return slot.number - 1;
}

Strings::Slot& Strings::slot_of(std::string_view text, std::uint32_t hash) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].number != 0 &&
           (slots_[at].hash != hash || texts_[slots_[at].number - 1] != text))
        at = (at + 1) & mask;
    return slots_[at];
}

void Strings::grow() {
    const std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(std::max<std::size_t>(64, slots_.size() * 2)));
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
        if (slot.number == 0) continue;
        std::size_t at = slot.hash & mask;
        while (slots_[at].number != 0) at = (at + 1) & mask;
        slots_[at] = slot;
    }
}

std::string_view Strings::keep(std::string_view text) {
    if (text.empty()) return {};
    if (text.size() > left_) {
        left_ = std::max(kBlockBytes, text.size());
        blocks_.push_back(std::make_unique_for_overwrite<char[]>(left_));
        block_size_ = left_;
    }
    char* const begin = &blocks_.back()[block_size_ - left_];
    std::copy(text.begin(), text.end(), begin);
    left_ -= text.size();
    return {begin, text.size()};
}

namespace {

// As much as a series may say.
std::string names_of(const std::vector<std::string>& paths) {
    std::string names = join(paths, ", ");
    if (names.size() <= events::kMostSeriesText) return names;
    const std::string rest = fmt::format(" ... ({} files)", paths.size());
    names.resize(events::kMostSeriesText - rest.size());
    return names + rest;
}

}  // namespace

void MergedSeries::add(const std::string& path, std::span<const events::Series> series) {
    ++files_;
    // Of one file, several that look alike stay what they are.
    std::vector<bool> taken(series_.size());
    for (const events::Series& each : series) {
        bool added = false;
        for (std::size_t i = 0; i < taken.size() && !added; ++i) {
            if (taken[i] || series_[i].from != each.from) continue;
            try {
                added = events::add(series_[i], each);
            } catch (const Error& error) {
                throw Error(fmt::format("{}: with it, {}", path, error.what()));
            }
            if (!added) continue;
            taken[i] = true;
            paths_[i].push_back(path);
        }
        if (added) continue;
        if (series_.size() == events::kMostSeries) {
            ++left_out_;
            continue;
        }
        series_.push_back(each);
        paths_.push_back({path});
    }
}

void MergedSeries::finish() {
    for (std::size_t i = 0; i < series_.size(); ++i)
        if (paths_[i].size() < files_ && series_[i].from.empty())
            series_[i].from = names_of(paths_[i]);
}

}  // namespace assay
