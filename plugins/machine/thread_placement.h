// Assigns threads to cores.
#pragma once

#include "plugins/machine/machine.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace machine {

class ThreadPlacement {
  public:
    // The machine must live longer.
    explicit ThreadPlacement(const Machine& machine) : machine_(machine), living_(machine.cores) {}

    // Threads are numbered from 0 in the order of their creation. The first call for a thread
    // places it.
    std::uint32_t core_of(std::uint32_t thread);
    void end(std::uint32_t thread);

  private:
    std::uint32_t place(std::uint32_t thread) const;

    const Machine& machine_;
    std::vector<std::uint32_t> living_;  // threads, by core
    std::unordered_map<std::uint32_t, std::uint32_t> core_of_;
};

inline std::uint32_t ThreadPlacement::place(std::uint32_t thread) const {
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

inline std::uint32_t ThreadPlacement::core_of(std::uint32_t thread) {
    if (machine_.cores == 0) return thread;
    const auto known = core_of_.find(thread);
    if (known != core_of_.end()) return known->second;
    const std::uint32_t core = place(thread);
    core_of_.emplace(thread, core);
    ++living_[core];
    return core;
}

inline void ThreadPlacement::end(std::uint32_t thread) {
    const auto known = core_of_.find(thread);
    if (known == core_of_.end()) return;
    --living_[known->second];
    core_of_.erase(known);
}

}  // namespace machine
