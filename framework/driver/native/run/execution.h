// The loop that runs a thread of the program: it runs translated code, handles its exit, and runs
// translated code again.
//
// The driver's lock is held, except while translated code runs, while the thread waits, and while
// the addresses of an instruction's references are computed.
#pragma once

#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/process/process.h"
#include "framework/driver/native/run/special_references.h"

namespace assay::native {

class Execution {
  public:
    explicit Execution(Thread& thread)
        : thread_(thread),
          process_(thread.process),
          context_(*thread.context),
          references_(process_.trace, thread.trace, context_, process_.watch, process_.lock),
          values_(process_.trace, thread.trace, context_) {}

    // Runs from Context::pc on until the thread ends.
    void run();

  private:
    void deliver_signal();
    void record_handler(int signal, std::uint64_t interrupted);
    void look_at_stack(const Block& block);
    void enter();
    bool handle_inside();
    void record_at(const Exit& exit, std::uint32_t id);
    void identify_processor(const Instruction& instruction);
    bool is_unchanged(const Block& block) const;
    void count_exit();
    void change_burst_if_due();
    void handle_exit();
    void follow(const Exit& exit, std::uint32_t id);
    [[noreturn]] void refuse_instruction() const;  // the one at Context::pc
    void do_unsupported();                         // also at Context::pc
    void do_interrupt_return(std::uint64_t pc);
    void reach(const Block& block);
    void reach_interval(const Block& block);
    void end_slice(const Block& block);
    void indirect_miss();
    Block* block_for(std::uint64_t pc, bool by_indirect_branch = false);
    void raise_fetch_fault(std::uint64_t pc);
    bool needs_flush(const Region& region, std::uint64_t pc);

    Thread& thread_;
    Process& process_;
    Context& context_;
    SpecialReferences references_;
    SpecialValues values_;
    Block* next_ = nullptr;  // the block of Context::pc, if known
    // With contexts: the stack pointer when translated code was left; 0 if it did not follow calls.
    std::uint64_t sp_left_with_ = 0;
};

// Emulates iretq, with which a program restores all registers at once, for example Wine after an
// exception. Pops the program counter, the flags and the stack pointer. Returns false, without any
// change, if the instruction would fault or would leave 64-bit user mode.
bool return_from_interrupt(Context& context);

}  // namespace assay::native
