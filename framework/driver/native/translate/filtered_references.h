// References are recorded whose line is not the most recent one of its set. Two ways to check that:
//   branch        compare and branch to cold code, which appends the record
//   no branch     the record is always written, and the cursor moves on only if the line is a
//                 new one; for references that miss so often that the branch would be mispredicted
// All begin with the branch; MissSampler finds those that had better have none.
#pragma once

#include "framework/driver/native/translate/fetches.h"

#include <array>

namespace assay::native {

class FilteredReferences : public LineReferences {
  public:
    using LineReferences::LineReferences;

  protected:
    void constant_hit(const Operands& /*operands*/, std::size_t /*entry*/) override {}
    void constant_miss(const Operands& operands, std::size_t entry, std::uint64_t back) override;
    // `a` holds a line that is not the most recent, or, if that `may_be_misaligned`, an address in
    // it whose reference may lie in two; `b` the set. In cold code.
    virtual void record_miss(const Operands& operands, bool may_be_misaligned, std::uint64_t back);
    // The group's first `count` references, which may lie in two lines. In cold code.
    virtual void record_two_lines(const Operands& operands, unsigned count, std::uint64_t back);
    // The line of the first byte of a series, or of the last, is not the most recent. In cold code.
    virtual void record_series(const Operands& operands, std::uint64_t back);

  private:
    void computed(Operands& operands) override;
    // In cold code: of that set, whose place in the context is known.
    void forget_write(std::size_t entry);
    void append_if_new(const Operands& operands);
    void append_if_either_new(const Operands& operands);
    void branch_if_new(const Operands& operands);
    std::array<std::uint64_t, 2> check_ends(Assembler& code, const Operands& operands);
    void check_series(const Operands& operands);
    std::uint64_t load_line(const Operands& operands, bool compares_alignment);
    void record_miss_inline(const Operands& operands, bool may_be_misaligned, std::uint64_t back);
    // Calls of stubs take less room, and more time. That of a miss also expects the cursor in the
    // context.
    bool records_inline() const {
        return !writer_.often_missed.empty() || scratch_.cached_cursor() != kNoGpr;
    }
};

}  // namespace assay::native
