// The profiled process: the state that its threads share.
#pragma once

#include "framework/driver/native/code_cache/code_watch.h"
#include "framework/driver/native/code_cache/stress.h"
#include "framework/driver/native/load/elf_loader.h"
#include "framework/driver/native/machine/driver_lock.h"
#include "framework/driver/native/machine/own_descriptors.h"
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

// The files of /proc that describe the process. The program reads contents about itself; the
// descriptors are the kernel's own.

enum class ProcFile { kOther, kExecutable, kMaps, kSmaps, kEnvironment, kAuxiliaryVector };

struct ShownFile {
    ProcFile file = ProcFile::kOther;
    std::string text;  // as of the last read from the file's start
};

// Shown files by inode, because programs copy, inherit and pass on descriptors.
class ShownFiles {
  public:
    // Does nothing if the descriptor's file is not in /proc.
    void add(int descriptor, ProcFile file);
    // nullptr if the descriptor does not belong to a shown file.
    ShownFile* find(long descriptor);

  private:
    std::map<std::pair<dev_t, ino_t>, ShownFile> files_;
};

class Process {
  public:
    // `runs_thread` runs a started thread of the program until the thread ends.
    explicit Process(void (*runs_thread)(Thread&))
        : translator(memory, watch, cache, regions, allocation_functions, interpreter, trace),
          run_thread(runs_thread) {}
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    // Attaches to the trace segment, and sets up the first thread and the code cache. Returns false
    // after a message if that fails.
    bool initialise(const trace::Launch& launch);
    // Loads the program and builds its stack. If that fails, ends the process with a message.
    void load(const trace::Launch& launch, const std::vector<std::string>& argv,
              char** environment);
    // Runs the first thread, and ends with the last one.
    [[noreturn]] void run();

    // Forgets translations of code in [start, end), which has changed or no longer exists.
    void code_changed(std::uint64_t start, std::uint64_t end) { translator.invalidate(start, end); }
    // Tells the collector that the process ends in an orderly way.
    void ends();
    void mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                const std::string& path);
    void unmapped(std::uint64_t start, std::uint64_t end);
    // Lines of the interpreter have changed.
    void forget_steps() const;
    bool captures_mappings() const { return trace.captures(trace::kCaptureMappings); }
    // Tells profilers about the thread's changes of page_kinds.
    void tell_pages(Thread& thread);
    // To be called after a system call. Records that changes by other threads came before the next
    // references of this thread.
    void look_at_pages(Thread& thread) const;
    // Makes all threads except `thread` change to their current version.
    void switch_others(const Thread& thread) const;
    // Forgets all translations. First waits, without the lock, until no thread executes those from
    // before the previous flush.
    void flush();
    // The PKRU that the kernel gives to new programs and to signal handlers; see read_pkru().
    std::uint32_t initial_pkru() const { return initial_pkru_; }

    // --- Threads; see clone.cpp.

    // A Thread for a new thread of the program: one whose kernel thread has ended, or a new one.
    // nullptr if there is no memory.
    Thread* idle_thread();
    std::uint32_t new_thread_number() { return ++last_thread_number_; }
    // The calling thread ends. True if it is the last one.
    bool leave(Thread& thread);
    // The instructions of all threads, with Spec::objects. Counts of other threads may be late.
    std::uint64_t instructions() const;
    // With Spec::threads: tells the collector the names of all running threads.
    void note_names();
    bool is_only_thread(const Thread& thread) const {
        return running_.size() == 1 && running_.front() == &thread;
    }
    // The running thread with the kernel's `tid`, or nullptr.
    Thread* running_thread(pid_t tid) const;
    // True if another process shares the caller's memory.
    bool shares_memory() const;
    // True if `tid` is a thread of such a process.
    bool shares_memory_with(pid_t tid) const;
    void join(Thread& thread) { running_.push_back(&thread); }
    // Waits for threads that have left the driver but not the kernel, because they hold locks of
    // libc. A thread whose number belongs to a running one again has already left.
    void wait_for_ended_threads() const;
    // To be called in the child of a fork, where `thread` is the only thread.
    void keep_only(Thread& thread);

    DriverLock lock;
    Schedule schedule{lock};
    TraceTables trace{kDescriptorCare};
    MemoryMap memory;
    CodePlaces code_places;
    SharedMemory shared_memory;
    PageKinds page_kinds;  // only if mappings are captured
    CodeWatch watch{memory};
    CodeCache cache;
    Regions regions;
    AllocationFunctions allocation_functions;
    driver::Interpreter interpreter;
    Translator translator;
    void (*const run_thread)(Thread&);
    Stress stress;
    SignalActions actions;
    ShownFiles shown_files;
    LoadedProgram program;
    std::map<std::uint64_t, std::uint64_t> attached;  // by shmat(2): start -> end
    std::uint64_t break_end = 0;                      // current program break
    // Attributes that the program has set for itself.
    struct Attributes {
        std::uint64_t personality = 0;  // as the program sees it
        MemoryLimits memory_limits;
        bool sets_death_signal = false;  // PR_SET_PDEATHSIG
    } attributes;
    std::atomic<bool> filters_calls = false;  // the program has installed a seccomp(2) filter

    // The members of kSynchronousSignals that any thread has ever waited for.
    std::atomic<std::uint64_t> waited_signals = 0;

  private:
    // Returns false after a message if the specification hides an unknown feature.
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
