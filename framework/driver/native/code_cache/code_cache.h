// The code cache: translated code, data about it, and the jumps within it.
//
// A unit is the result of one call of the translator. Its hot code has basic blocks that follow one
// another. Its cold code (exits, filter misses) lies elsewhere. Threads run translated code while
// another one, which holds the driver's lock, adds code and changes jumps. A displacement that is
// changed lies within an aligned quadword, so that a processor fetches either the old or the new
// value (Assembler::patchable()).
//
// The memory has two halves. A flush forgets all translations and continues in the other half.
// Threads may stay in the old translations until the next flush.
#pragma once

#include "framework/driver/native/emit/record_stubs.h"
#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/machine/pc_map.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/trace/thread_trace.h"
#include "framework/x86/instruction.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

namespace assay::native {

inline constexpr std::uint32_t kNoBlock = 0xffffffff, kNoExit = 0xffffffff;

// There are many blocks, exits and recovery points, so their fields are as small as possible.
struct Block {
    std::uint64_t pc = 0;
    CodeAddress entry;          // of the translated code
    CodeAddress entry_fetched;  // after the check of the first fetch
    // After the code that counts entries from elsewhere; 0 if there is no such code. See Intervals.
    CodeAddress entry_counted;
    // The address for indirect branches: code that checks that the target is `pc`. 0: no landing.
    CodeAddress landing;
    std::uint32_t index = 0;                // index in CodeCache::blocks()
    std::uint32_t next_landed = kNoBlock;   // the block that landing_next() leads to
    std::uint32_t next_in_page = kNoBlock;  // the next block that starts in the same page
    std::uint32_t unit = 0;
    std::uint32_t id = 0;                 // index in the trace's block table
    std::uint32_t first_instr = 0;        // index in the trace's instruction table
    std::uint32_t linked_from = kNoExit;  // the first exit that is linked to it
    std::uint16_t bytes = 0;              // size of its instructions
    std::uint16_t instr_count = 0;
    // Counted by `entry`: Boundaries::instructions_from, or position() with counts_at_exits.
    std::uint16_t to_count = 0;
    std::uint8_t first_length = 0;  // bytes of its first instruction
    std::uint8_t counted_by = 0;    // index in the unit of the block that counts it
    // Bytes from `landing` to the displacements of its jumps.
    std::uint8_t to_landing_jump = 0;  // 0: the landing runs on into the block
    std::uint8_t to_landing_next = 0;
    Version version : 2 = kCollecting;
    bool landed : 1 = false;     // the indirect table leads to `landing`
    bool suspended : 1 = false;  // CodeCache::suspend()
    bool chained : 1 = false;    // runs on into the unit's next block without a jump
    // The previous block has fetched the lines of the first instruction.
    bool previous_fetched : 1 = false;
    bool counts_at_exits : 1 = false;  // see Bursts

    // Instructions of the unit before the block, with counts_at_exits.
    std::uint16_t position() const { return counts_at_exits ? to_count : std::uint16_t{0}; }
    std::uint64_t end_pc() const { return pc + bytes; }  // after its last instruction
    // Displacements of the landing's jumps: to `entry`, if the landing does not run on into it, and
    // to the next landing with the same index.
    std::uint64_t landing_jump() const { return landing + to_landing_jump; }
    std::uint64_t landing_next() const { return landing + to_landing_next; }
};
static_assert(sizeof(Block) == 64);

// After kSpecial, kValuesBefore to kStateBehind and kCheck, the thread continues at the place it
// left. After kEnters, kAllocates, kCountdown, kInterval and kSliceEnd, it may do so.
enum class ExitKind : std::uint8_t {
    kDirect,
    kSyscall,
    kSpecial,
    kValuesBefore,  // special_references.cpp
    kValuesBehind,
    kStateBefore,  // SpecialValues::read_saved()
    kStateBehind,
    kCheck,
    kEnters,     // a function that switches collecting on
    kAllocates,  // one of AllocationFunctions
    kCountdown,  // Context::countdown has become negative
    kInterval,   // Context::interval_countdown has become negative
    kSliceEnd,   // Context::slice_countdown has become negative
    kMarker,
    kInterruptReturn,
    kUnsupported,
};

// A place where translated code can return to the driver.
struct Exit {
    ExitKind kind = ExitKind::kDirect;
    bool linked : 1 = false;  // kDirect: the jump goes to a block, not to `stub`
    // See Bursts. `counts`: the exit must count `counted_beyond` instructions down. `flags_live`:
    // it must keep the flags.
    bool counts : 1 = false;
    bool flags_live : 1 = false;
    std::uint16_t counted_beyond = 0;  // kDirect: counted instructions after the exit
    std::uint32_t block = 0;           // index in blocks()
    union {
        std::uint32_t next_linked = kNoExit;  // kDirect: the next exit linked to the same block
        std::uint32_t special;  // kSpecial, kValues...: index of the instruction in specials()
    };
    std::uint32_t first_site = 0;  // kSpecial, kValuesBehind: site of the instruction
    std::uint64_t target = 0;      // kDirect: the target's pc; otherwise the instruction's pc
    CodeAddress jump;              // kDirect: its 32-bit displacement
    CodeAddress stub;  // kDirect: the code that leaves; otherwise the place to continue at

    std::uint16_t uncounted() const { return counts ? counted_beyond : std::uint16_t{0}; }
};
static_assert(sizeof(Exit) == 32);

// The program's state at an instruction in hot code that may fault.
struct RecoveryPoint {
    std::uint32_t offset = 0;        // of the translated instruction from the unit's hot_begin
    std::uint16_t pc_offset = 0;     // of the program's instruction from the block's pc
    GprMask saved = 0;               // registers whose values are in Context::gpr
    std::uint8_t cursor = kNoGpr;    // the register that holds the trace cursor
    std::uint8_t block = 0;          // index in the unit
    std::uint8_t executed = 0;       // instructions of the block, up to and including this one
    bool counted : 1 = false;        // the block's counter is already incremented
    bool rcx_is_target : 1 = false;  // the value of rcx is in Context::indirect_rcx
    // The segment whose base was added to a register; kFlat: none.
    Segment displaced_by : 2 = Segment::kFlat;
    std::uint8_t displaced : 3 = 0;  // that register, by its Gpr
};
static_assert(sizeof(RecoveryPoint) == 12);

struct Unit {
    CodeAddress hot_begin, hot_end;
    CodeAddress cold_begin, cold_end;
    bool landing = false;  // there is a landing right before the first block
    std::uint32_t first_block = 0, block_count = 0;
    std::uint32_t first_exit = 0, exit_count = 0;
    std::uint32_t first_point = 0, point_count = 0;
    std::uint32_t first_site = 0, end_site = 0;  // in the trace's site table
    // A part of CodeCache::often_missed(): the sites whose checks have no branch.
    std::uint32_t first_missed = 0, missed_count = 0;
};

// jmp *gs:indirect_table(, rax, 8)
void emit_indirect_jump(Assembler& code, Version version);

class CodeCache {
  public:
    // Reserves the memory. Right below it, also reserves a window of addresses for the program and
    // its libraries, in reach of 32-bit displacements. False on failure.
    bool reserve();
    // Frees the window for the program's mappings. Returns its start.
    std::uint64_t open_window();
    // Emits the common thunks. `context` is the first thread's: all threads use its indirect table.
    void initialise(Context& context, const trace::Spec& spec, driver::ObjectRegions* regions);
    // Uses as little memory as possible. To be called before initialise().
    void make_small() { part_bytes_ = kSmallPart; }

    // --- Threads.

    // Until begin_threads() is called, code contains the address of the first thread's context. A
    // flush must follow before another thread runs code.
    bool serves_one_thread() const { return sole_context_ != 0; }
    void begin_threads() { sole_context_ = 0; }
    // Replaces the indirect table of `context` by the first thread's table. False if that fails.
    bool share_indirect_table(Context& context);
    // For the child of a fork, where `context` will be the only one. Before the fork: a copy of the
    // table if it is shared, because the parent's threads change it. In the child: stores it.
    std::vector<std::uint64_t> copy_shared_table() const;
    bool own_indirect_table(Context& context, std::span<const std::uint64_t> copy);
    // Executable memory of kStepBytes for the thread that uses this slot: see Stepper.
    std::uint64_t step_buffer(std::uint32_t slot) const { return base_ + slot * kStepBytes; }

    // --- Translations since the last flush.

    Block* find(std::uint64_t pc, Version version = kCollecting);
    std::deque<Block>& blocks() { return current().blocks; }
    std::deque<Exit>& exits() { return current().exits; }
    // References to units are valid until the second flush from now.
    std::deque<Unit>& units() { return current().units; }
    std::vector<std::uint32_t>& often_missed() { return current().often_missed; }
    std::deque<RecoveryPoint>& points() { return current().points; }
    std::vector<Instruction>& specials() { return current().specials; }
    std::span<const std::uint32_t> often_missed(const Unit& unit) const {
        return {current().often_missed.data() + unit.first_missed, unit.missed_count};
    }
    // To be called before the first translation of a version. Most programs use only one version.
    void use(Version version);
    // Registers blocks()[index] for find().
    void enter_block(std::uint32_t index);

    // True if code that has just run from `begin` to `end` has left the lines of the instruction at
    // `pc` as the most recent ones of their sets.
    bool has_fetched(std::uint64_t begin, std::uint64_t end, std::uint64_t pc,
                     unsigned length) const;
    // A number that identifies an instruction line, not 0.
    std::uint32_t line_tag(std::uint64_t line);
    // A number for an instruction line, for FirstLevel. The lowest bits are the line's set; the
    // other bits count the lines of the set, from 1.
    std::uint32_t line_number(std::uint64_t line);
    // True if no numbers are left for more code.
    bool line_numbers_full() const;

    // Makes the jump of exits()[exit] go to `target`. The jump may already do so, because the exit
    // may have been taken in code that replace() has replaced. If there is no room for the link,
    // the exit keeps leaving translated code.
    void link(std::uint32_t exit, Block& target);
    // Replaces another unit, made of the same code of the program, by `unit` with these exits and
    // blocks. Threads may still execute the old unit's code to its end.
    void replace(const Unit& unit, std::span<const Block> blocks, std::span<const Exit> exits);
    // Makes the indirect table lead to `block`, if there is room for its landing.
    void add_landing(Block& block);

    // Forgets the units with code in [start, end). A thread that executes such a unit leaves it at
    // the next exit. True if there was such a unit.
    bool invalidate(std::uint64_t start, std::uint64_t end);
    // Code in [start, end) cannot be executed for now. suspend() removes its units from find() and
    // from jumps. resume() registers them again, except units that were invalidated meanwhile.
    void suspend(std::uint64_t start, std::uint64_t end);
    void resume(std::uint64_t start, std::uint64_t end);
    // True if a block starts in that page, or reaches into it from the previous page.
    bool has_code(std::uint64_t page) const;

    // Forgets all translations. No thread may execute translations from before the previous flush.
    void flush();
    bool nearly_full() const;
    // The trace's rows of the last forgotten unit at `pc`, or nullptr. An equal unit reuses them.
    struct Rows {
        TableRows first{}, end{};
    };
    const Rows* forgotten_rows(std::uint64_t pc, Version version) const;
    // To be called before the trace reports other mapped files, because their code needs new rows.
    void forget_rows() { forgotten_rows_.clear(); }
    // Changes with each flush. Never 0.
    std::uint32_t generation() const { return generation_; }

    // --- Translations, also of before the last flush.

    // For exits()[index], Context::exit_id is kFirstExit plus this number.
    std::uint32_t exit_number(std::uint32_t index) const {
        return index | (generation_ % 2 != 0 ? kOddGeneration : 0);
    }
    // An exit by its id, the value of Context::exit_id. is_current() tells whether it is in
    // exits(), and index_of_exit() the index there.
    const Exit& exit(std::uint32_t id) const;
    bool is_current(std::uint32_t id) const {
        return ((id - kFirstExit) & kOddGeneration) == exit_number(0);
    }
    std::uint32_t index_of_exit(std::uint32_t id) const {
        return (id - kFirstExit) & ~kOddGeneration;
    }
    // The block and the instruction of an exit, by its id.
    const Block& block_of(std::uint32_t id) const;
    const Instruction& special(std::uint32_t id) const;

    bool contains(std::uint64_t host_pc) const { return host_pc - base_ < size_; }
    // The unit whose code contains the host address, or nullptr.
    const Unit* unit_at(std::uint64_t host_pc) const;
    // The recovery point of the host address, or nullptr outside of hot code; then the block.
    const RecoveryPoint* point_at(std::uint64_t host_pc) const;
    const Block& block_at(std::uint64_t host_pc, unsigned block_in_unit) const;
    // True if the unit at the host address was made from code in that page.
    bool reaches_into(std::uint64_t host_pc, std::uint64_t page_address) const;
    // The block whose entry is at the host address, or nullptr. The program's state is complete
    // there.
    const Block* entered_at(std::uint64_t host_pc) const;

    std::uint64_t hot = 0, cold = 0;  // addresses for the next unit
    Assembler assembler_at(std::uint64_t address) const;
    // The address of a function that sets the base of gs to its argument. Only if
    // allows_base_instructions().
    std::uint64_t gs_setter() const { return gs_setter_; }
    std::uint64_t exit_thunk() const { return exit_thunk_; }
    // A subroutine that checks and records a reference. The caller pushes to Context::stub_stack,
    // in this order: size in bytes, site, address. It changes only the flags and the trace cursor.
    // The cursor is in the register `cursor`, or in the context if `cursor` is kNoGpr.
    std::uint64_t reference_stub(unsigned cursor) const {
        return reference_stubs_[std::min(cursor, kGprs)];
    }
    // Like reference_stub(), for the references of a series; see Item::series_count. The caller
    // pushes the bytes from the first to the last reference, then site and address of the first.
    std::uint64_t series_stub(unsigned cursor) const {
        return series_stubs_[std::min(cursor, kGprs)];
    }
    // Like reference_stub(), for a reference of 1, 2, 4 or 8 bytes whose address is in the register
    // `address`. The reference is not in the most recent line of its set, or is no multiple of
    // `bytes`. The caller pushes the site; the cursor is in the context. Changes both registers.
    std::uint64_t miss_stub(unsigned address, unsigned spare, unsigned bytes);
    // With FirstLevel: emit_first_level_fetch_miss_stub() for a line that is not in the cache, and
    // emit_first_level_fetch_stub() for one or two lines.
    std::uint64_t fetch_miss_stub() const { return fetch_miss_stub_; }
    std::uint64_t fetch_stub(unsigned cursor) const {
        return fetch_stubs_[std::min(cursor, kGprs)];
    }
    // With ObjectRuns: see record_stubs.h.
    std::uint64_t object_stub() const { return object_stub_; }
    // With contexts: see record_stubs.h.
    std::uint64_t call_tree_stub(CallTreeStub stub) const { return call_tree_stubs_[stub]; }
    std::uint64_t indirect_miss() const { return indirect_miss_; }
    // The target of an indirect branch that leaves with kLeft.
    std::uint64_t left_thunk() const { return left_thunk_; }
    // The target of an indirect branch that leaves with kCountedOut.
    std::uint64_t counted_out_thunk() const { return counted_out_thunk_; }

  private:
    static constexpr std::uint32_t kOddGeneration = 0x80000000;
    static constexpr std::uint64_t kStepBytes = 32;
    static constexpr std::uint64_t kPart = 128 * trace::kMiB, kSmallPart = 2048 * 1024ULL;

    // The translations between two flushes. Deques, because a growing vector needs twice its
    // memory, and three times as much while it is copied.
    struct Generation {
        std::deque<Block> blocks;
        std::deque<Exit> exits;
        std::deque<Unit> units;
        std::deque<RecoveryPoint> points;
        std::vector<std::uint32_t> often_missed;
        std::vector<Instruction> specials;
        std::uint64_t hot_begin = 0, hot_end = 0, cold_end = 0;
    };

    // Atomic for threads that execute the jump: see Assembler::patchable().
    static void write_displacement(std::uint64_t site, std::uint64_t target) {
        const auto value = static_cast<std::uint32_t>(target - (site + 4));
        __atomic_store_n(reinterpret_cast<std::uint32_t*>(site), value, __ATOMIC_RELEASE);
    }
    Generation& current() { return halves_[generation_ % 2]; }
    const Generation& current() const { return halves_[generation_ % 2]; }
    const Generation& generation_of(std::uint32_t id) const {
        return is_current(id) ? current() : halves_[(generation_ + 1) % 2];
    }
    const Generation* generation_at(std::uint64_t host_pc) const;
    void begin_half();
    bool has_room_to_link() const;
    void clear_landings(Version version);
    std::uint32_t& first_landing(const Block& block);
    std::uint64_t* indirect_entry(const Block& block);
    void emit_thunks(const trace::Spec& spec, driver::ObjectRegions* regions);
    std::uint64_t emit_indirect_exit(Assembler& code, ExitReason reason);
    void direct(Exit& exit, const Block& target);
    std::uint64_t emit_counting_link(const Exit& exit, const Block& target);
    void emit_landing(Block& block);
    std::uint64_t landing_of(std::uint32_t block);
    void list_landing(Block& block);
    void unlist_landing(Block& block);
    template <typename Visit>
    void for_each_block(std::uint64_t start, std::uint64_t end, const Visit& visit);
    void unlink(const Unit& unit);
    void keep_rows(const Unit& unit);
    void set_suspended(const Unit& unit, bool suspended);

    std::uint64_t sole_context_ = 0;           // see serves_one_thread()
    std::uint64_t* indirect_table_ = nullptr;  // tables of all versions, one after the other
    int shared_table_ = -1;                    // memory file, if several threads have used it
    trace::Filter fetch_filter_{};
    std::uint64_t window_ = 0, base_ = 0, size_ = 0;
    std::uint64_t part_bytes_ = kPart;  // size of hot or cold code in one half
    std::uint32_t generation_ = 1;
    std::uint64_t gs_setter_ = 0, exit_thunk_ = 0, indirect_miss_ = 0, left_thunk_ = 0,
                  counted_out_thunk_ = 0;
    static constexpr unsigned kGprs = 16;
    std::uint64_t reference_stubs_[kGprs + 1]{}, series_stubs_[kGprs + 1]{},
        fetch_stubs_[kGprs + 1]{};
    std::uint64_t call_tree_stubs_[kCallTreeStubs]{};
    static constexpr unsigned kMissStubSizes = 4;  // log2 of `bytes`
    trace::Spec spec_{};
    std::uint64_t miss_stubs_ = 0, miss_stub_bytes_ = 0, fetch_miss_stub_ = 0, object_stub_ = 0;
    std::bitset<kGprs * kGprs * kMissStubSizes> has_miss_stub_;
    std::uint64_t thunks_end_ = 0;
    Generation halves_[2];
    PcMap<std::uint32_t> line_numbers_;  // or tags: a spec needs only one of them
    std::uint32_t last_line_tag_ = 0;
    std::vector<std::uint32_t> lines_of_set_;  // number of lines with numbers, plus one
    std::uint32_t most_lines_of_set_ = 0;
    PcMap<std::uint32_t> tables_[kVersions];  // indices in blocks(), or kNoBlock
    PcMap<std::uint32_t> pages_;  // page -> the last block that starts there, or kNoBlock
    // Index in the indirect table -> the first block.
    std::vector<std::uint32_t> landings_[kVersions];
    bool used_[kVersions]{};
    std::vector<std::uint32_t> suspended_;  // units
    std::unordered_map<std::uint64_t, Rows> forgotten_rows_;
};

}  // namespace assay::native
