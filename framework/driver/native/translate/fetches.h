// Instrumentation of instruction fetches.
//
// At the beginning of a block, and where its code enters another line, the code compares the line
// with the last one that was fetched in the same set; see references.h.
//
//   fetch_filter[line % sets]         a tag of the line
//
// Without a filter each instruction has a record.
//
// With ways in Spec::fetch, the code looks into the cache itself. Each fetch of a line in the cache
// stores the time: see FirstLevel.
#pragma once

#include "framework/driver/native/translate/blocks.h"
#include "framework/driver/native/translate/references.h"

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

class Fetches final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) { return spec.captures & trace::kCaptureFetches; }

    // The check of a block's first instruction, unless an item has it. Some ways into the block
    // skip the check.
    void at_entry(const PlannedBlock& block, Block& record) override;
    // Items for the other instructions that begin another line; without a filter, for all.
    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override;

  private:
    bool are_all_recorded() const { return spec_.fetch.sets == 0; }
    // True if an item checks a block's first instruction: with BlockRecords, after the record.
    bool is_first_placed() const { return are_all_recorded() || BlockRecords::wanted(spec_); }

    // The lines that are checked, and the content of the record.
    struct Fetch {
        std::uint64_t pc, first_line, last_line;
        std::uint32_t site;
        unsigned position;
        bool flags_live;
        bool goes_on;  // from the line before, which the block has fetched
    };

    // Registers for a use of the first level, and whether the program needs their values.
    struct Borrowed {
        unsigned place, time;
        bool place_is_live, time_is_live;
    };

    bool crosses_line(unsigned instr) const;
    void check(Assembler& code, unsigned instr, unsigned position, bool flags_live);
    void filter(Assembler& code, const Fetch& fetch);
    void use_first_level(Assembler& code, const Fetch& fetch);
    void call_first_level(const Fetch& fetch);
    void exchange(Assembler& code, unsigned operation, const Borrowed& registers);
    // The offset of a line's element of FirstLevel::code_places in the context.
    std::size_t place_of(std::uint64_t line);
    void record(std::uint64_t pc, std::uint32_t site, unsigned position);
};

}  // namespace assay::native
