// Records of data references for their objects: trace::records_objects(). They have their own
// sites, and are independent of the filter of the other records of references.
//
// References of a block whose addresses differ by constants share a record. Nothing changes objects
// within a block.
//
// With ObjectRuns, code checks whether the addresses are in the memory of the group's run. If they
// are, it only counts. Otherwise a stub records the address. There is no check for groups on the
// stack, where variables are small, and for those that have failed too often (MissSampler).
#pragma once

#include "framework/driver/native/translate/capture.h"

#include <vector>

namespace assay::native {

class ObjectReferences final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) { return trace::records_objects(spec); }

    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override;

  private:
    struct Member {
        std::uint16_t instr;
        std::uint8_t kind;
        std::int64_t offset;  // relative to the group's registers at its item
    };
    struct Group {
        MemoryReference form;  // of the first reference
        std::vector<Member> members;
        std::int64_t stack_change = 0;  // since the first reference
        bool open = true;
    };

    void place_reference(Placer& placer, unsigned instr, const MemoryReference& form);
    static bool join(Group& group, const Member& member, const MemoryReference& form);
    // The group's run, or ObjectRuns::kNone.
    std::uint32_t run_of(const Group& group, std::uint32_t site);
    void record(const Item& item, const Group& group, std::uint32_t site);
    void check(const Item& item, const Group& group, std::uint32_t site, std::uint32_t run);
    void end_run(const Group& group, std::uint32_t site, std::uint32_t run, unsigned address);

    std::vector<Group> groups_;
    std::size_t first_open_ = 0;  // the first group of the present block
};

}  // namespace assay::native
