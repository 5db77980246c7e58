#include "framework/driver/native/process/process.h"

#include "framework/driver/native/load/elf_functions.h"
#include "framework/driver/native/load/initial_stack.h"
#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/machine/saved_state.h"
#include "framework/driver/native/memory/address_space.h"
#include "framework/driver/native/memory/own_memory.h"
#include "framework/driver/native/memory/proc_maps.h"
#include "framework/driver/native/processor/shown_processor.h"

#include <elf.h>
#include <linux/magic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace assay::native {

namespace {

void note_vdso(std::uint64_t base, MemoryMap& memory, TraceTables& trace) {
    if (base == 0) return;
    const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(base);
    const auto* segments = reinterpret_cast<const Elf64_Phdr*>(base + header.e_phoff);
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_X)) continue;
        const std::uint64_t end = (base + segments[i].p_memsz + 4095) & ~4095ULL;
        memory.add({.start = base, .end = end});
        trace.mapped(base, end, 0, "[vdso]");
    }
}

// The vDSO's data are right below it: at most a few pages (arch/x86/entry/vdso/vma.c).
void note_vdso_objects(std::uint64_t base, Allocations& allocations) {
    constexpr std::uint64_t kMostBytes = 64 * 1024;
    if (base == 0) return;
    allocations.map_file(base - kMostBytes, base, {"[vvar]", 0, false});
    allocations.map_file(base, base + kMostBytes, {"[vdso]", 0, true});
}

// True if libc could not create the thread.
bool never_began(const Thread& thread) {
    return thread.tid() == 0;
}

}  // namespace

bool Process::initialise(const trace::Launch& launch) {
    if (!trace.attach(launch) || !choose_processor()) return false;
    if (shown_processor().has_protection_keys()) initial_pkru_ = read_pkru();
    grow_own_stack();
    const std::vector<Mapping> mappings = own_mappings();
    begin_own_memory(mappings);
    begin_arena(trace.spec().random_addresses != 0);
    program.vdso = move_vdso(mappings);
    if (!cache.reserve()) {
        trace.refuse(std::string("no address space for translated code: ") + std::strerror(errno) +
                     "; raise its limit (RLIMIT_AS)");
        return false;
    }
    Thread* first = idle_thread();
    if (first == nullptr) return false;
    if (trace.spec().stress != 0) {
        stress.enable();
        cache.make_small();
    }
    cache.initialise(*first->context, trace.spec(), trace.object_runs().regions());
    regions.initialise(trace.spec());
    if (trace.spec().objects != 0) {
        const char* more = trace.spec().allocation_functions;
        allocation_functions.initialise({more, strnlen(more, trace::kMostNames)});
    }
    trace.set_pid(getpid());
    Signals::block_all();
    actions.initialise(&Thread::handle_signal);
    first->begin(0, launch.signal_mask);
    join(*first);
    schedule.initialise(trace.spec().slice);
    schedule.keep_only(*first);
    return true;
}

bool Process::choose_processor() {
    const char* names = trace.spec().hidden_features;
    Hiding hiding;
    const std::string_view unknown = hiding.add({names, strnlen(names, trace::kMostNames)});
    if (!unknown.empty()) {
        trace.refuse("--hide=" + std::string(unknown) + ": no such feature; known are " +
                     Hiding::names());
        return false;
    }
    show_processor(trace.spec().cpu_level, hiding);
    return true;
}

void Process::load(const trace::Launch& launch, const std::vector<std::string>& argv,
                   char** environment) {
    Thread& thread = *running_.front();
    const trace::CpuLevel level = trace.spec().cpu_level;
    const std::string needed = shown_processor().missing_for_driver();
    if (!needed.empty()) thread.refuse("this processor lacks " + needed + ", which assay needs");
    const std::string missing = shown_processor().missing();
    if (!missing.empty())
        thread.refuse("--cpu=" + std::string(name_of(level)) + ": this processor lacks " + missing +
                      "; use a lower level");
    const std::uint64_t base = cache.open_window();
    const LoadError error = load_program(launch.program_fd, launch.name, base, memory, program);
    if (error.exit_status != 0) thread.refuse(error.reason, error.exit_status);
    for (const LoadedPart& code : program.code)
        mapped(code.start, code.end, code.offset, code.path);
    for (const LoadedPart& image : program.images)
        thread.allocations.map_file(image.start, image.end, {image.path, image.offset, true});
    if (shown_processor().has_vdso()) {
        note_vdso(program.vdso, memory, trace);
        note_vdso_objects(program.vdso, thread.allocations);
    }
    if (captures_mappings()) {
        for (const Range& zeroed : program.zeroed) page_kinds.set(zeroed, PageKind::kPrivate);
        tell_pages(thread);
    }
    break_end = program.break_start;
    attributes.personality = personality_of_program(launch.fixed_addresses);
    const std::uint64_t stack = build_stack(program, argv, environment);
    if (stack == 0) thread.refuse("no memory for the program's stack");
    thread.allocations.map(program.stack_start, program.stack_end);
    if (program.executable_stack)
        memory.add({.start = program.stack_start,
                    .end = program.stack_end,
                    .writable = true,
                    .changeable = true});
    Context& context = *thread.context;
    context.gpr[RSP] = stack;
    context.rflags = 0x202;
    context.pc = program.start;
    reset_state(context);
    trace.set_state(trace::DriverState::kRunning);
}

void Process::run() {
    run_thread(*running_.front());
    // Other threads may end later.
    for (;;) syscall(SYS_exit, 0);
}

void Process::ends() {
    for (const std::string& name : regions.missing_functions())
        trace.message("--toggle=" + name + ": " + program.executable +
                      " and its libraries have no such function");
    note_names();
    for (Thread* thread : running_)
        if (thread->allocations.wanted()) thread->trace.set_time(instructions());
    trace.set_state(trace::DriverState::kFinished);
    close_shared_descriptors();  // closing the lifeline tells the collector
}

void Process::mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                     const std::string& path) {
    cache.forget_rows();
    trace.mapped(start, end, offset, path);
    regions.mapped(start, end, offset, path);
    allocation_functions.mapped(start, end, offset, path);
}

void Process::unmapped(std::uint64_t start, std::uint64_t end) {
    cache.forget_rows();
    trace.unmapped(start, end);
    regions.unmapped(start, end);
    allocation_functions.unmapped(start, end);
}

void Process::forget_steps() const {
    for (const Thread* thread : running_)
        if (CallTree* const tree = thread->context->call_tree) tree->forget_steps();
}

void Process::tell_pages(Thread& thread) {
    const std::vector<PageKinds::Change> changes = page_kinds.take_changes();
    for (const PageKinds::Change& change : changes)
        thread.trace.note(change.operation,
                          {change.range.start, change.range.end - change.range.start}, "");
    if (changes.empty()) return;
    // A later fetch from the same line can be from another page.
    thread.forget_recent_lines();
    thread.pages_seen = page_kinds.changes();
    if (!is_only_thread(thread)) thread.trace.hand_over();
}

void Process::look_at_pages(Thread& thread) const {
    if (!captures_mappings() || thread.pages_seen == page_kinds.changes()) return;
    thread.pages_seen = page_kinds.changes();
    thread.forget_recent_lines();
    thread.trace.note(TRACE_MARKER_PAGES_SEEN, {thread.pages_seen}, "");
}

void Process::switch_others(const Thread& thread) const {
    for (Thread* other : running_)
        if (other != &thread && other->running() != 0) other->ask_to_leave();
}

void Process::wait_for_old_translations() {
    const auto old = [this](const Thread* thread) {
        return thread->running() != 0 && thread->running() != cache.generation();
    };
    while (std::any_of(running_.begin(), running_.end(), old)) {
        lock.unlock();
        constexpr timespec kMoment{0, 100'000};
        nanosleep(&kMoment, nullptr);
        lock.lock();
    }
}

void Process::flush() {
    const std::uint32_t generation = cache.generation();
    wait_for_old_translations();
    if (cache.generation() == generation) translator.flush();
}

// --- Threads.

Thread* Process::idle_thread() {
    const std::uint32_t kept = trace.spec().threads != 0 ? trace::kOwnSlots : 0;
    if (schedule.wanted()) wait_for_ended_threads();  // the free slots must not depend on chance
    const auto gone = std::find_if(ended_.begin(), ended_.end(), [&](const Thread* thread) {
        if (never_began(*thread)) return true;
        return thread->trace.slot() >= kept &&
               (running_thread(thread->tid()) != nullptr ||
                (syscall(SYS_tgkill, thread->pid(), thread->tid(), 0) != 0 && errno == ESRCH));
    });
    if (gone != ended_.end()) {
        Thread* thread = *gone;
        ended_.erase(gone);
        return thread;
    }
    // Only the first threads have large rings, because hundreds of them would need too much memory.
    // With a schedule all rings are large: buffers are full only after a long slice, and each
    // thread would wait for the collector in its turn.
    constexpr std::uint32_t kLargeRings = 4, kSmallRing = 2;
    const std::uint32_t slot = trace.new_slot();
    if (slot == trace::kMaxThreads) return nullptr;
    auto thread = std::make_unique<Thread>(*this);
    if (!thread->map(slot,
                     slot < kLargeRings || schedule.wanted() ? trace::kBufferCount : kSmallRing))
        return nullptr;
    if (slot > 0 && !cache.share_indirect_table(*thread->context)) return nullptr;
    threads_.push_back(std::move(thread));
    return threads_.back().get();
}

// Reads the name of another thread from /proc.
void Process::note_name(const Thread& thread) {
    if (trace.spec().threads == 0 || filters_calls || never_began(thread)) return;
    constexpr std::size_t kMostBytes = 16;  // TASK_COMM_LEN of linux/sched.h
    std::array<char, kMostBytes> own{};
    std::string name;
    if (thread.tid() == gettid() && prctl(PR_GET_NAME, own.data()) == 0)
        name = own.data();
    else
        name = read_file(("/proc/self/task/" + std::to_string(thread.tid()) + "/comm").c_str());
    if (name.ends_with('\n')) name.pop_back();
    trace.thread_name(thread.trace.thread(), name);
}

std::uint64_t Process::instructions() const {
    std::uint64_t sum = instructions_of_ended_;
    for (const Thread* thread : running_) sum += Regions::executed(*thread->context);
    return sum;
}

void Process::note_names() {
    for (const Thread* thread : running_) note_name(*thread);
}

bool Process::leave(Thread& thread) {
    thread.intervals.end();
    thread.bursts.end(*thread.context);
    note_name(thread);
    thread.trace.note_end();
    thread.trace.end();
    if (thread.allocations.wanted()) thread.trace.set_time(instructions());
    if (thread.allocations.wanted()) instructions_of_ended_ += Regions::executed(*thread.context);
    schedule.leave(thread);
    std::erase(running_, &thread);
    // The first thread of a process exists until the process ends (wait(2)).
    if (thread.tid() != getpid()) ended_.push_back(&thread);
    return running_.empty();
}

Thread* Process::running_thread(pid_t tid) const {
    const auto found = std::find_if(running_.begin(), running_.end(),
                                    [tid](const Thread* thread) { return thread->tid() == tid; });
    return found == running_.end() ? nullptr : *found;
}

bool Process::shares_memory() const {
    return std::any_of(running_.begin(), running_.end(),
                       [](const Thread* thread) { return thread->pid() != getpid(); });
}

bool Process::shares_memory_with(pid_t tid) const {
    const pid_t own = getpid();
    return std::any_of(running_.begin(), running_.end(), [&](const Thread* thread) {
        return thread->pid() != own && syscall(SYS_tgkill, thread->pid(), tid, 0) == 0;
    });
}

void Process::wait_for_ended_threads() const {
    for (const Thread* thread : ended_)
        while (running_thread(thread->tid()) == nullptr &&
               syscall(SYS_tgkill, thread->pid(), thread->tid(), 0) == 0)
            sched_yield();
}

void Process::keep_only(Thread& thread) {
    if (thread.allocations.wanted())
        instructions_of_ended_ = instructions() - Regions::executed(*thread.context);
    running_.assign(1, &thread);
    schedule.keep_only(thread);
    ended_.clear();
    // The parent still uses the mappings of the other threads, so no destructor may unmap them.
    for (auto& other : threads_)
        if (other.get() != &thread) static_cast<void>(other.release());
    std::erase(threads_, nullptr);
}

void ShownFiles::add(int descriptor, ProcFile file) {
    struct statfs system {};
    struct stat status {};
    if (fstatfs(descriptor, &system) != 0 || system.f_type != PROC_SUPER_MAGIC) return;
    if (fstat(descriptor, &status) != 0) return;
    files_.insert_or_assign({status.st_dev, status.st_ino}, ShownFile{file, {}});
}

ShownFile* ShownFiles::find(long descriptor) {
    struct stat status {};
    // Usually there are no such files, and reading is as fast as natively.
    if (files_.empty() || fstat(static_cast<int>(descriptor), &status) != 0) return nullptr;
    const auto found = files_.find({status.st_dev, status.st_ino});
    return found == files_.end() ? nullptr : &found->second;
}

}  // namespace assay::native
