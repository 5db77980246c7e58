// Emits one planned unit.
//
// It notes where the target's instructions stand in hot code and where the target's registers are
// there, in case one of them faults.
#pragma once

#include "framework/driver/native/emit/countdown.h"
#include "framework/driver/native/emit/record_stubs.h"
#include "framework/driver/native/translate/scratch.h"

#include <array>
#include <span>

namespace assay::native {

class Emitter {
  public:
    struct Output {
        std::vector<Exit> exits;  // block indexes count from the unit's first
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
    struct Numbers {  // what the next unit gets
        std::uint32_t block, instr, site, exit, special;
    };

    // `often_missed`: sites whose checks shall have no branch.
    // `values`: nullptr if none are captured.
    Emitter(const UnitPlan& plan, CodeCache& cache, TraceTables& tables,
            const trace::ValueLists* values, const Numbers& numbers,
            std::span<const std::uint32_t> often_missed, Assembler hot, Assembler cold)
        : plan_(plan),
          cache_(cache),
          tables_(tables),
          spec_(tables.spec()),
          values_(values),
          often_missed_(often_missed),
          next_site_(numbers.site),
          numbers_(numbers),
          hot_(hot),
          cold_(cold),
          scratch_(hot_, plan) {}
    Emitter(const Emitter&) = delete;
    Emitter& operator=(const Emitter&) = delete;

    void emit(Output& output, TraceTables* trace);
    const Assembler& hot() const { return hot_; }
    const Assembler& cold() const { return cold_; }

  private:
    // A group of references, and the registers that check it.
    struct Operands {
        const Item& item;
        const MemoryReference& form;  // of the first reference
        std::uint32_t site;           // of the first; the others follow
        unsigned a = 0, b = 0, c = kNoGpr, next = kNoGpr, cursor = kNoGpr;
    };
    struct ValueReader;  // see emit_values.cpp
    struct ValueSites {
        std::uint32_t first, count;
    };
    // Where a branch goes, if it is not known now.
    static constexpr std::uint64_t kNotTaken = ~std::uint64_t{0};
    static constexpr std::uint64_t kTargetInContext = ~std::uint64_t{1};
    // Those of a conditional branch's records, and where it goes if it is taken: to code behind the
    // unit's last block.
    struct BranchSites {
        std::uint32_t branch = 0;
        ValueSites values{};
    };
    struct TakenWay {
        unsigned block = 0;
        std::uint64_t jump = 0;  // displacement of the branch
        BranchSites sites;
    };

    void emit_block(unsigned index);
    void emit_landing(const PlannedBlock& block, Block& record);
    void emit_entry(const PlannedBlock& block, Block& record);
    void emit_first_fetch(const PlannedBlock& block, Block& record);
    void emit_check(const PlannedBlock& block);
    void emit_gate(const PlannedBlock& block);
    std::uint64_t leave_at_entry(const PlannedBlock& block, ExitKind kind, bool flags_saved);
    void emit_left_check(unsigned position);
    void emit_interval_countdown(Assembler& code, unsigned instructions, std::uint64_t leave);
    std::uint64_t emit_interval_arrival(const PlannedBlock& block, std::uint64_t body);
    unsigned instructions_from(const PlannedBlock& block) const;
    void emit_items(const PlannedBlock& block, unsigned position);
    void emit_instruction(const Instruction& instruction, unsigned position);
    void emit_translated(const Instruction& instruction, unsigned position);
    void emit_copy(const Instruction& instruction, unsigned position);
    void note_point(unsigned position);
    void emit_head(const Instruction& instruction, bool keeps_segment, unsigned extensions = 0);
    void emit_absolute_copy(const Instruction& instruction);
    void emit_based_copy(const Instruction& instruction, unsigned position);
    void emit_rest(const Instruction& instruction, unsigned from);

    void emit_segment_copy(const Instruction& instruction, unsigned position);
    unsigned acquire_for_address(const Form& form, unsigned position, GprMask others);
    void emit_based_operand(const Instruction& instruction, unsigned position);
    void emit_addressed_copy(const Instruction& instruction, unsigned position);
    void emit_translate(const Instruction& instruction, unsigned position);
    void emit_accumulator_move(const Instruction& instruction, unsigned position);
    void emit_displaced(const Instruction& instruction, unsigned position);
    void emit_base(const Instruction& instruction, unsigned position);
    void emit_branch_target_in_segment(const Instruction& last, unsigned position);
    void emit_flow(const PlannedBlock& block, const Instruction& last);
    void emit_continuation(const PlannedBlock& block, std::uint64_t target);
    std::uint64_t emit_branch(const Instruction& last);
    void emit_push_return(std::uint64_t return_pc);
    void emit_indirect(const Instruction& last, unsigned position);
    void emit_return(const Instruction& last, unsigned position);
    void emit_branch_target(const Instruction& last, unsigned position);
    void emit_leave(ExitKind kind, std::uint64_t pc);
    void direct_exit(Assembler& code, std::uint64_t site, std::uint64_t target,
                     unsigned uncounted = 0, bool flags_live = false);
    void emit_counted_branch(const PlannedBlock& block, const Instruction& last);
    void emit_counted_jump(const PlannedBlock& block, std::uint64_t target, bool flags_live);
    void emit_leaving_count(unsigned position);
    unsigned position_of(std::uint64_t pc) const;
    static void count_when_taken(Exit& exit, unsigned instructions) {
        exit.counts = true;
        exit.counted_beyond = static_cast<std::uint16_t>(instructions);
    }
    std::uint32_t add_exit(const Exit& exit);
    void emit_exit_id(Assembler& code, std::uint32_t exit);

    void emit_count(const Item& item);
    void emit_fetch_check(Assembler& code, unsigned instr, unsigned position, bool flags_live);
    void emit_fetch_record(std::uint64_t pc, std::uint32_t site, unsigned position);
    void emit_cold_references(const Operands& operands, unsigned count, std::uint64_t back);
    void emit_two_lines(const Operands& operands, unsigned count, std::uint64_t back);
    void emit_special(const Item& item);
    void emit_conditional(const PlannedBlock& block, const Instruction& last, unsigned position);
    void emit_way(const PlannedBlock& block, bool taken, const BranchSites& sites);
    void emit_taken_ways();
    void emit_prediction(const Instruction& branch, bool taken, Live live);
    void emit_target_prediction(const Instruction& branch, unsigned position);
    void emit_branch_record(std::uint32_t site, std::uint64_t target, bool taken, Live live);
    void emit_target_record(unsigned position, unsigned which);
    bool predicts() const;
    bool captures_branches(unsigned which) const;
    std::size_t counter_offset() const;
    void emit_stack_pointer(unsigned position, unsigned kind);
    void emit_flow_record(unsigned position, unsigned kind, unsigned value);
    const trace::ValueList* values_of(unsigned position) const;
    ValueSites new_value_sites(unsigned position, const trace::ValueList& list);
    void emit_values_before(const Instruction& instruction, unsigned position);
    void emit_values_behind(const Instruction& instruction, unsigned position);
    static GprMask registers_of(const Instruction& instruction);
    void take_registers(ValueReader& reader, unsigned position);
    void emit_value_records(const ValueReader& reader, unsigned cursor, const ValueSites& sites,
                            std::uint64_t target);
    static void emit_value(const ValueReader& reader, unsigned index, std::uint64_t target);
    void emit_time(std::size_t to, bool before);
    void emit_values_by_driver(const Instruction& instruction, ExitKind kind,
                               std::uint32_t first_site);
    void emit_saved_values(const Instruction& instruction, const trace::ValueList& list,
                           bool before);
    void emit_branch_values_before(const Instruction& instruction, unsigned position);
    void emit_branch_values(Assembler& code, const Instruction& instruction, unsigned position,
                            const ValueSites& sites, std::uint64_t target);
    void emit_branch_values(unsigned position, std::uint64_t target);
    void emit_record_in_rax(std::uint32_t site, unsigned value, std::uint32_t aux = 0);
    void emit_driver_part(const Instruction& instruction, std::uint32_t first_site);
    void emit_state_copy(const Instruction& instruction, unsigned position);
    void emit_data(const Item& item);
    void emit_constant_reference(Operands& operands);
    void emit_branch_if_new(const Operands& operands);
    std::array<std::uint64_t, 2> emit_ends_check(Assembler& code, const Operands& operands);
    void emit_series(const Operands& operands);
    void emit_miss(const Operands& operands, bool may_be_misaligned, std::uint64_t back);
    template <typename PushArguments>
    void call_stub(std::uint64_t stub, const PushArguments& push_arguments);
    // Calls of stubs take less room, and more time. That of a miss also expects the cursor in the
    // context.
    bool records_inline() const {
        return !often_missed_.empty() || scratch_.cached_cursor() != kNoGpr;
    }
    void emit_constant_record(std::uint64_t value, std::uint32_t site, unsigned spare);
    void emit_miss_inline(const Operands& operands, bool may_be_misaligned, std::uint64_t back);
    void emit_footprint(Operands& operands);
    std::uint64_t emit_footprint_check(const Operands& operands, bool aligned);
    void emit_new_footprint(Operands operands, bool may_be_misaligned, std::uint64_t back);
    void emit_first_address(Assembler& code, const Operands& operands, bool flags_saved);
    void emit_run(Operands& operands);
    void emit_unnumbered(const Operands& operands);
    void emit_each(const Operands& operands, std::size_t run);
    void emit_run_check(const Operands& operands, std::size_t run);
    void emit_new_run(const Operands& operands, std::size_t run, std::uint64_t back);
    static void emit_run_record(Assembler& code, unsigned cursor, const Operands& operands,
                                std::size_t run);
    void emit_append_if_new(const Operands& operands);
    void emit_append_if_either_new(const Operands& operands);
    void emit_unfiltered_reference(const Operands& operands);
    std::uint64_t emit_line(const Operands& operands, bool compares_alignment);
    void emit_address(Assembler& code, const Operands& operands, const PlannedReference& reference,
                      bool flags_saved);
    void emit_append(Assembler& code, unsigned cursor, unsigned value, std::uint32_t site,
                     std::uint32_t aux = 0);
    std::uint32_t new_sites(const Item& item);
    std::uint32_t new_site(unsigned instr, unsigned bytes, unsigned kind, unsigned operand);
    std::uint32_t global_instr(unsigned instr) const { return numbers_.instr + instr; }

    const UnitPlan& plan_;
    CodeCache& cache_;
    TraceTables& tables_;
    const trace::Spec& spec_;
    const trace::ValueLists* values_;
    std::span<const std::uint32_t> often_missed_;
    std::uint32_t next_site_;
    Numbers numbers_;
    Assembler hot_, cold_;
    Scratch scratch_;
    Output* output_ = nullptr;
    TraceTables* trace_ = nullptr;
    unsigned block_index_ = 0;
    unsigned next_item_ = 0;
    bool counted_ = false;
    std::uint8_t counted_by_ = 0;  // the last block that counts its interval down
    std::uint64_t hot_begin_ = 0;
    std::vector<TakenWay> taken_ways_;
};

}  // namespace assay::native
