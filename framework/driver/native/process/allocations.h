// Records how a thread uses memory, for the allocation log (framework/trace/allocation_log.h):
// calls of allocation functions, and system calls.
//
// If allocation functions call one another (calloc calls malloc), only the outermost call counts.
// The call has ended when the stack pointer is above its value at the entry. The program counter
// tells whether the function has returned. A function left by longjmp(3) has allocated nothing.
#pragma once

#include "framework/driver/native/trace/allocation_functions.h"
#include "framework/driver/native/trace/thread_trace.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::native {

class Process;

// The allocations of one thread. Callers hold the driver's lock.
class Allocations {
  public:
    Allocations(const Process& process, TraceTables& tables, ThreadTrace& trace)
        : process_(process), tables_(tables), trace_(trace) {}

    bool wanted() const { return tables_.spec().objects != 0; }
    // The thread starts to run, with its stack pointer in `context`.
    void begin(Context& context);
    // To be called before the function is executed.
    void enter(Context& context, const AllocationFunction& function);
    // To be called when the stack pointer has changed.
    void leave(Context& context);
    // To be called before a signal handler runs, then after rt_sigreturn(2).
    void interrupt(Context& context);
    void resume(Context& context);

    // To be called after system calls that change memory.
    void map(std::uint64_t start, std::uint64_t end);
    struct File {
        std::string_view path;
        std::uint64_t offset;
        bool executable;
    };
    void map_file(std::uint64_t start, std::uint64_t end, const File& file);
    void unmap(std::uint64_t start, std::uint64_t end);
    void remap(std::uint64_t from, std::uint64_t start, std::uint64_t end);
    void set_thread_pointer(std::uint64_t address);
    void set_break(std::uint64_t start, std::uint64_t end);
    // To be called after any system call. Records that the allocations of other threads so far came
    // before the next ones of this thread.
    void look_at_others();
    // To be called before there is a second thread: from now on all references are recorded.
    void leave_out_no_more();

  private:
    struct Call {
        std::uint64_t sp = 0;  // at the entry: address of the return address; 0: no call
        std::uint64_t return_pc = 0;
        std::uint64_t bytes = 0, before = 0, result = 0;
    };

    void note(trace::MemoryUse use, std::uint64_t address, std::uint64_t bytes,
              std::uint64_t before = 0);
    void mark(trace::AllocationMark mark, std::uint64_t value);
    void set_call(Context& context, const Call& call);

    const Process& process_;
    TraceTables& tables_;
    ThreadTrace& trace_;
    Call call_;
    std::vector<Call> interrupted_;
    std::uint64_t seen_ = 0;  // entries of the log that the thread has seen
};

}  // namespace assay::native
