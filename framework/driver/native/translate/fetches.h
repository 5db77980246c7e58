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

namespace assay::native {

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
