#include "framework/driver/native/process/tracer.h"

#include "framework/driver/native/process/process.h"

#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <string>

namespace assay::native {
namespace {

// Of a process, for looking at it; all zeros if there is none.
struct stat executable_of(long pid) {
    struct stat status {};
    const std::string link = "/proc/" + std::to_string(pid) + "/exe";
    stat(link.c_str(), &status);
    return status;
}

}  // namespace

bool runs_in_driver(long pid) {
    const struct stat own = executable_of(getpid()), other = executable_of(pid);
    return own.st_ino != 0 && own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

bool begin_stop_for_tracer(Thread& thread) {
    // Its end, too, is one of tracing.
    if (getppid() != thread.relations.tracer) return thread.relations.tracer = kNoTracer, false;
    if (!runs_in_driver(thread.relations.tracer) ||
        syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0) != 0)
        thread.refuse(
            "ptrace(PTRACE_TRACEME): a program that runs under assay cannot be traced; "
            "run the debugger or tracer without assay");
    return true;
}

void end_stop_for_tracer(Thread& thread, long result) {
    if (result == kLetGo) thread.relations.tracer = kNoTracer;
}

bool stop_for_tracer(Thread& thread) {
    if (thread.relations.tracer == kNoTracer) return true;
    Signals::block_sent();
    if (!begin_stop_for_tracer(thread)) return true;
    long result = 0;
    thread.process.schedule.go_away(thread);
    const bool pending = thread.signals.stop_for_tracer(thread.process.lock, result);
    thread.process.schedule.come_back(thread);
    end_stop_for_tracer(thread, result);
    return pending;
}

}  // namespace assay::native
