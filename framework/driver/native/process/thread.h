// A thread of the program: its context, its trace, its signals. run/execution.h runs it.
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

// The value of Thread::Relations::tracer without a tracer. It cannot be 0, which is the parent of
// the first process of a PID namespace.
inline constexpr pid_t kNoTracer = -1;

// The Thread of the calling thread: gs points at its context.
Thread& this_thread();

class Thread {
  public:
    explicit Thread(Process& owner);
    Thread(const Thread&) = delete;
    Thread& operator=(const Thread&) = delete;

    // Maps the thread's memory in the driver, for a slot of the trace segment. False if there is no
    // memory. Kernel threads use one Thread one after the other.
    bool map(std::uint32_t slot, std::uint32_t buffers);
    // The calling kernel thread becomes this thread, with `number` in the trace.
    void begin(std::uint32_t number, std::uint64_t signal_mask);
    // To be called in the child of a fork, after TraceTables::move_to(): the trace becomes that of
    // the first thread of the new image. False if there is no memory.
    bool move_to_new_image();
    // Prints one line for the user and ends the process with `exit_status`.
    [[noreturn]] void refuse(const std::string& reason, int exit_status = 125) const;
    // Ends the process.
    [[noreturn]] void finish(int exit_status) const;
    // Ends the process by SIGKILL.
    [[noreturn]] void kill() const;
    // The handler of all signals (SignalActions).
    static void handle_signal(int number, siginfo_t* info, void* ucontext);
    // Delivers the pending signal: pushes its handler's frame, or ends the process. Returns the
    // signal's number if there is a handler, otherwise 0.
    int deliver_signal();
    // Called by another thread, with the driver's lock. This thread leaves translated code.
    void ask_to_leave() { signals.ask_to_leave(pid_, tid_); }
    // Ends the thread after the current system call.
    void end() { ended_ = true; }
    bool ended() const { return ended_; }

    // True if calls and returns are recorded, then the same for signal handlers.
    bool captures_calls() const;
    bool tells_handlers() const;
    // For a system call that changes the stack pointer or lets a child use the stack. stack_site()
    // returns the site before the call; record_stack() writes the record after it.
    std::uint32_t stack_site();
    void record_stack(std::uint32_t site);

    pid_t tid() const { return tid_; }
    // The thread's process in the kernel: see start_sharing_process().
    pid_t pid() const { return pid_; }
    // The process whose only thread this was has ended: the calling thread takes this Thread over.
    void hand_to_caller();
    // Called by another thread, which holds the driver's lock. Keeps this thread from entering
    // translated code. False if this thread executes translated code now. It is then asked to
    // leave, for which it needs the lock.
    bool hold();
    void let_go();
    // Called by the thread itself, with the lock: waits without the lock until let_go(). False if
    // the thread is not held.
    bool wait_while_held();
    // A stack for driver code, other than the thread's own.
    stack_t driver_stack() const;
    // The version of translated code that the thread has to execute.
    Version version() const;
    // The generation of the code cache that the thread may be executing; 0: no translated code.
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
    // Relations to other processes.
    struct Relations {
        // The process's signal actions, or those of a child of vfork(2).
        SignalActions* actions = nullptr;
        // The thread runs in a process that shares its parent's memory. The trace is the parent's,
        // and does not end with the child.
        bool shares_trace = false;
        // The process also shares its parent's descriptors (CLONE_VM, CLONE_FILES).
        bool shares_descriptors = false;
        // A child of vfork(2) uses this Thread now.
        bool lent_to_child = false;
        // The parent, after PTRACE_TRACEME (trace_calls.cpp); otherwise kNoTracer.
        pid_t tracer = kNoTracer;
        // seccomp(2)'s strict mode.
        bool strict = false;
    } relations;
    // Notices that the driver sends at the thread's end, instead of the kernel; see clone.cpp.
    struct EndNotice {
        std::uint64_t clear_child_tid = 0;  // address from set_tid_address(2); 0: none
        std::uint64_t robust_list = 0;      // address from set_robust_list(2); 0: none
    } end_notice;

    // To be called before a turn, if threads run one at a time: clears the filters.
    void forget_recent_lines();

  private:
    void forget_references();
    void set_gs() const;
    void leave_lock() const;
    // Tells the collector that the process ends in an orderly way.
    void process_ends() const;
    // Ends the process by a signal. The collector sees that it has not ended by itself.
    [[noreturn]] void die_of(int number) const;
    [[noreturn]] void refuse_fault(int number, const siginfo_t& info,
                                   const ucontext_t* interrupted) const;

    pid_t tid_ = 0, pid_ = 0;
    unsigned char* stacks_ = nullptr;  // for signal handlers, and for the thread
    bool ended_ = false;
    std::atomic<std::uint32_t> running_{0};
    std::atomic<std::uint32_t> held_{0};
};

// The tracer of a thread that has asked to be traced (PTRACE_TRACEME) is its parent: see
// syscalls/trace_calls.cpp.

// True if the process also runs under assay.
bool runs_in_driver(long pid);
// Makes the kernel stop the thread for its tracer at the next signal. False if the tracer has
// ended. Ends the process with a message if it cannot be traced.
bool begin_stop_for_tracer(Thread& thread);
// To be called after that stop, with the result of the interrupted system call.
void end_stop_for_tracer(Thread& thread, long result);
// Stops the thread for its tracer, with a pending signal. False if the tracer removed the signal.
bool stop_for_tracer(Thread& thread);
// The result, instead of a system call's 0, if the tracer's driver has let the thread go.
inline constexpr long kLetGo = 1;

}  // namespace assay::native
