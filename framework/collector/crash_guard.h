// Survives crashes of profilers.
//
// A profiler's function runs between sigsetjmp and siglongjmp: a fatal signal on this thread
// jumps back out of it. That leaves whatever the function was doing half done (locks held, heap
// perhaps inconsistent), which is acceptable here because
//   - the profiler that crashed is never called again, nor unloaded;
//   - the frames left behind are the profiler's own: assay calls nothing through them that owns
//     a resource;
//   - the alternative is to lose the columns of all other profilers, and with them a run that
//     may have taken hours. If the heap was damaged and assay crashes later, nothing is worse
//     than it would have been.
// C++ exceptions that leave a profiler are caught too. A crash on another thread of the profiler
// cannot be attributed and ends the collector as it always would.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

namespace assay::collector {

class CrashGuard {
  public:
    // Installs the signal handlers, and an alternate stack for the calling thread: the only one
    // that may call run().
    CrashGuard();
    ~CrashGuard();
    CrashGuard(const CrashGuard&) = delete;
    CrashGuard& operator=(const CrashGuard&) = delete;

    // Calls `function()`. Returns "", or how it crashed.
    template <typename Function>
    std::string run(Function&& function) {
        using Callable = std::remove_reference_t<Function>;
        return call([](void* callable) { (*static_cast<Callable*>(callable))(); },
                    const_cast<void*>(static_cast<const void*>(std::addressof(function))));
    }

  private:
    std::string call(void (*function)(void*), void* argument);

    struct Saved;
    std::unique_ptr<Saved> saved_;
};

}  // namespace assay::collector
