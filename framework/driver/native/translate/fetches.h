// Instrumentation of instruction fetches.
//
// Where a block begins, and where its code enters a line, a comparison with the line that was
// fetched last in the same set; see references.h for what filters leave out and why.
//
//   fetch_filter[line % sets]         a tag of the line
//
// Without a filter each instruction has a record.
//
// With ways in Spec::fetch the cache itself is looked at, and each fetch of a line that is in it
// notes when that was: see FirstLevel.
#pragma once

#include "framework/driver/native/translate/blocks.h"
#include "framework/driver/native/translate/references.h"

namespace assay::native {

// What the strategies have in common that filter references by lines: the table of the most
// recently referenced line of each set. A reference to that line needs no record: a cache
// simulation with at least that many sets would find it in the most recent way and change nothing.
//
//   data_filter[address & set_mask]   address of the line, or anything that no line's address is
//   behind it (kWrittenInEntry)       with Filter::kFirstWrites: that line if it was written since
//   it
//                                     became the most recent, else 0
//   footprints[address & set_mask]    with Filter::kFootprints, in the thread's slot: the bytes of
//                                     the line that were touched by what was not recorded

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
        return spec_.data.first_writes() && is_write(first_of(operands.item));
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

class Fetches final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) { return spec.captures & trace::kCaptureFetches; }

    // The check of a block's first instruction, unless that has an item. Some ways into the block
    // skip it.
    void at_entry(const PlannedBlock& block, Block& record) override;
    // Items of the others that begin another line than the one before; without a filter of all.
    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override;

  private:
    bool are_all_recorded() const { return spec_.fetch.sets == 0; }
    // The first instruction of a block has an item: with BlockRecords it stands behind the record.
    bool is_first_placed() const { return are_all_recorded() || BlockRecords::wanted(spec_); }

    // The lines that are checked, and what the record says.
    struct Fetch {
        std::uint64_t pc, first_line, last_line;
        std::uint32_t site;
        unsigned position;
        bool flags_live;
        bool goes_on;  // from the line before, which its block has fetched
    };

    // What a use of the first level is noted with, and whether the program needs what is in it.
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
    // Of a line in FirstLevel::code_places, in the context.
    std::size_t place_of(std::uint64_t line);
    void record(std::uint64_t pc, std::uint32_t site, unsigned position);
};

}  // namespace assay::native
