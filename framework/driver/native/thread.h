// A thread of the program: its context, its trace, its signals, and the loop that runs it.
#pragma once

#include "framework/driver/native/capture/bursts.h"
#include "framework/driver/native/capture/intervals.h"
#include "framework/driver/native/capture/thread_trace.h"
#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/signals/signals.h"

#include <atomic>
#include <string>

namespace assay::native {

class Process;
class Thread;
struct Region;

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
    // Runs the program from context->pc on until the thread ends.
    void run();
    // Ends the process with status 125, after one line for the user.
    [[noreturn]] void refuse(const std::string& reason, int exit_status = 125) const;
    // Ends the process.
    [[noreturn]] void finish(int exit_status) const;
    // The same, by SIGKILL.
    [[noreturn]] void kill() const;
    // The process ends by a signal: for the collector it has not ended by itself.
    void process_is_killed() const { leave_lock(); }
    // The next instruction runs by itself: it changes code in its own page.
    void run_next_alone() { alone_ = true; }
    // Forgets all translations, once no other thread executes those of before the last time.
    void flush();
    // Makes run() return, once the system call that is being executed has been.
    void end() { ended_ = true; }

    // Where the driver itself, in the system call that is being executed, gives the stack pointer
    // another value: the site for that, and the record.
    std::uint32_t stack_site();
    void record_stack(std::uint32_t site);

    std::uint32_t slot() const { return slot_; }
    pid_t tid() const { return tid_; }
    // The process that the thread belongs to, in the kernel: see start_sharing_process().
    pid_t pid() const { return pid_; }
    // The process whose only thread this was has ended: the calling thread stands for it.
    void hand_to_caller();
    // From another thread, which holds the driver's lock: keeps this one from entering translated
    // code. False if it is there now, and has been asked to leave, for which it needs the lock.
    bool hold();
    void let_go();
    // A stack for driver code other than the thread's own.
    stack_t driver_stack() const;
    // The version of translated code that it is to execute.
    Version version() const;
    // The generation of the code cache that the thread may be executing; 0 if none.
    std::uint32_t running() const { return running_.load(std::memory_order_acquire); }

    Process& process;
    Context* context = nullptr;
    ThreadTrace trace;
    Intervals intervals;
    Bursts bursts;
    Signals signals;
    // Dispositions of signals: the process's, or those of the child of vfork(2).
    SignalActions* actions;
    // In a process that shares its parent's memory: the trace is the parent's, and does not end
    // with the child.
    bool shares_trace = false;
    // It runs in a process that has its parent's memory and descriptors (CLONE_VM, CLONE_FILES).
    bool shares_descriptors = false;
    // A child of vfork(2) has taken it over.
    bool lent_to_child = false;
    // Its parent, by which it has asked to be traced (trace_calls.cpp); 0: nobody.
    pid_t tracer = 0;
    // seccomp(2)'s strict mode.
    bool strict = false;
    // What the driver tells others at the thread's end, since the kernel was not asked to;
    // clone.cpp.
    struct EndNotice {
        std::uint64_t clear_child_tid = 0;  // address of set_tid_address(2); 0: none
        std::uint64_t robust_list = 0;      // of set_robust_list(2), likewise
    } end_notice;

  private:
    void forget_references();
    void set_gs() const;
    void leave_lock() const;
    // Says to the collector that the process ends in an orderly way.
    void process_ends() const;
    void wait_while_held();
    void enter();
    bool handle_inside();
    bool captures_calls() const;
    void deliver_signal();
    void record_handler(int signal, std::uint64_t interrupted);
    void record_at(const Exit& exit, std::uint32_t id);
    bool is_unchanged(const Block& block) const;
    void handle_exit();
    [[noreturn]] void refuse_instruction() const;  // at Context::pc
    void do_unsupported();                         // at Context::pc
    void do_interrupt_return(std::uint64_t pc);
    void follow(const Exit& exit, std::uint32_t id);
    void count_exit();
    void change_burst_if_due();
    void reach(const Block& block);
    void reach_interval(const Block& block);
    Block* block_for(std::uint64_t pc, bool by_indirect_branch = false);
    void raise_fetch_fault(std::uint64_t pc);
    bool needs_flush(const Region& region, std::uint64_t pc);
    void indirect_miss();

    std::uint32_t slot_ = 0;
    pid_t tid_ = 0, pid_ = 0;
    unsigned char* stacks_ = nullptr;  // of signal handlers, and of the thread
    bool ended_ = false;
    bool alone_ = false;
    std::atomic<std::uint32_t> running_{0};
    std::atomic<std::uint32_t> held_{0};
    Block* next_ = nullptr;  // known block of context->pc
};

// Does what the program says by the marker at `pc` (markers.cpp).
void do_marker(Thread& thread);
// Has the kernel stop the thread for its tracer at the next signal. False if that is gone. Ends the
// process with a message if it cannot be traced (trace_calls.cpp).
bool begin_stop_for_tracer(Thread& thread);
// Behind that stop, with the result of the system call that it came with.
void end_stop_for_tracer(Thread& thread, long result);
// Tells profilers that the thread is about to create another one.
void note_new_thread(Thread& parent, std::uint32_t number);
void note_thread_end(Thread& thread);
// Emulates or passes on the system call in context->gpr (syscalls.cpp).
void do_syscall(Thread& thread, std::uint64_t syscall_pc);
// Records the references of an instruction that needs computing (special_references.cpp).
void record_special(Thread& thread, const Instruction& instruction, std::uint32_t first_site);
// The values of such an instruction (special_values.cpp): reads those of before, and records all
// behind it.
void read_special_values(Thread& thread, const Instruction& instruction);
void record_special_values(Thread& thread, const Instruction& instruction,
                           std::uint32_t first_site);
// Those of any instruction that only the saved state has, before it or behind it, for translated
// code to record.
void read_saved_values(Thread& thread, const Instruction& instruction, bool before);
// Answers cpuid or xgetbv as the level that the specification asks for (identification.cpp).
void identify(Thread& thread, const Instruction& instruction);

}  // namespace assay::native
