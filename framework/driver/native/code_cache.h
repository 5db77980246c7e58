// The code cache: translated code, what is known of it, and the jumps within it.
//
// Two regions of one mapping: hot code, which runs when nothing special happens, and cold code
// (exits, filter misses). A unit is what one call of the translator made: basic blocks that
// follow one another in hot code.
#pragma once

#include "framework/driver/native/context.h"
#include "framework/driver/native/pc_map.h"

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace assay::native {

class Assembler;

inline constexpr std::uint32_t kNoBlock = 0xffffffff, kNoExit = 0xffffffff;

struct Block {
    std::uint64_t pc = 0;
    std::uint64_t end_pc = 0;         // behind its last instruction
    std::uint64_t entry = 0;          // translated address
    std::uint64_t entry_fetched = 0;  // the same behind the check of its first fetch
    // Where indirect branches arrive: code that makes sure that they go to `pc`. 0 if there is
    // none.
    std::uint64_t landing = 0;
    std::uint64_t landing_jump = 0;   // displacement of its jump to `entry`; 0: it runs on into it
    std::uint64_t landing_next = 0;   // displacement of its jump to the next of the same index
    std::uint64_t landing_after = 0;  // where that jump goes, unless the unit is diverted
    bool landed = false;              // the indirect table knows `landing`
    std::uint32_t unit = 0;
    std::uint32_t first_instr = 0;  // in the trace's instruction table
    std::uint32_t first_site = 0;
    std::uint16_t instr_count = 0;
    std::uint8_t first_length = 0;  // bytes of its first instruction
    bool chained = false;           // runs on into the unit's next block without a jump
    bool previous_fetched = false;  // the block before has fetched its first instruction's lines
    std::uint32_t id = 0;           // index in the trace's block table
    std::uint32_t linked_from = kNoExit;  // the first exit that is linked to it
};

enum class ExitKind : std::uint8_t { kDirect, kSyscall, kSpecial, kIdentify, kUnsupported };

// A place where translated code can return to the driver.
struct Exit {
    ExitKind kind = ExitKind::kDirect;
    std::uint32_t block = 0;   // index in blocks()
    std::uint64_t target = 0;  // kDirect: the target's pc; else the pc of the instruction
    std::uint64_t site = 0;    // kDirect: address of the jump's 32-bit displacement
    std::uint64_t stub = 0;    // kDirect: the code that leaves; kSpecial, kIdentify: where to go on
    std::uint64_t linked = 0;  // kDirect: what the jump goes to, stub if nothing
    std::uint32_t next_linked = kNoExit;  // the next exit that is linked to the same block
};

struct Unit {
    std::uint64_t hot_begin = 0, hot_end = 0;
    std::uint64_t cold_begin = 0, cold_end = 0;
    bool landing = false;  // right before the first block
    std::uint32_t first_block = 0, block_count = 0;
    std::uint32_t first_exit = 0, exit_count = 0;
    std::uint32_t end_site = 0;       // behind its last in the trace's site table
    std::uint64_t indirect_jump = 0;  // address of its jump through the indirect table, or 0
    // In CodeCache::often_missed(): the sites whose checks have no branch.
    std::uint32_t first_missed = 0, missed_count = 0;
};

// jmp *gs:indirect_table(, rax, 8): 8 bytes; at least the 5 that divert() overwrites.
void emit_indirect_jump(Assembler& code);

class CodeCache {
  public:
    // Reserves the memory, and a window of address space right below it for the program and its
    // libraries: what lies there is in reach of 32-bit displacements. False if there is none.
    bool reserve();
    // Gives the window up to the program's mappings. Returns where it begins.
    std::uint64_t open_window();
    // Emits the common thunks.
    void initialise(Context& context, const trace::Spec& spec);

    Block* find(std::uint64_t pc);
    std::uint32_t index_of(const Block& block) const {
        return static_cast<std::uint32_t>(&block - blocks_.data());
    }
    std::vector<Block>& blocks() { return blocks_; }
    std::vector<Exit>& exits() { return exits_; }
    // References to units stay valid until flush().
    std::deque<Unit>& units() { return units_; }
    std::vector<std::uint32_t>& often_missed() { return often_missed_; }
    std::span<const std::uint32_t> often_missed(const Unit& unit) const {
        return {often_missed_.data() + unit.first_missed, unit.missed_count};
    }
    // Makes blocks()[index] known to find().
    void enter_block(std::uint32_t index) { table_.set(blocks_[index].pc, index); }

    // True if code that has just run from `begin` to `end` left the lines of the instruction at
    // `pc` the most recent ones of their sets.
    bool has_fetched(std::uint64_t begin, std::uint64_t end, std::uint64_t pc,
                     unsigned length) const;
    // A number that stands for an instruction line: equal only for equal lines.
    std::uint32_t line_tag(std::uint64_t line);

    // Makes the jump of exits()[exit] go to `target`. It may do so already: the exit may have
    // been taken in code that replace() has replaced.
    void link(std::uint32_t exit, Block& target);
    // Makes `unit`, with these exits and blocks, take the place of another that was made of the
    // same target code. That one's code can still be executed to its end.
    void replace(const Unit& unit, std::span<const Block> blocks, std::span<const Exit> exits);
    // Prepares the indirect table for jumps to `block`.
    void add_landing(Block& block);

    // The unit whose code contains the host address, or nullptr.
    Unit* unit_at(std::uint64_t host_pc);
    // The unit that is executing, or about to, when the program is at the host address with this
    // stack pointer; nullptr if that is on its way to the driver.
    Unit* unit_behind(std::uint64_t host_pc, std::uint64_t sp);
    bool contains(std::uint64_t host_pc) const { return host_pc - base_ < size_; }
    // Makes every way out of the unit lead to the driver, and back. Async-signal-safe.
    void divert(const Unit& unit);
    void restore(const Unit& unit);

    // Forgets all translations. Nothing of them may be executing.
    void flush();
    bool nearly_full() const;
    // Changes with each flush.
    std::uint32_t generation() const { return generation_; }

    std::uint64_t hot = 0, cold = 0;  // where the next unit goes
    std::uint64_t exit_thunk() const { return exit_thunk_; }
    // A subroutine that checks and records a reference. On the stack, first pushed first: its
    // bytes; site; address. It returns with these popped and all registers but the flags as they
    // were. The trace cursor must be in the context.
    std::uint64_t reference_stub() const { return reference_stub_; }
    std::uint64_t indirect_miss() const { return indirect_miss_; }

  private:
    void emit_thunks(const trace::Spec& spec);
    void direct(Exit& exit, const Block& target);
    void emit_landing(Block& block);
    void move_landing(Block& block, const Block& to);

    Context* context_ = nullptr;
    trace::LineFilter fetch_filter_{};
    std::uint64_t window_ = 0, base_ = 0, size_ = 0, hot_end_ = 0, cold_end_ = 0;
    std::uint64_t hot_start_ = 0, cold_start_ = 0;
    std::uint32_t generation_ = 0;
    std::uint64_t exit_thunk_ = 0, indirect_miss_ = 0;
    std::uint64_t reference_stub_ = 0;
    std::vector<Block> blocks_;
    std::vector<Exit> exits_;
    std::deque<Unit> units_;
    std::vector<std::uint32_t> often_missed_;
    std::vector<std::uint64_t> line_regions_;
    PcMap<std::uint32_t> table_;  // indexes in blocks_
};

}  // namespace assay::native
