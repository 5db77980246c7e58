// The code cache: translated code, what is known of it, and the jumps within it.
//
// A unit is what one call of the translator made: basic blocks that follow one another in hot
// code, which runs when nothing special happens; their cold code (exits, filter misses) lies
// elsewhere. Threads run translated code while another one, which holds the driver's lock, adds to
// it and changes jumps: a displacement that is changed lies within an aligned quadword, so that it
// is fetched as it was or as it is (Assembler::patchable()).
//
// The memory has two halves. A flush forgets all translations and goes on in the other half, so
// that threads can run in the old translations until they leave them. By the next flush they must
// have.
#pragma once

#include "framework/driver/native/emit/record_stubs.h"
#include "framework/driver/native/machine/context.h"
#include "framework/driver/native/machine/pc_map.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/trace/trace_tables.h"
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

// There are many of these and of the next two kinds: their fields are as small as can be.
struct Block {
    std::uint64_t pc = 0;
    CodeAddress entry;          // translated
    CodeAddress entry_fetched;  // the same behind the check of its first fetch
    // The same behind what counts who comes from elsewhere; 0 if nothing does. See Intervals.
    CodeAddress entry_counted;
    // Where indirect branches arrive: code that makes sure that they go to `pc`. 0 if there is
    // none.
    CodeAddress landing;
    std::uint32_t index = 0;                // in CodeCache::blocks()
    std::uint32_t next_landed = kNoBlock;   // the block that landing_next() leads to
    std::uint32_t next_in_page = kNoBlock;  // the next block that begins in the same page
    std::uint32_t unit = 0;
    std::uint32_t id = 0;                 // index in the trace's block table
    std::uint32_t first_instr = 0;        // in the trace's instruction table
    std::uint32_t linked_from = kNoExit;  // the first exit that is linked to it
    std::uint16_t bytes = 0;              // of its instructions
    std::uint16_t instr_count = 0;
    // What `entry` counts: Boundaries::instructions_from; with counts_at_exits, position().
    std::uint16_t to_count = 0;
    std::uint8_t first_length = 0;  // bytes of its first instruction
    std::uint8_t counted_by = 0;    // the block of the unit that counts it, by its index there
    // Bytes from `landing` to the displacements of its jumps.
    std::uint8_t to_landing_jump = 0;  // 0: it runs on into the block
    std::uint8_t to_landing_next = 0;
    Version version : 2 = kCollecting;
    bool landed : 1 = false;     // the indirect table leads to `landing`
    bool suspended : 1 = false;  // CodeCache::suspend()
    bool chained : 1 = false;    // runs on into the unit's next block without a jump
    // The block before has fetched its first instruction's lines.
    bool previous_fetched : 1 = false;
    bool counts_at_exits : 1 = false;  // see Bursts

    // Instructions of the unit before the block, where that is of interest.
    std::uint16_t position() const { return counts_at_exits ? to_count : std::uint16_t{0}; }
    std::uint64_t end_pc() const { return pc + bytes; }  // behind its last instruction
    // Displacements of the landing's jumps: to `entry`, if it does not run on into it, and to the
    // next landing of the same index.
    std::uint64_t landing_jump() const { return landing + to_landing_jump; }
    std::uint64_t landing_next() const { return landing + to_landing_next; }
};
static_assert(sizeof(Block) == 64);

// kSpecial, kValuesBefore to kStateBehind and kCheck come back to where they left from, kEnters,
// kAllocates, kCountdown, kInterval and kSliceEnd may.
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
    kInterval,   // Context::interval_countdown has
    kSliceEnd,   // Context::slice_countdown has
    kMarker,
    kInterruptReturn,
    kUnsupported,
};

// A place where translated code can return to the driver.
struct Exit {
    ExitKind kind = ExitKind::kDirect;
    bool linked : 1 = false;  // kDirect: the jump goes to a block, not to `stub`
    // See Bursts: `counted_beyond` is what must be counted down when it is taken, and whether flags
    // must be kept on the way.
    bool counts : 1 = false;
    bool flags_live : 1 = false;
    std::uint16_t counted_beyond = 0;  // kDirect: what has been counted of what follows
    std::uint32_t block = 0;           // index in blocks()
    union {
        std::uint32_t next_linked = kNoExit;  // kDirect: the next exit linked to the same block
        std::uint32_t special;  // kSpecial, kValues...: index of the instruction, special()
    };
    std::uint32_t first_site = 0;  // kSpecial, kValuesBehind: of the instruction
    std::uint64_t target = 0;      // kDirect: the target's pc; else the pc of the instruction
    CodeAddress jump;              // kDirect: its 32-bit displacement
    CodeAddress stub;              // kDirect: the code that leaves; else where to go on

    std::uint16_t uncounted() const { return counts ? counted_beyond : std::uint16_t{0}; }
};
static_assert(sizeof(Exit) == 32);

// The state of the target where an instruction of it that may fault stands in hot code.
struct RecoveryPoint {
    std::uint32_t offset = 0;        // of the translated instruction, from the unit's hot_begin
    std::uint16_t pc_offset = 0;     // of the target's instruction, from the block's pc
    GprMask saved = 0;               // registers whose values wait in Context::gpr
    std::uint8_t cursor = kNoGpr;    // the register that holds the trace cursor
    std::uint8_t block = 0;          // in the unit
    std::uint8_t executed = 0;       // instructions of the block, this one included
    bool counted : 1 = false;        // whether the block's counter has been incremented
    bool rcx_is_target : 1 = false;  // rcx waits in Context::indirect_rcx
    // The base of this segment has been added to a register, unless it is kFlat.
    Segment displaced_by : 2 = Segment::kFlat;
    std::uint8_t displaced : 3 = 0;  // which, by its Gpr
};
static_assert(sizeof(RecoveryPoint) == 12);

struct Unit {
    CodeAddress hot_begin, hot_end;
    CodeAddress cold_begin, cold_end;
    bool landing = false;  // right before the first block
    std::uint32_t first_block = 0, block_count = 0;
    std::uint32_t first_exit = 0, exit_count = 0;
    std::uint32_t first_point = 0, point_count = 0;
    std::uint32_t first_site = 0, end_site = 0;  // in the trace's site table
    // In CodeCache::often_missed(): the sites whose checks have no branch.
    std::uint32_t first_missed = 0, missed_count = 0;
};

// jmp *gs:indirect_table(, rax, 8)
void emit_indirect_jump(Assembler& code, Version version);

class CodeCache {
  public:
    // Reserves the memory, and a window of address space right below it for the program and its
    // libraries: what lies there is in reach of 32-bit displacements. False if there is none.
    bool reserve();
    // Gives the window up to the program's mappings. Returns where it begins.
    std::uint64_t open_window();
    // Emits the common thunks. `context` is the first thread's: its indirect table is the one that
    // all threads use.
    void initialise(Context& context, const trace::Spec& spec);
    // Uses as little memory as possible. Before initialise().
    void make_small() { part_bytes_ = kSmallPart; }

    // --- Threads.

    // Until begin_threads() code refers to the first thread's context by its address. A flush has
    // to follow before another thread runs any.
    bool serves_one_thread() const { return sole_context_ != 0; }
    void begin_threads() { sole_context_ = 0; }
    // Makes the indirect table of `context` that of the first thread. False if that fails.
    bool share_indirect_table(Context& context);
    // For the child of a fork, in which `context` will be the only one: before, a copy of the table
    // if it is shared, since the parent's other threads go on; in the child, what becomes of it.
    std::vector<std::uint64_t> copy_shared_table() const;
    bool own_indirect_table(Context& context, std::span<const std::uint64_t> copy);
    // Some bytes of executable memory for the thread that uses this slot: see Stepper.
    std::uint64_t step_buffer(std::uint32_t slot) const { return base_ + slot * kStepBytes; }

    // --- Translations since the last flush.

    Block* find(std::uint64_t pc, Version version = kCollecting);
    std::deque<Block>& blocks() { return current().blocks; }
    std::deque<Exit>& exits() { return current().exits; }
    // References to units stay valid until the flush after the next.
    std::deque<Unit>& units() { return current().units; }
    std::vector<std::uint32_t>& often_missed() { return current().often_missed; }
    std::deque<RecoveryPoint>& points() { return current().points; }
    std::vector<Instruction>& specials() { return current().specials; }
    std::span<const std::uint32_t> often_missed(const Unit& unit) const {
        return {current().often_missed.data() + unit.first_missed, unit.missed_count};
    }
    // Before the first translation of that version. Most programs have those of one only.
    void use(Version version);
    // Makes blocks()[index] known to find().
    void enter_block(std::uint32_t index);

    // True if code that has just run from `begin` to `end` left the lines of the instruction at
    // `pc` the most recent ones of their sets.
    bool has_fetched(std::uint64_t begin, std::uint64_t end, std::uint64_t pc,
                     unsigned length) const;
    // A number that stands for an instruction line: equal only for equal lines.
    std::uint32_t line_tag(std::uint64_t line);
    // Likewise, for FirstLevel: from 0 up, densely, but for the lowest bits, which are those of the
    // line: its set. None is 0.
    std::uint32_t line_number(std::uint64_t line);
    // No more code can have such numbers.
    bool line_numbers_full() const;

    // Makes the jump of exits()[exit] go to `target`. It may do so already: the exit may have
    // been taken in code that replace() has replaced. Where there is no room for what that takes,
    // it goes on leaving.
    void link(std::uint32_t exit, Block& target);
    // Makes `unit`, with these exits and blocks, take the place of another that was made of the
    // same target code. That one's code can still be executed to its end.
    void replace(const Unit& unit, std::span<const Block> blocks, std::span<const Exit> exits);
    // Prepares the indirect table for jumps to `block`, if there is room for its landing.
    void add_landing(Block& block);

    // Forgets the units that have code in [start, end). Who executes them leaves them at their
    // next exit. Returns whether there were any.
    bool invalidate(std::uint64_t start, std::uint64_t end);
    // Code in [start, end) cannot be executed any more, and perhaps later it can again: its units
    // are not found nor led to until then, unless they have been invalidated meanwhile.
    void suspend(std::uint64_t start, std::uint64_t end);
    void resume(std::uint64_t start, std::uint64_t end);
    // True if a block begins in that page, or in the page before and reaches into it.
    bool has_code(std::uint64_t page) const;

    // Forgets all translations. Those of before the last flush may not be executing.
    void flush();
    bool nearly_full() const;
    // The rows in the trace's tables that the last forgotten unit at `pc` had, or nullptr: one
    // that is the same can have them again.
    struct Rows {
        TableRows first{}, end{};
    };
    const Rows* forgotten_rows(std::uint64_t pc, Version version) const;
    // Before the trace says that other files are mapped: their code needs rows of its own.
    void forget_rows() { forgotten_rows_.clear(); }
    // Changes with each flush. Never 0.
    std::uint32_t generation() const { return generation_; }

    // --- Translations, also of before the last flush.

    // Number of exits()[index] in Context::exit_id, but for kFirstExit.
    std::uint32_t exit_number(std::uint32_t index) const {
        return index | (generation_ % 2 != 0 ? kOddGeneration : 0);
    }
    // An exit by Context::exit_id; whether it is in exits(), and at which index.
    const Exit& exit(std::uint32_t id) const;
    bool is_current(std::uint32_t id) const {
        return ((id - kFirstExit) & kOddGeneration) == exit_number(0);
    }
    std::uint32_t index_of_exit(std::uint32_t id) const {
        return (id - kFirstExit) & ~kOddGeneration;
    }
    // The block and the instruction of an exit by its id.
    const Block& block_of(std::uint32_t id) const;
    const Instruction& special(std::uint32_t id) const;

    bool contains(std::uint64_t host_pc) const { return host_pc - base_ < size_; }
    // The unit whose code contains the host address, or nullptr.
    const Unit* unit_at(std::uint64_t host_pc) const;
    // What is known of the target where the host address is in hot code, or nullptr; and the block.
    const RecoveryPoint* point_at(std::uint64_t host_pc) const;
    const Block& block_at(std::uint64_t host_pc, unsigned block_in_unit) const;
    // True if the unit at the host address was made of code in that page.
    bool reaches_into(std::uint64_t host_pc, std::uint64_t page_address) const;
    // The block whose entry is at the host address, or nullptr: there, all of the target's state
    // is where the target has it.
    const Block* entered_at(std::uint64_t host_pc) const;

    std::uint64_t hot = 0, cold = 0;  // where the next unit goes
    Assembler assembler_at(std::uint64_t address) const;
    // A function of one argument that sets the base of gs to it; only where
    // allows_base_instructions().
    std::uint64_t gs_setter() const { return gs_setter_; }
    std::uint64_t exit_thunk() const { return exit_thunk_; }
    // A subroutine that checks and records a reference. On Context::stub_stack, first pushed first:
    // its bytes; site; address. It changes no register but the flags and the trace cursor, which is
    // in the register `cursor`, or in the context if that is kNoGpr.
    std::uint64_t reference_stub(unsigned cursor) const {
        return reference_stubs_[std::min(cursor, kGprs)];
    }
    // The same for the references of a series; see Item::series_count. First pushed is by how many
    // bytes the last one lies above the first, then the site and the address of the first.
    std::uint64_t series_stub(unsigned cursor) const {
        return series_stubs_[std::min(cursor, kGprs)];
    }
    // The same for a reference of 1, 2, 4 or 8 bytes whose address is in the register `address` and
    // known to be in another line than the most recent of its set, or to be no multiple of `bytes`.
    // Pushed is the site; the cursor is in the context. Changes both registers.
    std::uint64_t miss_stub(unsigned address, unsigned spare, unsigned bytes);
    // With FirstLevel, the fetch from one or two lines, as emit_first_level_fetch_stub(), and from
    // one that is not in the cache, as emit_first_level_fetch_miss_stub().
    std::uint64_t fetch_miss_stub() const { return fetch_miss_stub_; }
    std::uint64_t fetch_stub(unsigned cursor) const {
        return fetch_stubs_[std::min(cursor, kGprs)];
    }
    // With contexts: see record_stubs.h.
    std::uint64_t call_tree_stub(CallTreeStub stub) const { return call_tree_stubs_[stub]; }
    std::uint64_t indirect_miss() const { return indirect_miss_; }
    // An indirect branch arrives that leaves for kLeft.
    std::uint64_t left_thunk() const { return left_thunk_; }
    // The same for kCountedOut.
    std::uint64_t counted_out_thunk() const { return counted_out_thunk_; }

  private:
    static constexpr std::uint32_t kOddGeneration = 0x80000000;
    static constexpr std::uint64_t kStepBytes = 32;
    static constexpr std::uint64_t kPart = 128 * trace::kMiB, kSmallPart = 2048 * 1024ULL;

    // The translations between two flushes. In deques, because growing vectors would need twice
    // their memory, and three times that when they are copied.
    struct Generation {
        std::deque<Block> blocks;
        std::deque<Exit> exits;
        std::deque<Unit> units;
        std::deque<RecoveryPoint> points;
        std::vector<std::uint32_t> often_missed;
        std::vector<Instruction> specials;
        std::uint64_t hot_begin = 0, hot_end = 0, cold_end = 0;
    };

    // At once for whoever executes it: see Assembler::patchable().
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
    void emit_thunks(const trace::Spec& spec);
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
    std::uint64_t* indirect_table_ = nullptr;  // those of all versions, one behind the other
    int shared_table_ = -1;                    // memory file, once several threads have used it
    trace::Filter fetch_filter_{};
    std::uint64_t window_ = 0, base_ = 0, size_ = 0;
    std::uint64_t part_bytes_ = kPart;  // of hot or cold code, in one half
    std::uint32_t generation_ = 1;
    std::uint64_t gs_setter_ = 0, exit_thunk_ = 0, indirect_miss_ = 0, left_thunk_ = 0,
                  counted_out_thunk_ = 0;
    static constexpr unsigned kGprs = 16;
    std::uint64_t reference_stubs_[kGprs + 1]{}, series_stubs_[kGprs + 1]{},
        fetch_stubs_[kGprs + 1]{};
    std::uint64_t call_tree_stubs_[kCallTreeStubs]{};
    static constexpr unsigned kMissStubSizes = 4;  // log2 of `bytes`
    trace::Spec spec_{};
    std::uint64_t miss_stubs_ = 0, miss_stub_bytes_ = 0, fetch_miss_stub_ = 0;
    std::bitset<kGprs * kGprs * kMissStubSizes> has_miss_stub_;
    std::uint64_t thunks_end_ = 0;
    Generation halves_[2];
    std::vector<std::uint64_t> line_regions_;
    PcMap<std::uint32_t> line_numbers_;
    std::vector<std::uint32_t> lines_of_set_;  // how many have numbers, and one more
    std::uint32_t most_lines_of_set_ = 0;
    PcMap<std::uint32_t> tables_[kVersions];  // indexes in blocks(), or kNoBlock
    PcMap<std::uint32_t> pages_;  // by page: the last block that begins there, or kNoBlock
    // By index of the indirect table: the first block.
    std::vector<std::uint32_t> landings_[kVersions];
    bool used_[kVersions]{};
    std::vector<std::uint32_t> suspended_;  // units
    std::unordered_map<std::uint64_t, Rows> forgotten_rows_;
};

}  // namespace assay::native
