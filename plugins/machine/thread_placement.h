// Which core a thread runs on.
#pragma once

#include "plugins/machine/machine.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace machine {

class ThreadPlacement {
  public:
    // The machine stays its owner's, and there.
    explicit ThreadPlacement(const Machine& machine) : machine_(machine), living_(machine.cores) {}

    // Threads are numbered from 0 in the order of their creation. One that is asked for the first
    // time is placed.
    std::uint32_t core_of(std::uint32_t thread);
    // The thread has ended.
    void end(std::uint32_t thread);

  private:
    std::uint32_t place(std::uint32_t thread) const;

    const Machine& machine_;
    std::vector<std::uint32_t> living_;  // threads, by core
    std::unordered_map<std::uint32_t, std::uint32_t> core_of_;
};

}  // namespace machine
