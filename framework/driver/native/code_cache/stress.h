// A mode for tests that makes rare things happen all the time: the code cache is small, units are
// forgotten at random, and threads are interrupted at random places of translated code. None of it
// may change what the program does, or how often.
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"

#include <csignal>

namespace assay::native {

class Stress {
  public:
    void enable() { enabled_ = true; }
    bool enabled() const { return enabled_; }
    // The calling thread is interrupted now and then from now on, by SIGTRAP.
    void begin_thread() const;
    // True for such an interruption.
    static bool is_interruption(int number, const siginfo_t& info);
    // Forgets something, perhaps. True if all translations had better be flushed.
    bool disturb(CodeCache& cache);

  private:
    std::uint32_t next_random();

    bool enabled_ = false;
    std::uint32_t random_ = 0x9e3779b9;
};

}  // namespace assay::native
