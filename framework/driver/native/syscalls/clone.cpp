
#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/address_space.h"
#include "framework/driver/native/process/process.h"
#include "framework/driver/native/syscalls/syscalls.h"
#include "framework/driver/shared/new_image.h"

#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

namespace assay::native {
namespace {

constexpr std::uint64_t kClone2Flags = 0xffffffff;  // clone(2) has only these flags

void write_tid(std::uint64_t where, pid_t tid) {
    write_target(where, &tid, sizeof tid);
}

// The child has the caller's registers, except the result, the stack and fs.
void set_child_registers(Context& context, const CloneArguments& arguments) {
    context.gpr[RAX] = 0;
    if (arguments.stack != 0) context.gpr[RSP] = arguments.stack;
    if (arguments.flags & CLONE_SETTLS) context.target_fs = arguments.tls;
}

// The registers of a thread, as the program sees them.
struct Registers {
    std::uint64_t gpr[16];
    std::uint64_t rflags, pc, target_fs, target_gs;
    unsigned char vector_state[sizeof Context::vector_state];
};

Registers registers_of(const Context& context) {
    Registers out;
    std::memcpy(out.gpr, context.gpr, sizeof out.gpr);
    out.rflags = context.rflags;
    out.pc = context.pc;
    out.target_fs = context.target_fs;
    out.target_gs = context.target_gs;
    std::memcpy(out.vector_state, context.vector_state, sizeof out.vector_state);
    return out;
}

void set_registers(Context& context, const Registers& registers) {
    std::memcpy(context.gpr, registers.gpr, sizeof registers.gpr);
    context.rflags = registers.rflags;
    context.pc = registers.pc;
    context.target_fs = registers.target_fs;
    context.target_gs = registers.target_gs;
    std::memcpy(context.vector_state, registers.vector_state, sizeof registers.vector_state);
}

// Blocks all signals, because none may arrive while a process or thread is made: it would arrive in
// both processes, or in a thread without a context. False if a signal is already pending.
bool hold_signals(const Thread& thread) {
    Signals::block_all();
    return !thread.signals.pending();
}

// --- Threads. The driver creates them with libc, so that driver code finds libc's state at fs. The
// program's own libc sets up its own state.

struct NewThread {
    Thread& thread;
    const CloneArguments& arguments;
    std::uint32_t number;
    std::uint64_t signal_mask;
    std::atomic<std::uint32_t> tid{0};
};

// The kernel clears this word when the thread ends, and wakes a waiting thread. The driver's libc
// does not need it, because its thread is detached. Filters of sandboxes may forbid
// set_tid_address(2), because no libc calls it there: Chromium's filter ends the process. With
// filters or a schedule the driver clears the word itself.
void set_clear_child_tid(Thread& thread, std::uint64_t where) {
    thread.end_notice = {};
    if (thread.process.filters_calls || thread.process.schedule.wanted())
        thread.end_notice.clear_child_tid = where;
    else
        syscall(SYS_set_tid_address, where);
}

// Does the kernel's work (kernel/fork.c, mm_release), but earlier. The thread that waits may reuse
// the memory of the list of robust futexes before the kernel reads the list. An empty list, the
// usual case, is therefore removed first.
void notify_of_end(const Thread::EndNotice& notice) {
    if (notice.clear_child_tid == 0) return;
    std::uint64_t first = 0;
    if (read_target(notice.robust_list, &first, sizeof first) && first == notice.robust_list)
        syscall(SYS_set_robust_list, nullptr, sizeof(robust_list_head));
    write_tid(notice.clear_child_tid, 0);
    syscall(SYS_futex, notice.clear_child_tid, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void* run_new_thread(void* argument) {
    auto& start = *static_cast<NewThread*>(argument);
    Thread& thread = start.thread;
    const CloneArguments& arguments = start.arguments;
    const auto tid = static_cast<std::uint32_t>(gettid());
    if (!(arguments.flags & CLONE_FILES)) unshare(CLONE_FILES);
    if (!(arguments.flags & CLONE_FS)) unshare(CLONE_FS);
    if (arguments.flags & CLONE_CHILD_CLEARTID)
        set_clear_child_tid(thread, arguments.child_tid);
    else
        set_clear_child_tid(thread, 0);
    // Removes the robust list of the driver's libc, which does not use it.
    syscall(SYS_set_robust_list, nullptr, sizeof(robust_list_head));
    thread.begin(start.number, start.signal_mask);
    if (arguments.flags & CLONE_CHILD_SETTID)
        write_tid(arguments.child_tid, static_cast<pid_t>(tid));
    start.tid.store(tid, std::memory_order_release);
    trace::futex_wake(start.tid);
    // `start` no longer exists from here on.
    thread.process.run_thread(thread);
    Signals::block_all();
    return nullptr;
}

// Returns a thread that continues at the parent's place, or nullptr if there are too many threads.
Thread* thread_like(Thread& parent, const CloneArguments& arguments) {
    Process& process = parent.process;
    Thread* thread = process.idle_thread();
    if (thread == nullptr) return nullptr;
    if (process.cache.serves_one_thread()) {
        process.cache.begin_threads();
        parent.allocations.leave_out_no_more();
        process.flush();
    }
    set_registers(*thread->context, registers_of(*parent.context));
    set_child_registers(*thread->context, arguments);
    return thread;
}

// The signal with which all threads change their user. libc installs a handler for it with its
// first thread: glibc's internal-signals.h, nptl/pthread_create.c. The driver's libc must not
// replace the handler of the program's libc.
constexpr int kSetXid = 33;

// Creates a thread of libc on `stack_bytes` of `thread`'s stack for driver code, and waits until
// the new thread has set `ready`. Returns 0 or an error number.
int create_thread(Thread& thread, std::size_t stack_bytes, void* (*run)(void*), void* argument,
                  std::atomic<std::uint32_t>& ready) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, thread.driver_stack().ss_sp, stack_bytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    thread.process.join(thread);
    pthread_t id;
    const int error = pthread_create(&id, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    thread.relations.actions->put_back_in_kernel(kSetXid);
    if (error == 0) {
        thread.process.schedule.add(thread);
        while (ready.load(std::memory_order_acquire) == 0) trace::futex_wait(ready, 0, nullptr);
    } else {
        thread.process.leave(thread);
    }
    return error;
}

long start_thread(Thread& parent, const CloneArguments& arguments) {
    Thread* thread = thread_like(parent, arguments);
    if (thread == nullptr) return -EAGAIN;
    NewThread start{*thread, arguments, parent.process.new_thread_number(), parent.signals.mask()};
    parent.trace.note_new_thread(start.number);
    const int error =
        create_thread(*thread, thread->driver_stack().ss_size, &run_new_thread, &start, start.tid);
    if (error != 0) return -error;
    return static_cast<pid_t>(start.tid.load(std::memory_order_relaxed));
}

// --- Processes.

// Arguments for the kernel's clone(2), which has one argument for two results: the thread's number
// and the pidfd. With a pidfd, do_clone() stores the number itself.
struct KernelArguments {
    std::uint64_t flags, parent_tid;
};

KernelArguments kernel_arguments(const CloneArguments& arguments, std::uint64_t not_in_kernel) {
    const std::uint64_t flags = arguments.flags & kClone2Flags & ~not_in_kernel;
    if (arguments.pidfd == 0) return {flags, arguments.parent_tid};
    return {flags & ~std::uint64_t{CLONE_PARENT_SETTID}, arguments.pidfd};
}

// In the child of a fork: starts a new profile, with empty caches. False if it is not followed.
bool become_image(Thread& thread, int parent) {
    TraceTables& trace = thread.process.trace;
    if (trace.channel() < 0 || trace.detached()) return false;
    NewImage image(trace.spec(), trace.value_lists(), 1, parent);
    return image.usable() && trace.move_to(image) && thread.move_to_new_image();
}

long fork_process(Thread& thread, const CloneArguments& arguments) {
    Process& process = thread.process;
    process.wait_for_ended_threads();
    const std::vector<std::uint64_t> table = process.cache.copy_shared_table();
    const KernelArguments kernel = kernel_arguments(arguments, CLONE_VM | CLONE_SETTLS);
    const bool shares_descriptors = arguments.flags & CLONE_FILES;
    prepare_descriptors_for_fork(shares_descriptors);
    const int parent = getpid();
    const long pid = syscall(SYS_clone, kernel.flags, 0, kernel.parent_tid, arguments.child_tid, 0);
    if (pid < 0) return -errno;
    if (pid != 0) return pid;
    process.keep_only(thread);
    leave_descriptors_to_parent(shares_descriptors);
    thread.relations.tracer = kNoTracer;
    process.actions.let_all_arrive(false);
    if (!process.cache.own_indirect_table(*thread.context, table)) _exit(125);
    thread.signals.forget_held();
    thread.relations.shares_trace = thread.relations.shares_descriptors = false;
    if (!become_image(thread, parent)) {
        process.trace.detach();
        thread.trace.detach();
        thread.intervals.begin_image(*thread.context);
        thread.hand_to_caller();
    }
    set_child_registers(*thread.context, arguments);
    if (arguments.flags & CLONE_CLEAR_SIGHAND) process.actions.clear_handlers();
    return 0;
}

// vfork(2) and posix_spawn(3). The child shares the memory, and its parent waits until the child
// executes a program or ends. The child runs as the parent's Thread, on a separate driver stack.
// Its instructions are counted for the parent.
struct SharingChild {
    Thread& thread;
    const CloneArguments& arguments;
    std::uint32_t stack_site;
};

// State of the parent that such a child can change.
struct LentState {
    Registers registers;
    Signals::State signals;
    Thread::Relations relations;
    Process::Attributes attributes;
};

LentState state_of(const Thread& thread) {
    return {registers_of(*thread.context), thread.signals.state(), thread.relations,
            thread.process.attributes};
}

// Restores all state except signals, which may arrive from then on.
void restore(Thread& thread, const LentState& state) {
    set_registers(*thread.context, state.registers);
    thread.relations = state.relations;
    thread.process.attributes = state.attributes;
}

int run_sharing_child(void* argument) {
    const auto& child = *static_cast<SharingChild*>(argument);
    Thread& thread = child.thread;
    set_child_registers(*thread.context, child.arguments);
    thread.relations.shares_trace = true;
    thread.relations.shares_descriptors = child.arguments.flags & CLONE_FILES;
    thread.record_stack(child.stack_site);
    thread.signals.forget_held();
    thread.signals.restore(thread.signals.state());
    if (child.arguments.flags & CLONE_CLEAR_SIGHAND) thread.relations.actions->clear_handlers();
    thread.process.run_thread(thread);
    _exit(0);
}

long fork_sharing(Thread& thread, const CloneArguments& arguments) {
    constexpr std::size_t kStackBytes = 256 * 1024;
    Process& process = thread.process;
    void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) return -ENOMEM;
    const LentState before = state_of(thread);
    // The child has its own signal actions, unless it asks for its parent's (CLONE_SIGHAND).
    SignalActions actions = *thread.relations.actions;
    if (!(arguments.flags & CLONE_SIGHAND)) thread.relations.actions = &actions;
    SharingChild child{thread, arguments, thread.stack_site()};
    thread.relations.tracer = kNoTracer;
    thread.relations.lent_to_child = true;
    const KernelArguments kernel = kernel_arguments(arguments, CLONE_SETTLS);
    process.lock.unlock();
    const int pid = clone(&run_sharing_child, static_cast<char*>(stack) + kStackBytes,
                          static_cast<int>(kernel.flags), &child, kernel.parent_tid, nullptr,
                          arguments.child_tid);
    const int error = errno;
    process.lock.lock();
    process.schedule.come_back(thread);
    munmap(stack, kStackBytes);
    restore(thread, before);
    thread.record_stack(child.stack_site);
    thread.signals.restore(before.signals);
    if (pid < 0) return -error;
    return pid;
}

// CLONE_VM alone makes a process that shares the memory while its parent continues. LeakSanitizer
// starts such a process to trace its parent.
//
// For the driver the process is one more thread. libc's state for it belongs to a helper thread.
// The helper waits in the parent for the child's end, on the lower part of the child's stack.
struct SharingProcess {
    Thread& thread;
    const CloneArguments& arguments;
    std::uint32_t number;
    std::uint64_t signal_mask;
    SignalActions actions;                // the child's first actions, without CLONE_SIGHAND
    std::atomic<std::uint32_t> ready{0};  // 1: the child has begun, or cannot
    long result = 0;
};

constexpr std::size_t kHelperStackBytes = 64 * 1024;

int run_sharing_process(void* argument) {
    auto& start = *static_cast<SharingProcess*>(argument);
    Thread& thread = start.thread;
    SignalActions actions = start.actions;
    thread.relations.actions =
        start.arguments.flags & CLONE_SIGHAND ? &thread.process.actions : &actions;
    thread.relations.shares_trace = true;
    thread.begin(start.number, start.signal_mask);
    thread.relations.shares_descriptors = start.arguments.flags & CLONE_FILES;
    if (start.arguments.flags & CLONE_CLEAR_SIGHAND) actions.clear_handlers();
    start.result = gettid();
    start.ready.store(1, std::memory_order_release);
    trace::futex_wake(start.ready);
    // `start` no longer exists from here on.
    thread.process.run_thread(thread);
    _exit(0);
}

// Waits for the child's end, but leaves it for its parent to reap.
void wait_for_child(pid_t pid) {
    siginfo_t info;
    while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | __WALL) != 0 &&
           errno == EINTR) {
    }
}

// With CLONE_PARENT the child belongs to another process, so only a descriptor reports its end.
// There may be no descriptor: the kernel is old, a filter refuses the call, or the program has
// opened all of them. The function then waits until the child's parent has reaped it.
void wait_for_sibling(DriverLock& lock, pid_t pid) {
    constexpr timespec kMoment{0, 1'000'000};
    lock.lock();
    int descriptor = -1;
    while ((descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) < 0) {
        lock.unlock();
        if (kill(pid, 0) != 0 && errno == ESRCH) return;
        nanosleep(&kMoment, nullptr);
        lock.lock();
    }
    descriptor = own_descriptor(descriptor);
    lock.unlock();
    pollfd end{descriptor, POLLIN, 0};
    while (poll(&end, 1, -1) < 0) {
    }
    lock.lock();
    close_own_descriptor(descriptor);
    lock.unlock();
}

void* help_sharing_process(void* argument) {
    auto& start = *static_cast<SharingProcess*>(argument);
    Thread& thread = start.thread;
    Process& process = thread.process;
    const stack_t stack = thread.driver_stack();
    // `start` no longer exists after the child has begun.
    const std::uint64_t start_flags = start.arguments.flags, child_tid = start.arguments.child_tid;
    const KernelArguments kernel = kernel_arguments(start.arguments, CLONE_SETTLS);
    const int pid = clone(&run_sharing_process, static_cast<char*>(stack.ss_sp) + stack.ss_size,
                          static_cast<int>(kernel.flags), &start, kernel.parent_tid, nullptr,
                          start.arguments.child_tid);
    if (pid < 0) {
        start.result = -errno;
        start.ready.store(1, std::memory_order_release);
        trace::futex_wake(start.ready);
    } else if (kernel.flags & CLONE_PARENT) {
        wait_for_sibling(process.lock, pid);
    } else {
        wait_for_child(pid);
    }
    process.lock.lock();
    if (process.schedule.wanted() && start_flags & CLONE_CHILD_CLEARTID)
        process.schedule.wake(child_tid, 1, FUTEX_BITSET_MATCH_ANY);
    thread.relations.shares_trace = false;
    thread.relations.actions = &process.actions;
    thread.hand_to_caller();
    process.leave(thread);
    process.lock.unlock();
    return nullptr;
}

long start_sharing_process(Thread& parent, const CloneArguments& arguments) {
    Thread* thread = thread_like(parent, arguments);
    if (thread == nullptr) return -EAGAIN;
    SharingProcess start{*thread, arguments, parent.process.new_thread_number(),
                         parent.signals.mask(), *parent.relations.actions};
    parent.trace.note_new_thread(start.number);
    const int error =
        create_thread(*thread, kHelperStackBytes, &help_sharing_process, &start, start.ready);
    if (error != 0) return -error;
    return start.result;
}

// The kernel's rules for the flags of threads (kernel/fork.c, copy_process). The driver passes
// other flags to the kernel and so has to check these. Before Linux 6.9 the kernel gives no
// descriptors for threads.
bool is_possible(std::uint64_t flags) {
    if (flags & CLONE_THREAD && !(flags & CLONE_SIGHAND)) return false;
    if (flags & CLONE_SIGHAND && !(flags & CLONE_VM)) return false;
    return !(flags & CLONE_THREAD && flags & (CLONE_PIDFD | CLONE_NEWUSER | CLONE_NEWPID));
}

}  // namespace

long do_clone(Thread& thread, const CloneArguments& arguments) {
    const std::uint64_t flags = arguments.flags;
    if (!is_possible(flags)) return -EINVAL;
    if (flags & CLONE_SETTLS && arguments.tls >= kAddressesEnd) return -EPERM;
    long result = kNotCalled;
    if (!hold_signals(thread)) return result;
    if (flags & CLONE_THREAD)
        result = start_thread(thread, arguments);
    else if (!(flags & CLONE_VM))
        result = fork_process(thread, arguments);
    else if (flags & CLONE_VFORK)
        result = fork_sharing(thread, arguments);
    else
        result = start_sharing_process(thread, arguments);
    thread.signals.restore_mask_in_kernel();
    // The child exists: a failing write is ignored from here on.
    if (result > 0 && flags & CLONE_PARENT_SETTID)
        write_tid(arguments.parent_tid, static_cast<pid_t>(result));
    return result;
}

void do_exit(Thread& thread, int status) {
    Process& process = thread.process;
    if (thread.relations.shares_trace) thread.finish(status);
    if (process.schedule.wanted()) release_futexes(thread);
    const bool last = process.leave(thread);
    if (last) process.ends();
    if (thread.tid() != getpid()) {
        if (!process.schedule.wanted()) notify_of_end(thread.end_notice);
        if (!last) return thread.end();
    }
    // libc must not free the first thread's stack, and would end the last thread with status 0. The
    // last thread's status is the process's status (since Linux 6.0, kernel/exit.c,
    // synchronize_group_exit).
    Signals::block_all();
    process.lock.unlock();
    for (;;) syscall(SYS_exit, status);
}

}  // namespace assay::native
