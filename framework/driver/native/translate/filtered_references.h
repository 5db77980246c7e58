// Records references whose line is not the most recent one of its set. There are two kinds of
// checks:
//   branch        compare, and branch to cold code that appends the record
//   no branch     always write the record, and move the cursor on only if the line is a new one;
//                 for references that miss so often that the branch would be mispredicted
// All checks begin with the branch. MissSampler finds those that are faster without it.
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
    // In cold code. `a` holds a line that is not the most recent one; `b` the set. If the reference
    // `may_be_misaligned`, `a` holds its address, and it may lie in two lines.
    virtual void record_miss(const Operands& operands, bool may_be_misaligned, std::uint64_t back);
    // In cold code: the group's first `count` references, which may lie in two lines.
    virtual void record_two_lines(const Operands& operands, unsigned count, std::uint64_t back);
    // In cold code: the line of a series' first or last byte is not the most recent one.
    virtual void record_series(const Operands& operands, std::uint64_t back);

  private:
    void computed(Operands& operands) override;
    // In cold code, for the set with this entry in the context.
    void forget_write(std::size_t entry);
    void append_if_new(const Operands& operands);
    void append_if_either_new(const Operands& operands);
    void branch_if_new(const Operands& operands);
    std::array<std::uint64_t, 2> check_ends(Assembler& code, const Operands& operands);
    void check_series(const Operands& operands);
    std::uint64_t load_line(const Operands& operands, bool compares_alignment);
    void record_miss_inline(const Operands& operands, bool may_be_misaligned, std::uint64_t back);
    // Stub calls take less room, but more time. The stub for a miss also needs the cursor in the
    // context.
    bool records_inline() const {
        return !writer_.often_missed.empty() || scratch_.cached_cursor() != kNoGpr;
    }
};

}  // namespace assay::native
