// Instrumentation of instruction fetches.
//
// Where a block begins, and where its code enters a line, a comparison with the line that was
// fetched last in the same set; see references.h for what filters leave out and why.
//
//   fetch_filter[line % sets]         a tag of the line
//
// Without a filter each instruction has a record.
//
// With Spec::fetch_ways the cache itself is looked at, and each fetch of a line that is in it notes
// when that was: see FirstLevel.
#pragma once

#include "framework/driver/native/translate/block_records.h"

namespace assay::native {

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
