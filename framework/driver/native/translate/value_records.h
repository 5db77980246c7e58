// Instrumentation of values.
//
//   before the instruction   reads values that the instruction will change, and addresses that it
//                            makes unknown. They wait in Context::values
//   the instruction
//   after it                 appends all values to the trace buffer: a record for each value, or
//                            for each 8 bytes of a wide value
//
// Some values only the driver can read. It is entered before the instruction or right after it, and
// puts them into Context::values.
//
// An execution that does not complete therefore leaves no record, and the records of one execution
// are consecutive. The last record is begun first. If the buffer has no room for all of them, this
// store faults, the driver gives the buffer away, and all records go to the next one.
//
// All code keeps the flags: moves, lea, not, rdtsc. After a branch, no registers are borrowed: rax
// is the cursor, and rcx holds the value. The program's rax and rcx wait where indirect branches
// keep them.
#pragma once

#include "framework/driver/native/translate/capture.h"

namespace assay::native {

class Values final : public Capture {
  public:
    explicit Values(UnitWriter& writer)
        : Capture(writer), lists_(*writer.tables.value_lists()), sites_(plan_.blocks.size()) {}

    static bool wanted(const trace::Spec& spec) { return spec.captures & trace::kCaptureValues; }
    static ValueRegisters reads(const TraceTables& tables, const Form& form);

    void before(const Instruction& instruction, unsigned position) override;
    void behind(const Instruction& instruction, unsigned position) override;
    void before_branch(const Instruction& instruction, unsigned position) override;
    bool follows(const Instruction& branch, unsigned /*position*/) override {
        return list_of(branch) != nullptr;
    }
    void leave(const Way& way) override;
    void leave_indirectly(const Instruction& branch, unsigned position) override;

  private:
    struct Sites {
        std::uint32_t first = 0, count = 0;
    };
    struct ValueReader;
    // Values of `target` for branches whose target is not known now.
    static constexpr std::uint64_t kNotTaken = ~std::uint64_t{0};
    static constexpr std::uint64_t kTargetInContext = ~std::uint64_t{1};

    // The values to capture of an instruction; nullptr if it is not selected.
    const trace::ValueList* list_of(const Instruction& instruction) const;
    Sites new_sites(unsigned position, const trace::ValueList& list);
    void behind_branch(const Instruction& branch, const Sites& sites, std::uint64_t target);
    static GprMask registers_of(const Instruction& instruction);
    void take_registers(ValueReader& reader, unsigned position);
    void append_records(const ValueReader& reader, unsigned cursor, const Sites& sites,
                        std::uint64_t target);
    static void load_value(const ValueReader& reader, unsigned index, unsigned part,
                           std::uint64_t target);
    void read_time(std::size_t to, bool before);
    void read_by_driver(const Instruction& instruction, ExitKind kind, std::uint32_t first_site);
    void read_saved(const Instruction& instruction, const trace::ValueList& list, bool before);

    const trace::ValueLists& lists_;
    std::vector<Sites> sites_;  // by block: the sites of its conditional branch
};

}  // namespace assay::native
