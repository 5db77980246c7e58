// The profiled process: what its threads share.
#pragma once

#include "framework/driver/native/code_cache/code_watch.h"
#include "framework/driver/native/code_cache/stress.h"
#include "framework/driver/native/load/elf_loader.h"
#include "framework/driver/native/machine/driver_lock.h"
#include "framework/driver/native/memory/free_addresses.h"
#include "framework/driver/native/memory/memory_map.h"
#include "framework/driver/native/memory/page_kinds.h"
#include "framework/driver/native/process/schedule.h"
#include "framework/driver/native/process/thread.h"
#include "framework/driver/native/signals/signal_actions.h"
#include "framework/driver/native/translate/translator.h"
#include "framework/trace/launch.h"

#include <sys/types.h>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace assay::native {

// The contents of the files of /proc that describe the process: what the program reads there is
// about itself. The descriptors are the kernel's own; only what is read from them is not.

enum class ProcFile { kOther, kExecutable, kMaps, kSmaps, kEnvironment, kAuxiliaryVector };

struct ShownFile {
    ProcFile file = ProcFile::kOther;
    std::string text;  // as it was at the last read from its beginning
};

// By what they are, not by descriptor: those are copied, inherited and passed on.
class ShownFiles {
  public:
    // Nothing happens if the descriptor's file is not of /proc.
    void add(int descriptor, ProcFile file);
    // nullptr if the descriptor is not of such a file.
    ShownFile* find(long descriptor);

  private:
    std::map<std::pair<dev_t, ino_t>, ShownFile> files_;
};

class Process {
  public:
    // `runs_thread` runs a thread of the program, which has begun, until it ends.
    explicit Process(void (*runs_thread)(Thread&))
        : translator(memory, watch, cache, regions, allocation_functions, trace),
          run_thread(runs_thread) {}
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    // Attaches to the trace segment, sets up the first thread and the code cache. False, after a
    // message, if that is impossible.
    bool initialise(const trace::Launch& launch);
    // Loads the program and builds its stack; ends the process with a message if it cannot.
    void load(const trace::Launch& launch, const std::vector<std::string>& argv,
              char** environment);
    // Runs the first thread, and ends with the last one.
    [[noreturn]] void run();

    // Forgets translations of code in [start, end), which has changed or is not there any more.
    void code_changed(std::uint64_t start, std::uint64_t end) { translator.invalidate(start, end); }
    // Says to the collector that the process ends in an orderly way.
    void ends();
    // Code of a file was mapped, or is not any more.
    void mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                const std::string& path);
    void unmapped(std::uint64_t start, std::uint64_t end);
    bool captures_mappings() const { return trace.captures(trace::kCaptureMappings); }
    // Tells profilers what the thread has just done to page_kinds.
    void tell_pages(Thread& thread);
    // After a system call: what others have done to page_kinds came before what follows.
    void look_at_pages(Thread& thread) const;
    // Threads other than `thread` go over to the version that is theirs now.
    void switch_others(const Thread& thread) const;
    // Forgets all translations, once no thread executes those of before the last time: until then
    // it waits, without the lock.
    void flush();
    // PKRU as the kernel gives it to new programs and to handlers of signals; see read_pkru().
    std::uint32_t initial_pkru() const { return initial_pkru_; }

    // --- Threads; see clone.cpp.

    // For a new thread of the program: one whose predecessor in the kernel has ended, or a new one.
    // nullptr if there is no memory.
    Thread* idle_thread();
    std::uint32_t new_thread_number() { return ++last_thread_number_; }
    // The calling thread ends; true if it is the last one.
    bool leave(Thread& thread);
    // That all threads have executed, with Spec::objects. Those of others may lag behind.
    std::uint64_t instructions() const;
    // With Spec::threads: tells the collector how the threads are called that have not ended.
    void note_names();
    bool is_only_thread(const Thread& thread) const {
        return running_.size() == 1 && running_.front() == &thread;
    }
    // The one that is the kernel's `tid`; nullptr if there is none.
    Thread* running_thread(pid_t tid) const;
    // Whether another process has the caller's memory.
    bool shares_memory() const;
    // Whether `tid` is a thread of such a process.
    bool shares_memory_with(pid_t tid) const;
    void join(Thread& thread) { running_.push_back(&thread); }
    // Threads that have left the driver but not yet the kernel hold locks of libc. Those whose
    // number a running one has have left it.
    void wait_for_ended_threads() const;
    // In the child of a fork: `thread` is the only one.
    void keep_only(Thread& thread);

    DriverLock lock;
    Schedule schedule{lock};
    TraceTables trace;
    MemoryMap memory;
    CodePlaces code_places;
    SharedMemory shared_memory;
    PageKinds page_kinds;  // where mappings are captured
    CodeWatch watch{memory};
    CodeCache cache;
    Regions regions;
    AllocationFunctions allocation_functions;
    Translator translator;
    void (*const run_thread)(Thread&);
    Stress stress;
    SignalActions actions;
    ShownFiles shown_files;
    LoadedProgram program;
    std::map<std::uint64_t, std::uint64_t> attached;  // by shmat(2): ends by starts
    std::uint64_t break_end = 0;                      // current program break
    // What the program has set for itself.
    struct Attributes {
        std::uint64_t personality = 0;  // as the program knows it
        MemoryLimits memory_limits;
        bool sets_death_signal = false;  // PR_SET_PDEATHSIG
    } attributes;
    std::atomic<bool> filters_calls = false;  // has installed a filter of seccomp(2)

    // Of kSynchronousSignals, what any thread has ever waited for.
    std::atomic<std::uint64_t> waited_signals = 0;

  private:
    // False, after a message, if the specification hides an unknown feature.
    bool choose_processor();
    void note_name(const Thread& thread);
    void wait_for_old_translations();

    std::uint32_t initial_pkru_ = 0;
    std::vector<std::unique_ptr<Thread>> threads_;
    std::vector<Thread*> running_, ended_;
    std::uint32_t last_thread_number_ = 0;
    std::uint64_t instructions_of_ended_ = 0;
};

}  // namespace assay::native
