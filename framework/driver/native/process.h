// The profiled process: its memory, its translations, and the loop that runs them.
#pragma once

#include "framework/driver/native/elf_loader.h"
#include "framework/driver/native/signals.h"
#include "framework/driver/native/translator.h"

#include <atomic>
#include <string>

namespace assay::native {

class Process {
  public:
    Process() : translator(memory, cache, trace), signals(*this) {}
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    // Attaches to the trace segment, sets up the context and the code cache.
    bool initialise(int segment_fd);
    // Loads the program and builds its stack; ends the process with a message if it cannot.
    void load(const std::string& path, const std::vector<std::string>& argv, char** environment);
    [[noreturn]] void run();

    // Ends the process with status 125, after one line for the user.
    [[noreturn]] void refuse(const std::string& reason, int exit_status = 125);
    // Forgets translations of code that has changed; they may not be executing.
    void code_changed() { translator.flush(); }
    [[noreturn]] void finish(int exit_status);

    Context* context = nullptr;
    TraceWriter trace;
    MemoryMap memory;
    CodeCache cache;
    Translator translator;
    Signals signals;
    LoadedProgram program;
    std::uint64_t break_end = 0;  // current program break

  private:
    void handle_exit();
    void enter(std::uint64_t host_address, const Block& block);
    Block* block_for(std::uint64_t pc, bool by_indirect_branch = false);
    void indirect_miss();
    void run_special(const Exit& exit);
    void run_identification(const Exit& exit);

    Block* next_ = nullptr;  // known block of context->pc
};

// Emulates or passes on the system call in context->gpr (syscalls.cpp).
void do_syscall(Process& process, std::uint64_t syscall_pc);
// Records the references of an instruction that needs computing (special_references.cpp).
void record_special(Process& process, const Instruction& instruction, std::uint32_t first_site);
// Answers cpuid or xgetbv as the level that the specification asks for (identification.cpp).
void identify(Process& process, const Instruction& instruction);
// Builds the initial stack as the kernel does; returns its pointer, or 0 (initial_stack.cpp).
std::uint64_t build_stack(const LoadedProgram& program, trace::CpuLevel level,
                          const std::vector<std::string>& argv, char** environment);

}  // namespace assay::native
