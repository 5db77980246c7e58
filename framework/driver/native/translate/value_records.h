// Instrumentation of values.
//
//   before the instruction   what it will change is read and waits in Context::values; so does an
//                            address that cannot be computed any more behind it
//   the instruction
//   behind it                all values are appended to the trace buffer, one record each, or of
//                            wide ones one for each 8 bytes
//
// What only the driver can read, it puts into Context::values, too: it is entered before the
// instruction, or right behind it.
//
// Thus an execution that does not complete leaves no record, and the records of one execution
// follow one another. The last is begun first: if the buffer has no room for all of them, that
// store faults, the buffer is given away as full as it is, and all go to the next one.
//
// Everything is made of instructions that leave the flags alone: moves, lea, not, rdtsc. Behind a
// branch there are no borrowed registers: rax is then the cursor, and rcx holds what is moved; both
// wait where indirect branches keep them.
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
    // Where a branch goes, if it is not known now.
    static constexpr std::uint64_t kNotTaken = ~std::uint64_t{0};
    static constexpr std::uint64_t kTargetInContext = ~std::uint64_t{1};

    // What is captured of an instruction; nullptr if nothing is.
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
    std::vector<Sites> sites_;  // of the blocks' conditional branches
};

}  // namespace assay::native
