// What a thread does with memory, for the allocation log (framework/trace/allocation_log.h): the
// calls of allocation functions that it is in, and its system calls.
//
// Of functions that call one another only the outermost counts: calloc that calls malloc, operator
// new. It has returned where the stack pointer is above what it was at its entry; whether by its
// own return, the program counter tells. One that was left by longjmp(3) has allocated nothing.
#pragma once

#include "framework/driver/native/trace/allocation_functions.h"
#include "framework/driver/native/trace/thread_trace.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::native {

class Process;

// Of one thread. For whoever holds the driver's lock.
class Allocations {
  public:
    Allocations(const Process& process, TraceTables& tables, ThreadTrace& trace)
        : process_(process), tables_(tables), trace_(trace) {}

    bool wanted() const { return tables_.spec().objects != 0; }
    // The thread begins to be run, with its stack pointer as it is.
    void begin(Context& context);
    // The function is about to be executed.
    void enter(Context& context, const AllocationFunction& function);
    // The stack pointer has changed.
    void leave(Context& context);
    // A handler of a signal is about to be executed, and rt_sigreturn(2) has been.
    void interrupt(Context& context);
    void resume(Context& context);

    // By system calls.
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
    // After any: what others have done until now came before what follows.
    void look_at_others();

  private:
    struct Call {
        std::uint64_t sp = 0;  // at its entry: where the return address is; 0: there is no call
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
    std::uint64_t seen_ = 0;  // entries
};

}  // namespace assay::native
