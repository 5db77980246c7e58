// execve(2) and execveat(2) of the program. The new program runs under a new driver with a new
// trace segment. It runs natively if children are not followed or if the driver cannot run it.
#include "framework/driver/native/load/program_file.h"
#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/syscalls/syscalls.h"
#include "framework/driver/shared/new_image.h"
#include "framework/trace/command_event.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <optional>
#include <utility>

namespace assay::native {
namespace {

constexpr std::size_t kLongestArgument = 128 * 1024;  // MAX_ARG_STRLEN, execve(2)

// The arguments of execveat(2). execve(2) has AT_FDCWD and 0.
struct ExecCall {
    int folder;
    const char* path;
    char* const* arguments;
    char* const* environment;
    int flags;
};

ExecCall exec_call(const Call& call) {
    const bool at = call.number == SYS_execveat;
    const unsigned first = at ? 1 : 0;
    return {at ? static_cast<int>(call.arguments[0]) : AT_FDCWD, call.pointer<const char>(first),
            call.pointer<char* const>(first + 1), call.pointer<char* const>(first + 2),
            at ? static_cast<int>(call.arguments[4]) : 0};
}

// The file and arguments to execute. A script is already replaced by its interpreter.
struct ExecuteRequest {
    ProgramFile file;
    std::vector<char*> arguments, environment;
    trace::Command command;
};

bool all_readable(const std::vector<char*>& texts) {
    for (const char* text : texts)
        if (!read_target_text(text, kLongestArgument)) return false;
    return true;
}

// False if a string or pointer of the call cannot be read.
bool read_request(const ExecCall& call, ExecuteRequest& request) {
    const auto path = read_target_text(call.path, PATH_MAX);
    auto arguments = read_target_pointers(call.arguments);
    auto environment = read_target_pointers(call.environment);
    if (!path || !arguments || !environment || !all_readable(*arguments) ||
        !all_readable(*environment))
        return false;
    request.file = find_program_file(call.folder, *path, call.flags);
    request.arguments = std::move(*arguments);
    request.environment = std::move(*environment);
    std::vector<char*>& words = request.arguments;
    std::vector<std::string>& interpreter = request.file.instead_of_argv0;
    if (!interpreter.empty() && !words.empty()) words.erase(words.begin());
    for (std::size_t i = 0; i < interpreter.size(); ++i)
        words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), interpreter[i].data());
    request.command = {request.file.name, {words.begin(), words.end()}};
    return true;
}

// Makes `call`, which replaces this image. If it fails, all preparations are undone. The lock is
// released, because a child that shares its parent's memory would take it along. Such a child does
// not end the image, which is its parent's (vfork(2)).
template <typename System>
long depart(Thread& thread, trace::DriverState state, const System& call) {
    Process& process = thread.process;
    if (!thread.relations.shares_trace) {
        process.note_names();
        process.trace.set_state(state);
    }
    process.lock.unlock();
    const long result = call() < 0 ? -errno : 0;
    process.lock.lock();
    if (!thread.relations.shares_trace) process.trace.set_state(trace::DriverState::kRunning);
    return result;
}

// Executes the program under a new driver. Returns 0 if it has to run natively.
long replace(Thread& thread, ExecuteRequest& request, int program) {
    Process& process = thread.process;
    NewImage image(process.trace.spec(), process.trace.value_lists(),
                   thread.relations.shares_trace ? 1 : process.trace.image() + 1, getppid());
    if (!image.usable() || !image.write_log(trace::command_event(request.command))) return 0;
    const int channel = process.trace.channel();
    if (!image.announce(channel)) return 0;
    const trace::Launch launch{
        .segment_fd = image.segment(),
        .program_fd = program,
        .lifeline_fd = image.lifeline(),
        .channel_fd = channel,
        .signal_mask = thread.signals.mask(),
        .fixed_addresses = (process.attributes.personality & ADDR_NO_RANDOMIZE) != 0,
        .name = request.file.name};
    const trace::DriverEnvironment environment =
        trace::driver_environment(request.environment, launch);
    request.arguments.push_back(nullptr);
    const auto set_flags = [&](int flags) {
        for (const int descriptor :
             {launch.segment_fd, launch.program_fd, launch.lifeline_fd, launch.channel_fd})
            fcntl(descriptor, F_SETFD, flags);
    };
    set_flags(0);
    const long result = depart(thread, trace::DriverState::kReplaced, [&] {
        return syscall(SYS_execve, "/proc/self/exe", request.arguments.data(),
                       environment.pointers.data());
    });
    set_flags(FD_CLOEXEC);
    image.cancel();
    return result == -E2BIG ? result : 0;
}

// `file`: the file to execute, or nullptr if it is unknown.
long run_natively(Thread& thread, const ExecCall& call, const ProgramFile* file) {
    TraceTables& trace = thread.process.trace;
    const std::string natively = "; it runs natively, without being profiled";
    if (thread.relations.shares_trace) {
        // The parent's collector cannot be told later that the call has failed.
        if (file && !file->natively.empty()) trace.message(file->natively + natively);
    } else if (file) {
        const bool known = !file->natively.empty();
        trace.leaves_for((known ? file->natively : "the program became " + file->name) + natively);
    }
    thread.signals.give_mask_to_kernel();
    const long result = depart(thread, trace::DriverState::kFinished, [&] {
        // Filters of seccomp(2) may know only the older call.
        if (call.folder == AT_FDCWD && call.flags == 0)
            return syscall(SYS_execve, call.path, call.arguments, call.environment);
        return syscall(SYS_execveat, call.folder, call.path, call.arguments, call.environment,
                       call.flags);
    });
    if (!thread.relations.shares_trace) trace.leaves_for("");
    return result;
}

// True if the program is the driver of a nested assay. No driver can translate another: both need
// gs and the same addresses.
bool starts_driver(const ExecuteRequest& request) {
    return !request.environment.empty() && trace::launch_from(request.environment.front());
}

long depart_with(Thread& thread, const ExecCall& call, ExecuteRequest& request, int program) {
    if (thread.relations.tracer == getppid() && program >= 0) {
        // The kernel runs it. The tracer sees the new program, and nothing before.
        syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
        request.file.natively = request.file.name + ": its parent traces it";
        return run_natively(thread, call, &request.file);
    }
    if (starts_driver(request)) {
        request.file.natively = request.file.name + ": it is the driver of another assay";
        return run_natively(thread, call, &request.file);
    }
    if (thread.process.trace.channel() >= 0 && program >= 0)
        if (const long error = replace(thread, request, program)) return error;
    return run_natively(thread, call, &request.file);
}

}  // namespace

// Returns only on failure: the kernel's error, or kNotCalled if a signal has to be delivered first.
long do_execute(const Call& made) {
    Thread& thread = made.thread;
    ExecCall call = exec_call(made);
    // Static, so that the next call frees it: a child that shares its parent's memory does not come
    // back to free its allocations.
    static thread_local ExecuteRequest request;
    request = {};
    // The parent must not get the descriptors that are opened for the new program. The kernel also
    // unshares them, a moment later.
    if (thread.relations.shares_descriptors)
        unshare(CLONE_FILES);
    else if (!thread.relations.shares_trace)
        stop_sharing_descriptors();
    const bool readable = read_request(call, request);
    if (readable && proc_file(AT_FDCWD, request.file.name) == ProcFile::kExecutable) {
        call.path = thread.process.program.executable.c_str();
        // The new image is named after the call's path: "exe".
        std::string name = std::move(request.file.name);
        request.file = find_program_file(AT_FDCWD, call.path, 0);
        request.file.name = std::move(name);
        request.command.file = call.path;
    }
    // In the parent, which finds the request later, the descriptor's number means something else.
    const int program = std::exchange(request.file.descriptor, -1);
    // Blocks all signals. A signal that the driver notes from here on would be lost with the image;
    // the kernel keeps a blocked signal for the new program.
    Signals::block_all();
    long result = kNotCalled;
    if (!thread.signals.pending()) {
        thread.signals.give_held_to_kernel();
        // The signals of other threads need the driver's handler until these threads are gone.
        const bool alone = thread.process.is_only_thread(thread);
        if (alone) thread.relations.actions->let_kernel_ignore();
        result = readable ? depart_with(thread, call, request, program)
                          : run_natively(thread, call, nullptr);
        if (alone) thread.relations.actions->make_all_due_arrive();
    }
    thread.signals.restore_mask_in_kernel();
    if (program >= 0) close(program);
    return result;
}

}  // namespace assay::native
