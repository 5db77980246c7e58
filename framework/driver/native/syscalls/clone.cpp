
#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/memory/address_space.h"
#include "framework/driver/native/process/process.h"
#include "framework/driver/native/syscalls/syscalls.h"
#include "framework/driver/native/trace/new_image.h"

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

constexpr std::uint64_t kClone2Flags = 0xffffffff;  // clone(2) has no others

void write_tid(std::uint64_t where, pid_t tid) {
    write_target(where, &tid, sizeof tid);
}

// The child's registers are the caller's, but for the result, the stack and fs.
void set_child_registers(Context& context, const CloneArguments& arguments) {
    context.gpr[RAX] = 0;
    if (arguments.stack != 0) context.gpr[RSP] = arguments.stack;
    if (arguments.flags & CLONE_SETTLS) context.target_fs = arguments.tls;
}

// What a thread's code sees of its state.
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

// While a process or thread is made, no signal may arrive: it would be there twice, or find a
// thread without a context. False, with all as before, if one is pending already.
bool hold_signals(const Thread& thread) {
    Signals::block_all();
    return !thread.signals.pending();
}

// --- Threads. Those of the driver are libc's, so that driver code finds libc's state at fs; the
// program's own libc sets up what it needs by itself.

struct NewThread {
    Thread& thread;
    const CloneArguments& arguments;
    std::uint32_t number;
    std::uint64_t signal_mask;
    std::atomic<std::uint32_t> tid{0};
};

// What is cleared when the thread ends, where somebody may wait for it. libc's thread of the driver
// is detached and needs no such notice. Filters of sandboxes do not permit the call, since no libc
// needs it there: Chromium's ends a process that makes it. Then the driver clears it itself.
void set_clear_child_tid(Thread& thread, std::uint64_t where) {
    thread.end_notice = {};
    if (thread.process.filters_calls || thread.process.schedule.wanted())
        thread.end_notice.clear_child_tid = where;
    else
        syscall(SYS_set_tid_address, where);
}

// As the kernel does it (kernel/fork.c, mm_release), but earlier. Who waits for it may reuse the
// memory of the list of robust futexes before the kernel looks at that, and mostly it is empty.
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
    // The driver's libc has registered its own list, of which it uses nothing.
    syscall(SYS_set_robust_list, nullptr, sizeof(robust_list_head));
    thread.begin(start.number, start.signal_mask);
    if (arguments.flags & CLONE_CHILD_SETTID)
        write_tid(arguments.child_tid, static_cast<pid_t>(tid));
    start.tid.store(tid, std::memory_order_release);
    trace::futex_wake(start.tid);
    // `start` is gone from here on.
    thread.process.run_thread(thread);
    Signals::block_all();
    return nullptr;
}

// One that is to go on where the parent is; nullptr if there can be no more.
Thread* thread_like(Thread& parent, const CloneArguments& arguments) {
    Process& process = parent.process;
    Thread* thread = process.idle_thread();
    if (thread == nullptr) return nullptr;
    if (process.cache.serves_one_thread()) {
        process.cache.begin_threads();
        process.flush();
    }
    set_registers(*thread->context, registers_of(*parent.context));
    set_child_registers(*thread->context, arguments);
    return thread;
}

// With its first thread, libc handles the signal by which all threads change their user: glibc's
// internal-signals.h, nptl/pthread_create.c. So has the program's libc, whose threads they are.
constexpr int kSetXid = 33;

// A thread of libc's, on so much of the stack that `thread` has for driver code, says by `ready`
// that it has begun. 0, or an error number.
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

// For clone(2) in the kernel, which has one place for two results: do_clone() fills in that of the
// thread's number.
struct KernelArguments {
    std::uint64_t flags, parent_tid;
};

KernelArguments kernel_arguments(const CloneArguments& arguments, std::uint64_t not_in_kernel) {
    const std::uint64_t flags = arguments.flags & kClone2Flags & ~not_in_kernel;
    if (arguments.pidfd == 0) return {flags, arguments.parent_tid};
    return {flags & ~std::uint64_t{CLONE_PARENT_SETTID}, arguments.pidfd};
}

// In the child of a fork: what it does from now on is profiled by itself, beginning with caches
// that are empty. False if it is not followed.
bool become_image(Thread& thread) {
    TraceTables& trace = thread.process.trace;
    if (trace.channel() < 0 || trace.detached()) return false;
    NewImage image(trace.spec(), trace.value_lists(), 1);
    return image.usable() && trace.move_to(image) && thread.move_to_new_image();
}

// The child of a fork has a copy of everything.
long fork_process(Thread& thread, const CloneArguments& arguments) {
    Process& process = thread.process;
    process.wait_for_ended_threads();
    const std::vector<std::uint64_t> table = process.cache.copy_shared_table();
    const KernelArguments kernel = kernel_arguments(arguments, CLONE_VM | CLONE_SETTLS);
    const bool shares_descriptors = arguments.flags & CLONE_FILES;
    prepare_descriptors_for_fork(shares_descriptors);
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
    if (!become_image(thread)) {
        process.trace.detach();
        thread.trace.detach();
        thread.intervals.begin_image(*thread.context);
        thread.hand_to_caller();
    }
    set_child_registers(*thread.context, arguments);
    if (arguments.flags & CLONE_CLEAR_SIGHAND) process.actions.clear_handlers();
    return 0;
}

// vfork(2) and posix_spawn(3): the child shares the memory, and its parent waits until it executes
// a program or ends. It takes the parent's thread over, on a stack of the driver's of its own, and
// what it executes counts as its parent's.
struct SharingChild {
    Thread& thread;
    const CloneArguments& arguments;
    std::uint32_t stack_site;
};

// What such a child can change of what is its parent's.
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

// All but its signals, which may arrive from then on.
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
    // Its dispositions are its own, unless it asks for its parent's.
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

// CLONE_VM alone: a process that shares the memory while its parent goes on, as LeakSanitizer's
// does that traces its parent. For the driver it is one more thread. What libc keeps for a thread
// of the driver is that of a helper, which waits in the parent for the child's end, on the lower
// part of the stack that the child has.
struct SharingProcess {
    Thread& thread;
    const CloneArguments& arguments;
    std::uint32_t number;
    std::uint64_t signal_mask;
    SignalActions actions;                // to begin with, if they are not to be the parent's own
    std::atomic<std::uint32_t> ready{0};  // the child has begun, or cannot
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
    // `start` is gone from here on.
    thread.process.run_thread(thread);
    _exit(0);
}

// Whoever waits for the child reaps it: this one only looks.
void wait_for_child(pid_t pid) {
    siginfo_t info;
    while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT | __WALL) != 0 &&
           errno == EINTR) {
    }
}

// With CLONE_PARENT: only a descriptor tells of the end of another process's child. Where there is
// none, for an old kernel or a filter refuses it or the program has them all open, its number does,
// once its parent has reaped it.
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
    // `start` is gone once the child has begun.
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

// What the kernel says of threads (kernel/fork.c, copy_process), which it is not asked about in
// this way. It gives descriptors for threads only from Linux 6.9 on.
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
    // From here on it is no harm if it cannot be written.
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
    // The first thread's stack is not libc's to free, and the last one's status is the process's
    // (since Linux 6.0, kernel/exit.c, synchronize_group_exit), which libc would end with 0.
    Signals::block_all();
    process.lock.unlock();
    for (;;) syscall(SYS_exit, status);
}

}  // namespace assay::native
