// The program's code, as QEMU translates it: rows of the trace's tables, and what callbacks need to
// know about them. Callers must hold the plugin's lock.
#pragma once

#include "framework/driver/qemu/landing_pads.h"
#include "framework/driver/shared/elf_functions.h"
#include "framework/driver/shared/trace_tables.h"
#include "framework/isa/architecture.h"

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace assay::qemu {

// The references of one instruction.
struct Operation {
    // QEMU's description of a reference that is all that the instruction does: one reference, to
    // its only operand. kNever until such a reference was seen.
    static constexpr std::uint32_t kNever = UINT32_MAX;
    std::uint32_t whole = kNever;
    std::uint32_t site = 0;   // of the first operand; the others follow, then one that counts
    std::uint16_t bytes = 0;  // of the first operand
    bool writes = false;      // the first operand
    bool variable = false;    // see TRACE_INSTR_VARIABLE
    std::uint8_t operand_count = 0;
    isa::Operand operands[isa::Instruction::kMostOperands];
    std::uint64_t pc = 0;
    std::uint32_t instr = 0;            // its row
    std::uint8_t address_register = 0;  // of an instruction that clears a line
    // A kind of reference that an instruction without a description has made.
    struct Seen {
        std::uint32_t info;  // QEMU's description
        std::uint32_t site;
        std::uint16_t bytes;
        bool writes;
    };
    std::vector<Seen> seen;

    std::uint32_t count_site() const { return site + operand_count; }
};

// Lines of code that an instruction touches and its predecessor in the block does not.
struct Fetch {
    std::uint64_t pc = 0;
    std::uint32_t site = 0;
    std::uint32_t first = 0, last = 0;  // numbers of lines
    std::uint32_t block = 0;            // of which the instruction is the first
};

// Code that is referred to like data: with trace_capture_code. Consecutive instructions up to one
// with data references.
struct CodeFetches {
    struct Piece {
        std::uint64_t pc;
        std::uint32_t instr, bytes, site;
    };
    std::vector<Piece> pieces;  // one for each line
};

// A block of the trace: code that QEMU has translated as a whole.
struct GuestBlock {
    struct Part {
        Operation* operation = nullptr;  // nullptr: no references
        Fetch* fetch = nullptr;          // nullptr: needs no check
        CodeFetches* code = nullptr;     // that begin with the instruction
        bool clears_line = false;
        bool known = true;  // false: it may have references, of an unknown kind
    };

    std::uint32_t index = 0;
    Fetch* fetch = nullptr;  // of the first instruction
    std::uint64_t pc = 0, end = 0;
    std::uint32_t instr_count = 0;
    bool is_user = false;  // see GuestCode::is_user()
    // The last instruction. `site`: of its branch records; kNoSite if none are wanted.
    static constexpr std::uint32_t kNoSite = UINT32_MAX;
    struct Last {
        std::uint64_t pc = 0;
        std::uint64_t target = 0;  // of a direct jump or call
        bool ends_handler = false;
        std::uint8_t flags = 0;  // TRACE_INSTR_*
        std::uint32_t site = kNoSite;
        // Of the records of a call, its target, and a return.
        std::uint32_t call_site = kNoSite, target_site = kNoSite, return_site = kNoSite;
    } last;
    std::uint16_t context_word = 0;  // see trace::ContextNode
    std::uint32_t site = kNoSite;    // of the records of its executions
    // With contexts or calls, the calls that an exception can leave for this block.
    std::vector<CodeRange> lands;
    // A handler of signals or interrupts begins here. Code can become one, while threads run.
    bool is_handler() const { return __atomic_load_n(&handler, __ATOMIC_RELAXED); }
    bool handler = false;
    bool enters_function = false;  // of those that the user names: see Regions
    std::vector<std::uint8_t> bytes;
    std::vector<Part> parts;  // by instruction
};

class GuestCode {
  public:
    struct Piece {
        std::uint64_t pc;
        std::span<const std::uint8_t> bytes;
        bool conditional = false;  // the code before decides whether it has an effect
    };

    GuestCode(driver::TraceTables& tables, const isa::Architecture& architecture)
        : tables_(tables), architecture_(architecture) {}

    // True if the bytes are only the begin of an x86 instruction.
    bool is_incomplete(const Piece& piece) const;
    // The same for a machine, where it is not certain: the instruction may not have the bytes that
    // its page lacks.
    bool may_be_incomplete(const Piece& piece) const;
    // The size of lines that instructions clear, if their addresses can be read; otherwise they
    // have no references.
    void set_cleared_bytes(unsigned bytes) { cleared_bytes_ = bytes; }
    // Takes the functions that the user names from the specification. Before files are mapped.
    void name_functions();
    // The names that no function has.
    std::vector<std::string> missing_functions() const { return functions_.unmatched(); }
    // Divides consecutive instructions into blocks, which can be as long as in a trace file. A
    // function that the user names begins a block.
    // `faults_anywhere`: also behind each one that may refer to memory, because an exception can
    // end the block there. Marks the conditional ones then.
    std::vector<std::span<const Piece>> divide(std::span<Piece> instructions, bool faults_anywhere);
    // The site of a reference of an instruction that is not described, valid until the next call.
    // nullptr if the architecture describes its instructions: it should have described this one.
    const Operation::Seen* seen(Operation& operation, std::uint32_t info, unsigned bytes,
                                bool writes);
    // Returns the block of these instructions, which is new or known from an earlier translation.
    // nullptr if the tables are full.
    GuestBlock* block_of(std::span<const Piece> instructions);
    // A file with code is mapped at these addresses, or no longer.
    void mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                const std::string& path);
    void unmapped(std::uint64_t start, std::uint64_t end);
    // A handler of signals or interrupts begins at this address.
    void note_handler(std::uint64_t pc);
    // For a whole machine. `kernel`: its image is a kernel, in the upper half of the addresses.
    void set_machine(bool kernel) {
        is_machine_ = true;
        is_kernel_ = kernel;
    }
    // User space, and code that starts the machine: calls and returns there are not followed. The
    // address of its first block stands for all of it.
    bool is_user(std::uint64_t pc) const { return is_kernel_ && pc >> 63 == 0; }
    std::uint64_t user_pc() const { return __atomic_load_n(&user_pc_, __ATOMIC_RELAXED); }
    // The processor returns from handlers with an instruction of its own.
    bool handlers_end() const { return !architecture_.elf.microcontroller; }

  private:
    // False if the references of the instruction are not known before QEMU makes them.
    bool describe(const Piece& piece, isa::Instruction& described) const;
    bool is_of_unknown_mode(std::uint64_t pc) const;
    GuestBlock* add_block(std::span<const Piece> instructions);
    void add_instruction(const Piece& piece, GuestBlock& block);
    void add_references(const isa::Instruction& described, std::uint32_t instr, std::uint64_t pc,
                        GuestBlock::Part& part);
    void add_fetch(const Piece& piece, std::uint32_t instr, GuestBlock::Part& part);
    void add_code(const Piece& piece, std::uint32_t instr, GuestBlock::Part& part);
    void close_code();
    void add_context_word(std::span<const Piece> instructions, GuestBlock& block);
    void add_call_sites(GuestBlock::Last& last, std::uint32_t instr);
    std::uint32_t branch_site(std::uint8_t flags, std::uint32_t instr);
    std::uint32_t line_number(std::uint64_t line);

    driver::TraceTables& tables_;
    const isa::Architecture& architecture_;
    bool is_machine_ = false, is_kernel_ = false;
    std::uint64_t user_pc_ = 0;
    unsigned cleared_bytes_ = 0;
    MappedLandingPads landing_pads_;
    driver::NamedFunctions functions_;
    std::unordered_map<std::uint64_t, std::vector<GuestBlock*>> blocks_by_pc_;
    std::unordered_set<std::uint64_t> conditional_;  // addresses of conditional instructions
    std::unordered_set<std::uint64_t> handlers_;     // their addresses
    std::deque<GuestBlock> blocks_;
    std::deque<Operation> operations_;
    std::deque<Fetch> fetches_;
    std::deque<CodeFetches> code_fetches_;
    CodeFetches* open_code_ = nullptr;      // to which the next instruction belongs
    std::uint64_t last_line_ = UINT64_MAX;  // that the block's last instruction touches
    std::unordered_map<std::uint64_t, std::uint32_t> line_numbers_;
    std::vector<std::uint32_t> lines_of_set_;
};

}  // namespace assay::qemu
