#include "plugins/machine/thread_placement.h"

#include <algorithm>

namespace machine {

std::uint32_t ThreadPlacement::place(std::uint32_t thread) const {
    switch (machine_.placement) {
        case Placement::kRoundRobin:
            return thread % machine_.cores;
        case Placement::kList:
            return machine_.core_of_thread[thread % machine_.core_of_thread.size()];
        default:
            return static_cast<std::uint32_t>(std::min_element(living_.begin(), living_.end()) -
                                              living_.begin());
    }
}

std::uint32_t ThreadPlacement::core_of(std::uint32_t thread) {
    if (machine_.cores == 0) return thread;
    const auto known = core_of_.find(thread);
    if (known != core_of_.end()) return known->second;
    const std::uint32_t core = place(thread);
    core_of_.emplace(thread, core);
    ++living_[core];
    return core;
}

void ThreadPlacement::end(std::uint32_t thread) {
    const auto known = core_of_.find(thread);
    if (known == core_of_.end()) return;
    --living_[known->second];
    core_of_.erase(known);
}

}  // namespace machine
