#include "plugins/used_bytes/arenas.h"

#include <algorithm>

namespace used_bytes {

void Arenas::add(std::uint64_t address, std::uint64_t bytes, std::string_view owner,
                 std::string_view label) {
    const std::uint64_t end = address + std::min(bytes, UINT64_MAX - address);
    if (end == address) return;
    const auto [known, is_new] = numbers_.try_emplace({std::string(owner), std::string(label)},
                                                      static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back({std::string(owner), std::string(label)});
    cut(address, end);
    pieces_[address] = {end, known->second, ++count_};
    std::vector<Added>& here = added_[address];
    std::erase_if(here, [&](const Added& covered) { return covered.end <= end; });
    here.push_back({end, count_});
}

void Arenas::remove(std::uint64_t address) {
    const auto here = added_.find(address);
    if (here == added_.end()) return;
    const Added gone = here->second.back();
    here->second.pop_back();
    if (here->second.empty()) added_.erase(here);
    for (auto piece = pieces_.lower_bound(address);
         piece != pieces_.end() && piece->first < gone.end;)
        piece = piece->second.region == gone.region ? pieces_.erase(piece) : std::next(piece);
}

// Takes the addresses out of the regions.
void Arenas::cut(std::uint64_t address, std::uint64_t end) {
    auto piece = pieces_.lower_bound(address);
    if (piece != pieces_.begin()) {
        Piece& before = std::prev(piece)->second;
        if (before.end > end) pieces_[end] = {before.end, before.arena, before.region};
        before.end = std::min(before.end, address);
    }
    for (piece = pieces_.lower_bound(address); piece != pieces_.end() && piece->first < end;
         piece = pieces_.erase(piece))
        if (piece->second.end > end) pieces_[end] = piece->second;
}

}  // namespace used_bytes
