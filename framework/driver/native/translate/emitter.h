// Emits one planned unit: the program's instructions, and what the captures have to say at each
// point. The order in which they speak is here and nowhere else:
//
//   at a block's entry        Boundaries::gate, Fetches::at_entry, Boundaries::interval_arrival
//   before an instruction     the plan's items (unit_items.cpp): counts, Fetches, DataReferences,
//                             what only the driver can see, Calls; then Values::before
//   behind it                 Values::behind, Calls (the stack pointer)
//   where the unit is left    Values, Branches, Predictions, Boundaries
//
// A new capture is a class of its own, called here, with a kind of Item if it is to be placed
// where flags and registers are dead.
#pragma once

#include "framework/driver/native/translate/boundaries.h"
#include "framework/driver/native/translate/control_flow.h"
#include "framework/driver/native/translate/copies.h"
#include "framework/driver/native/translate/fetches.h"
#include "framework/driver/native/translate/references.h"
#include "framework/driver/native/translate/value_records.h"

namespace assay::native {

class Emitter : public UnitPart {
  public:
    // `lists`: nullptr if no values are captured.
    Emitter(UnitWriter& writer, const trace::ValueLists* lists)
        : UnitPart(writer),
          copies_(writer),
          boundaries_(writer),
          fetches_(writer),
          references_(data_references(writer)),
          branches_(writer),
          predictions_(writer),
          calls_(writer),
          values_(writer, lists) {}

    void emit();

  private:
    // Those of a conditional branch's records, and where it goes if it is taken: to code behind the
    // unit's last block.
    struct BranchSites {
        std::uint32_t branch = 0;
        Values::Sites values{};
    };
    struct TakenWay {
        unsigned block = 0;
        std::uint64_t jump = 0;  // displacement of the branch
        BranchSites sites;
    };

    void emit_block(unsigned index);
    void emit_landing(const PlannedBlock& block, Block& record);
    void emit_entry(const PlannedBlock& block, Block& record);
    void emit_check(const PlannedBlock& block);
    void emit_items(const PlannedBlock& block, unsigned position);
    void emit_count(const Item& item);
    void emit_special(const Item& item);
    void emit_instruction(const Instruction& instruction, unsigned position);
    // --- How a block ends (emit_flow.cpp).
    void emit_flow(const PlannedBlock& block, const Instruction& last);
    void emit_continuation(const PlannedBlock& block, std::uint64_t target);
    std::uint64_t emit_branch(const Instruction& last);
    void emit_push_return(std::uint64_t return_pc);
    void emit_indirect(const Instruction& last, unsigned position);
    void emit_return(const Instruction& last, unsigned position);
    void emit_conditional(const PlannedBlock& block, const Instruction& last, unsigned position);
    void emit_counted_branch(const PlannedBlock& block, const Instruction& last);
    void emit_taken_ways();
    void emit_way(const PlannedBlock& block, bool taken, const BranchSites& sites);

    Copies copies_;
    Boundaries boundaries_;
    Fetches fetches_;
    std::unique_ptr<DataReferences> references_;
    Branches branches_;
    Predictions predictions_;
    Calls calls_;
    Values values_;
    unsigned next_item_ = 0;
    std::vector<TakenWay> taken_ways_;
};

}  // namespace assay::native
