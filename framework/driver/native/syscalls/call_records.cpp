#include "framework/driver/native/syscalls/call_records.h"

#include "framework/driver/native/syscalls/syscalls.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <ctime>

namespace assay::native {
namespace {

// Asks the kernel. libc would call the vDSO at its old address: see move_vdso().
std::uint64_t nanoseconds_now() {
    timespec now{};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    constexpr std::uint64_t kSecond = 1'000'000'000;
    return static_cast<std::uint64_t>(now.tv_sec) * kSecond +
           static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

CallRecords::CallRecords(Thread& thread, long number)
    : thread_(thread),
      number_(number),
      wanted_(thread.process.trace.captures(trace::kCaptureSystemCalls) &&
              collects(thread.version())) {
    if (!wanted_) return;
    const Context& context = *thread.context;
    const TraceTables& trace = thread.process.trace;
    // The exit's block may be another one after the call, because a child that shares the memory
    // also uses this context.
    const Block& block = thread.process.cache.block_of(static_cast<std::uint32_t>(context.exit_id));
    instr_ = block.first_instr + block.instr_count - 1U;
    pid_ = thread.pid();
    if (trace::tells_contexts(trace.spec())) node_ = context.calls.node->number;
    if (row_of(number).traits & kMayNotReturn) record_call();
    // A seccomp filter of the program may forbid the call that reads the time.
    if (trace.captures(trace::kCaptureSystemCallTimes) && !thread.process.filters_calls)
        begin_ = nanoseconds_now();
}

void CallRecords::has_result(long result) {
    if (!is_to_be_recorded()) return;
    const std::uint64_t end = begin_ != 0 ? nanoseconds_now() : 0;
    if (!recorded_) record_call();
    thread_.trace.append(static_cast<std::uint64_t>(result), site(TRACE_SITE_SYSTEM_CALL_RESULT));
    if (begin_ != 0) thread_.trace.append(end - begin_, site(TRACE_SITE_SYSTEM_CALL_TIME));
}

void CallRecords::has_no_result() {
    if (is_to_be_recorded() && !recorded_) record_call();
}

void CallRecords::was_not_made() {
    constexpr std::uint32_t kAgain = 1;
    if (is_to_be_recorded() && recorded_)
        thread_.trace.append(0, site(TRACE_SITE_SYSTEM_CALL_RESULT), kAgain);
}

bool CallRecords::is_to_be_recorded() const {
    return wanted_ && thread_.pid() == pid_;
}

std::uint32_t CallRecords::site(unsigned kind) const {
    return thread_.process.trace.driver_site(instr_, kind);
}

void CallRecords::record_call() {
    recorded_ = true;
    if (trace::tells_contexts(thread_.process.trace.spec()))
        thread_.trace.append(node_, thread_.process.trace.driver_site(0, TRACE_SITE_CONTEXT));
    thread_.trace.append(static_cast<std::uint64_t>(number_), site(TRACE_SITE_SYSTEM_CALL));
}

}  // namespace assay::native
