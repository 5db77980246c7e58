// A thread of the program: its context, its trace, its signals. What runs it: run/execution.h.
#pragma once

#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/process/allocations.h"
#include "framework/driver/native/process/bursts.h"
#include "framework/driver/native/process/schedule.h"
#include "framework/driver/native/process/signals.h"
#include "framework/driver/native/trace/thread_trace.h"

#include <atomic>
#include <string>

namespace assay::native {

class Process;
class Thread;

// Thread::Relations::tracer of a thread that nobody traces. 0 would be the parent of the first
// process of a PID namespace.
inline constexpr pid_t kNoTracer = -1;

// The one that the caller runs on, whose context gs points at.
Thread& this_thread();

class Thread {
  public:
    explicit Thread(Process& owner);
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    // Maps what the thread needs in the driver, for a slot of the trace segment. False if there is
    // no memory. The kernel's threads use it one after the other.
    bool map(std::uint32_t slot, std::uint32_t buffers);
    // The calling thread of the kernel is this thread from now on: `number` in the trace.
    void begin(std::uint32_t number, std::uint64_t signal_mask);
    // In the child of a fork, whose tables have moved (TraceTables::move_to): the trace follows, as
    // that of the first thread. False if there is no memory.
    bool move_to_new_image();
    // Ends the process with status 125, after one line for the user.
    [[noreturn]] void refuse(const std::string& reason, int exit_status = 125) const;
    // Ends the process.
    [[noreturn]] void finish(int exit_status) const;
    // The same, by SIGKILL.
    [[noreturn]] void kill() const;
    // The handler of all signals (SignalActions).
    static void handle_signal(int number, siginfo_t* info, void* ucontext);
    // Delivers the pending signal: sets up its handler's frame, or ends the process. Returns the
    // signal's number if there is a handler, else 0.
    int deliver_signal();
    // From another thread, which holds the driver's lock: this one leaves translated code.
    void ask_to_leave() { signals.ask_to_leave(pid_, tid_); }
    // It ends, once the system call that is being executed has been.
    void end() { ended_ = true; }
    bool ended() const { return ended_; }

    // Whether calls and returns are recorded, and handlers of signals.
    bool captures_calls() const;
    bool tells_handlers() const;
    // Where the driver itself, in the system call that is being executed, gives the stack pointer
    // another value, or has let a child use the stack: the site for that, and the record.
    std::uint32_t stack_site();
    void record_stack(std::uint32_t site);

    pid_t tid() const { return tid_; }
    // The process that the thread belongs to, in the kernel: see start_sharing_process().
    pid_t pid() const { return pid_; }
    // The process whose only thread this was has ended: the calling thread stands for it.
    void hand_to_caller();
    // From another thread, which holds the driver's lock: keeps this one from entering translated
    // code. False if it is there now, and has been asked to leave, for which it needs the lock.
    bool hold();
    void let_go();
    // In the thread, which holds the lock: waits without it until it is let go. False if that is
    // not necessary.
    bool wait_while_held();
    // A stack for driver code other than the thread's own.
    stack_t driver_stack() const;
    // The version of translated code that it is to execute.
    Version version() const;
    // The generation of the code cache that the thread may be executing; 0 if none.
    std::uint32_t running() const { return running_.load(std::memory_order_acquire); }
    void set_running(std::uint32_t generation) {
        running_.store(generation, std::memory_order_release);
    }

    Process& process;
    Context* context = nullptr;
    ThreadTrace trace;
    Intervals intervals;
    Bursts bursts;
    Allocations allocations;
    std::uint64_t pages_seen = 0;  // PageKinds::changes()
    Stepper stepper;
    CodeFaults faults;
    Signals signals;
    Turn turn;  // Process::schedule
    // To the processes around it.
    struct Relations {
        // Dispositions of signals: the process's, or those of the child of vfork(2).
        SignalActions* actions = nullptr;
        // In a process that shares its parent's memory: the trace is the parent's, and does not
        // end with the child.
        bool shares_trace = false;
        // It runs in a process that has its parent's memory and descriptors (CLONE_VM,
        // CLONE_FILES).
        bool shares_descriptors = false;
        // A child of vfork(2) has taken it over.
        bool lent_to_child = false;
        // Its parent, by which it has asked to be traced (trace_calls.cpp); or kNoTracer.
        pid_t tracer = kNoTracer;
        // seccomp(2)'s strict mode.
        bool strict = false;
    } relations;
    // What the driver tells others at the thread's end, since the kernel was not asked to;
    // clone.cpp.
    struct EndNotice {
        std::uint64_t clear_child_tid = 0;  // address of set_tid_address(2); 0: none
        std::uint64_t robust_list = 0;      // of set_robust_list(2), likewise
    } end_notice;

    // Before its turn, where threads run one at a time: what the filters know of.
    void forget_recent_lines();

  private:
    void forget_references();
    void set_gs() const;
    void leave_lock() const;
    // Says to the collector that the process ends in an orderly way.
    void process_ends() const;
    // Ends the process by a signal: for the collector it has not ended by itself.
    [[noreturn]] void die_of(int number) const;
    [[noreturn]] void refuse_fault(int number, const siginfo_t& info,
                                   const ucontext_t* interrupted) const;

    pid_t tid_ = 0, pid_ = 0;
    unsigned char* stacks_ = nullptr;  // of signal handlers, and of the thread
    bool ended_ = false;
    std::atomic<std::uint32_t> running_{0};
    std::atomic<std::uint32_t> held_{0};
};

// The tracer of a thread that has asked to be traced (PTRACE_TRACEME), which is its parent: see
// syscalls/trace_calls.cpp.

// Whether a process is a profiled one, too.
bool runs_in_driver(long pid);
// Has the kernel stop the thread for its tracer at the next signal. False if that is gone. Ends the
// process with a message if it cannot be traced.
bool begin_stop_for_tracer(Thread& thread);
// Behind that stop, with the result of the system call that it came with.
void end_stop_for_tracer(Thread& thread, long result);
// With a signal pending: stops the thread for its tracer, if it has one, and there. False if the
// tracer has taken the signal away.
bool stop_for_tracer(Thread& thread);
// That result if the tracer's driver has let the thread go, in the place of a system call's 0.
inline constexpr long kLetGo = 1;

}  // namespace assay::native
