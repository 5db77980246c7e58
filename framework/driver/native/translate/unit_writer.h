// The state that all parts of the emitter share: hot and cold code, borrowed registers, sites of
// records, exits, and recovery points.
#pragma once

#include "framework/driver/native/emit/countdown.h"
#include "framework/driver/native/emit/record_stubs.h"
#include "framework/driver/native/translate/scratch.h"

#include <span>

namespace assay::native {

class UnitWriter {
  public:
    struct Output {
        std::vector<Exit> exits;  // block indexes are relative to the unit's first block
        std::vector<Block> blocks;
        std::vector<RecoveryPoint> points;
        std::vector<Instruction> specials;

        void clear() {
            exits.clear();
            blocks.clear();
            points.clear();
            specials.clear();
        }
    };
    struct Numbers {  // the first numbers of the unit
        std::uint32_t block, instr, site, exit, special;
    };

    // `rows`: the tables that get the rows; nullptr if the unit has its rows already. `missed`:
    // sites whose checks must have no branch.
    UnitWriter(const UnitPlan& of, CodeCache& code_cache, TraceTables& trace_tables,
               TraceTables* rows, const Numbers& numbers, std::span<const std::uint32_t> missed,
               Output& to)
        : plan(of),
          cache(code_cache),
          tables(trace_tables),
          spec(trace_tables.spec()),
          trace(rows),
          often_missed(missed),
          hot(code_cache.assembler_at(code_cache.hot)),
          cold(code_cache.assembler_at(code_cache.cold)),
          scratch(hot, of),
          output(to),
          numbers_(numbers),
          next_site_(numbers.site),
          hot_begin_(hot.address),
          context_words_(of.blocks.size()) {}
    UnitWriter(const UnitWriter&) = delete;
    UnitWriter& operator=(const UnitWriter&) = delete;

    // --- Rows of the trace's tables.

    std::uint32_t block_id() const { return numbers_.block + block_index; }
    std::uint32_t instr_id(unsigned instr) const { return numbers_.instr + instr; }
    std::uint32_t next_site() const { return next_site_; }
    std::uint32_t new_site(unsigned instr, unsigned bytes, unsigned kind, unsigned operand);
    // The offset of the present block's counter in the context.
    std::size_t counter() const;
    // With contexts: the offset of the word that counts the present block in each node; 0 if no
    // word does.
    std::int32_t offset_in_node() const {
        return static_cast<std::int32_t>(trace::word_offset(context_words_[block_index]));
    }
    void set_context_word(std::uint32_t word) { context_words_[block_index] = word; }

    // --- Ways out of the unit.

    // Returns the number for exit_id(), which puts it into the context.
    std::uint32_t add_exit(const Exit& exit);
    void exit_id(Assembler& code, std::uint32_t exit);
    void leave(ExitKind kind, std::uint64_t pc);
    // The jump of `code` with the displacement at `site` leaves to the driver until it is linked.
    void direct_exit(Assembler& code, std::uint64_t site, std::uint64_t target,
                     unsigned uncounted = 0, bool flags_live = false);
    // The driver executes the next instruction, or looks at it, and returns.
    void enter_driver(const Instruction& instruction, std::uint32_t first_site);
    static void count_when_taken(Exit& exit, unsigned instructions) {
        exit.counts = true;
        exit.counted_beyond = static_cast<std::uint16_t>(instructions);
    }
    // The next code in hot is an instruction of the program.
    void note_point(unsigned position);

    // --- Records. They use only moves and lea, and keep the flags.

    // Writes a record at the cursor, and does not move the cursor.
    static void append(Assembler& code, unsigned cursor, unsigned value, std::uint32_t site,
                       std::uint32_t aux = 0);
    // Also moves the cursor on.
    static void append_constant(Assembler& code, unsigned cursor, std::uint64_t value,
                                std::uint32_t site);
    // In cold code. `spare` holds the cursor if no register does.
    void record_constant(std::uint64_t value, std::uint32_t site, unsigned spare);
    // Needs rax free, and no borrowed register.
    void record_by_rax(std::uint32_t site, unsigned value, std::uint32_t aux = 0);
    // In cold code: calls a stub of CodeCache on its own stack, with what `push_arguments` pushes.
    template <typename PushArguments>
    void call_stub(std::uint64_t stub, const PushArguments& push_arguments) {
        cold.with_thread(kStore, RSP, offsetof(Context, target_sp));
        cold.with_thread(kLoad, RSP, offsetof(Context, stub_sp));
        push_arguments();
        cold.call(stub);
        cold.with_thread(kLoad, RSP, offsetof(Context, target_sp));
    }

    const UnitPlan& plan;
    CodeCache& cache;
    TraceTables& tables;
    const trace::Spec& spec;
    TraceTables* const trace;
    const std::span<const std::uint32_t> often_missed;
    Assembler hot, cold;
    Scratch scratch;
    Output& output;
    unsigned block_index = 0;     // of the block that is being emitted
    bool counted = false;         // the block's counter has been incremented
    std::uint8_t counted_by = 0;  // the last block that counts down its interval

  private:
    const Numbers numbers_;
    std::uint32_t next_site_;
    const std::uint64_t hot_begin_;
    std::vector<std::uint32_t> context_words_;  // by block
};

// Base of the parts of the emitter: short names for the members of the writer.
class UnitPart {
  public:
    explicit UnitPart(UnitWriter& writer)
        : writer_(writer),
          plan_(writer.plan),
          cache_(writer.cache),
          spec_(writer.spec),
          hot_(writer.hot),
          cold_(writer.cold),
          scratch_(writer.scratch) {}
    UnitPart(const UnitPart&) = delete;
    UnitPart& operator=(const UnitPart&) = delete;

  protected:
    ~UnitPart() = default;

    UnitWriter& writer_;
    const UnitPlan& plan_;
    CodeCache& cache_;
    const trace::Spec& spec_;
    Assembler& hot_;
    Assembler& cold_;
    Scratch& scratch_;
};

}  // namespace assay::native
