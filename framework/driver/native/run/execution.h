// The loop that runs a thread of the program: translated code, what it leaves for, and translated
// code again.
//
// The driver's lock is held but while translated code runs, while the thread waits, and while what
// an instruction refers to is computed.
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

    // From Context::pc on until the thread ends.
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
    [[noreturn]] void refuse_instruction() const;  // at Context::pc
    void do_unsupported();                         // at Context::pc
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
    Block* next_ = nullptr;  // known block of Context::pc
    // With contexts, where translated code was left: 0 if it did not follow calls.
    std::uint64_t sp_left_with_ = 0;
};

// iretq: how a program restores all of its registers at once, such as Wine behind an exception.

// Takes where to go on, the flags and the stack pointer from the stack. False, and nothing is
// changed, where it would fault or go on in another mode than that of 64-bit programs.
bool return_from_interrupt(Context& context);

}  // namespace assay::native
