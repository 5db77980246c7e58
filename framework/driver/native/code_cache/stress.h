// A mode for tests that makes rare events frequent: the code cache is small, units are forgotten at
// random, and threads are interrupted at random places of translated code. The program's results
// and counts must stay the same.
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"

#include <csignal>

namespace assay::native {

class Stress {
  public:
    void enable() { enabled_ = true; }
    bool enabled() const { return enabled_; }
    // From now on SIGTRAP interrupts the calling thread from time to time.
    void begin_thread() const;
    // True for such an interruption.
    static bool is_interruption(int number, const siginfo_t& info);
    // Forgets a random unit from time to time. True if the caller has to flush all translations.
    bool disturb(CodeCache& cache);

  private:
    std::uint32_t next_random();

    bool enabled_ = false;
    std::uint32_t random_ = 0x9e3779b9;
};

}  // namespace assay::native
