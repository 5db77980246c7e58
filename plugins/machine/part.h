// Applies the steps of a part of the program's references, which come from FrontEnd, to the caches.
#pragma once

#include "plugins/machine/hierarchy.h"
#include "plugins/machine/steps.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace machine {

// A Part has, by record:
//     std::size_t size() const;                  // records
//     bool is_reference(std::size_t) const;
//     Reference reference(std::size_t) const;    // of the record
//     std::uint64_t* counts(std::size_t) const;  // an element for each column
template <typename Part>
class PartRun {
  public:
    PartRun(Hierarchy& hierarchy, std::uint32_t core, const Steps& steps, const Part& part)
        : hierarchy_(hierarchy),
          core_(core),
          part_(part),
          needed_(steps.needed()),
          wishes_(steps.wishes) {}

    void run() {
        hierarchy_.has_lost_first();
        for (std::size_t i = 0; i < needed_.size(); ++i)
            for (std::uint64_t left = needed_[i]; left != 0; left &= left - 1) {
                const std::size_t record =
                    i * 64 + static_cast<std::size_t>(std::countr_zero(left));
                if (!grant_before(record)) return;
                refer(record);
                if (hierarchy_.has_lost_first()) return run_all_from(record + 1);
            }
        grant_before(part_.size());
    }

  private:
    // Processes all references from here on, because most recent lines may have been removed that
    // FrontEnd relied on.
    void run_all_from(std::size_t record) {
        for (; record < part_.size(); ++record)
            if (part_.is_reference(record)) refer(record);
    }

    // Grants the wishes of earlier records that the caches need not see. Returns false if a most
    // recent line was removed, after processing everything.
    bool grant_before(std::size_t record) {
        while (!wishes_.empty() && wishes_[0].record < record) {
            const std::size_t by = wishes_[0].record;
            hierarchy_.grant(core_, part_.reference(by), next_wishes(by), part_.counts(by));
            if (!hierarchy_.has_lost_first()) continue;
            run_all_from(by + 1);
            return false;
        }
        return true;
    }

    void refer(std::size_t record) {
        const Reference reference = part_.reference(record);
        if (reference.operation != LineOperation::kNone)
            return hierarchy_.operate(core_, reference, part_.counts(record));
        const std::span<const Wish> wishes = next_wishes(record);
        const auto counts = [&] { return part_.counts(record); };
        if (!hierarchy_.refer_quickly(core_, reference, wishes, counts))
            hierarchy_.refer(core_, reference, wishes, counts());
    }

    // Removes the wishes of the record and returns them.
    std::span<const Wish> next_wishes(std::size_t record) {
        std::size_t many = 0;
        while (many < wishes_.size() && wishes_[many].record == record) ++many;
        const auto found = wishes_.first(many);
        wishes_ = wishes_.subspan(many);
        return found;
    }

    Hierarchy& hierarchy_;
    const std::uint32_t core_;
    const Part& part_;
    std::span<const std::uint64_t> needed_;
    std::span<const Wish> wishes_;  // remaining wishes
};

// Processes the demands of first caches that FirstCaches has simulated.
template <typename Part>
void supply_demands(Hierarchy& hierarchy, std::uint32_t core, const Steps& steps,
                    const Part& part) {
    std::span<const Demand> left = steps.demands;
    std::uint32_t before = UINT32_MAX;
    while (!left.empty()) {
        std::size_t many = 1;
        while (!left[many - 1].is_last) ++many;
        const std::uint32_t record = left[0].record;
        hierarchy.supply(core, part.reference(record), left.first(many), record == before,
                         part.counts(record));
        before = record;
        left = left.subspan(many);
    }
}

// Applies the steps of a part of the core to the caches.
template <typename Part>
void run_part(Hierarchy& hierarchy, std::uint32_t core, const Steps& steps, const Part& part) {
    for (const Steps::Count& count : steps.counts) ++part.counts(count.record)[count.column];
    if (steps.has_demands)
        supply_demands(hierarchy, core, steps, part);
    else
        PartRun<Part>(hierarchy, core, steps, part).run();
}

}  // namespace machine
