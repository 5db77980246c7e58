// Instrumentation of references that a filter by lines leaves out.
#pragma once

#include "framework/driver/native/translate/references.h"

#include <array>

namespace assay::native {

// The common part of the strategies that filter references by lines: a table of the most recently
// referenced line of each set. A reference to this line needs no record: a cache simulation with at
// least as many sets would find it in the most recent way, and change nothing.
//
//   data_filter[address & set_mask]   address of the line, or a value that is no line's address
//   next to it (kWrittenInEntry)      with Filter::kFirstWrites: the line if it was written since
//                                     it became the most recent one; otherwise 0
//   footprints[address & set_mask]    with Filter::kFootprints, in the thread's slot: the bytes of
//                                     the line that unrecorded references have touched

inline constexpr std::size_t kTag = offsetof(Context, data_filter);
inline constexpr std::size_t kWrittenTag = kTag + kWrittenInEntry;
inline constexpr std::size_t kTouched = kFootprintsOffset;
inline constexpr std::int32_t kMostAlignedBytes = 8;

class LineReferences : public DataReferences {
  public:
    using DataReferences::DataReferences;

  protected:
    // For addresses that are known now, the set is also known, and whether they straddle lines. A
    // group of several does not straddle.
    void constant(Operands& operands) final;
    // Emit code for a reference at a known address. constant_hit() emits hot code for the case that
    // its line is the most recent one of its set. constant_miss() emits cold code for the other
    // case, with the line's address in `a`. `entry`: the set's entry of the table, in the context.
    virtual void constant_hit(const Operands& operands, std::size_t entry) = 0;
    virtual void constant_miss(const Operands& operands, std::size_t entry, std::uint64_t back) = 0;

    // With first writes, the references of a group are all reads or all writes.
    bool is_first_write(const Operands& operands) const {
        return spec_.data.first_writes() && is_write(first_of(operands.item));
    }
    // The table entry that must hold the line if the group needs no record.
    std::size_t tag_of(const Operands& operands) const {
        return is_first_write(operands) ? kWrittenTag : kTag;
    }
    std::int32_t line_bytes() const { return static_cast<std::int32_t>(spec_.data.line_bytes); }
    std::uint64_t constant_address(const Operands& operands) const {
        return static_cast<std::uint64_t>(first_of(operands.item).offset);
    }
    std::uint64_t line_of(std::uint64_t address) const {
        return address & ~std::uint64_t{spec_.data.line_bytes - 1};
    }
};

// Records references whose line is not the most recent one of its set. There are two kinds of
// checks:
//   branch        compare, and branch to cold code that appends the record
//   no branch     always write the record, and move the cursor on only if the line is a new one;
//                 for references that miss so often that the branch would be mispredicted
// All checks begin with the branch. MissSampler finds those that are faster without it.
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
