#include "tools/profile/strings.h"

#include "framework/support/error.h"
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

}  // namespace assay
