#include "framework/driver/qemu/guest_mappings.h"

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <utility>

namespace assay::qemu {

void GuestMappings::need(std::uint64_t pc, std::uint64_t host) {
    constexpr std::uint64_t kPage = 4096;
    if (!stale_ && pc / kPage == last_page_) return;
    last_page_ = pc / kPage;
    if (!std::exchange(stale_, false) && contains(pc)) return;
    const Mappings now = read(host - pc);
    for (auto known = known_.begin(); known != known_.end();) {
        const auto still = now.find(known->first);
        if (still != now.end() && still->second == known->second) {
            ++known;
        } else {
            code_.unmapped(known->first, known->second.end);
            known = known_.erase(known);
        }
    }
    auto found = now.upper_bound(pc);
    if (found == now.begin() || pc >= (--found)->second.end || known_.contains(found->first))
        return;
    const Mapping& mapping = known_.emplace(*found).first->second;
    code_.mapped(found->first, mapping.end, mapping.offset, mapping.path);
}

bool GuestMappings::contains(std::uint64_t pc) const {
    auto after = known_.upper_bound(pc);
    return after != known_.begin() && pc < (--after)->second.end;
}

// All mapped files, also those that QEMU itself uses.
GuestMappings::Mappings GuestMappings::read(std::uint64_t base) {
    Mappings found;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        std::uint64_t start = 0, end = 0, offset = 0;
        int path = 0;
        if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %*s %*s %n", &start,
                        &end, &offset, &path) != 3 ||
            path == 0 || line[static_cast<std::size_t>(path)] != '/' || start < base)
            continue;
        Mapping mapping{end - base, offset, line.substr(static_cast<std::size_t>(path))};
        // Parts of a file with different permissions are adjacent.
        if (!found.empty()) {
            auto& [before, last] = *std::prev(found.end());
            if (last.end == start - base && last.path == mapping.path &&
                last.offset + (last.end - before) == offset) {
                last.end = mapping.end;
                continue;
            }
        }
        found.emplace(start - base, std::move(mapping));
    }
    return found;
}

}  // namespace assay::qemu
