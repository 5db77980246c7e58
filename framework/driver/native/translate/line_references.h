// What the strategies have in common that filter references by lines: the table of the most
// recently referenced line of each set. A reference to that line needs no record: a cache
// simulation with at least that many sets would find it in the most recent way and change nothing.
//
//   data_filter[address & set_mask]   address of the line, or anything that no line's address is
//   behind it (kWrittenInEntry)       with Spec::first_writes: that line if it was written since it
//                                     became the most recent, else 0
//   footprints[address & set_mask]    with Spec::footprints, in the thread's slot: the bytes of
//                                     the line that were touched by what was not recorded
#pragma once

#include "framework/driver/native/translate/references.h"

namespace assay::native {

inline constexpr std::size_t kTag = offsetof(Context, data_filter);
inline constexpr std::size_t kWrittenTag = kTag + kWrittenInEntry;
inline constexpr std::size_t kTouched = kFootprintsOffset;
inline constexpr std::int32_t kMostAlignedBytes = 8;

class LineReferences : public DataReferences {
  public:
    using DataReferences::DataReferences;

  protected:
    // Addresses known now: so is their set, and whether they straddle. Those of a group do not,
    // unless it is of one.
    void constant(Operands& operands) final;
    // What is done about one where its line is the most recent of its set, in hot code, and where
    // it is not, in cold code: then `a` has the line's address. `entry`: of the set in the table,
    // in the context.
    virtual void constant_hit(const Operands& operands, std::size_t entry) = 0;
    virtual void constant_miss(const Operands& operands, std::size_t entry, std::uint64_t back) = 0;

    // Groups have references of one kind then.
    bool is_first_write(const Operands& operands) const {
        return spec_.first_writes != 0 && is_write(first_of(operands.item));
    }
    // What tells that the group needs no record.
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

}  // namespace assay::native
