// All captures, in their order: see capture.h. A new capture needs a header, a source file, and its
// name here.
#pragma once

#include "framework/driver/native/translate/blocks.h"
#include "framework/driver/native/translate/capture.h"
#include "framework/driver/native/translate/contexts.h"
#include "framework/driver/native/translate/control_flow.h"
#include "framework/driver/native/translate/fetches.h"
#include "framework/driver/native/translate/memory_references.h"
#include "framework/driver/native/translate/object_references.h"
#include "framework/driver/native/translate/value_records.h"

#include <optional>
#include <tuple>
#include <utility>

namespace assay::native {

// The planner and the emitter go over this list, and know no capture by its name.

template <typename... C>
class CaptureList {
  public:
    // --- For any unit.

    static bool end_block(const trace::Spec& spec, const Instruction& instruction) {
        return ((C::wanted(spec) && C::ends_block(instruction)) || ...);
    }
    static ValueRegisters read(const TraceTables& tables, const Form& form) {
        ValueRegisters all;
        const auto add = [&all](const ValueRegisters& more) {
            all.before |= more.before;
            all.behind |= more.behind;
        };
        ((C::wanted(tables.spec()) ? add(C::reads(tables, form)) : void()), ...);
        return all;
    }
    static bool need_live_on_ways(const trace::Spec& spec) {
        return ((C::kNeedsLiveOnWays && C::wanted(spec)) || ...);
    }
    static bool one_place_will_do(const trace::Spec& spec) {
        return (C::wanted(spec) || ...) && ((C::kOnePlaceWillDo || !C::wanted(spec)) && ...);
    }

    // --- For one unit.

    explicit CaptureList(UnitWriter& writer) {
        if (!writer.plan.collects()) return;
        const auto make = [&writer]<typename Each>(std::optional<Each>& capture) {
            if (Each::wanted(writer.spec)) capture.emplace(writer);
        };
        std::apply([&](auto&... each) { (make(each), ...); }, captures_);
    }

    void place_items(UnitPlan& plan) {
        Placer placer(plan);
        for (PlannedBlock& block : plan.blocks) {
            placer.begin(block);
            for (unsigned instr = block.first; instr < block.end(); ++instr)
                forwards([&]<typename Each>(Each& capture) {
                    placer.set_capture(kNumber<Each>);
                    capture.place(placer, block, instr);
                });
            placer.end(block);
        }
    }
    void emit(const Item& item) {
        forwards([&]<typename Each>(Each& capture) {
            if (item.capture == kNumber<Each>) capture.emit(item);
        });
    }
    void at_entry(const PlannedBlock& block, Block& record) {
        forwards([&](auto& capture) { capture.at_entry(block, record); });
    }
    void before(const Instruction& instruction, unsigned position) {
        forwards([&](auto& capture) { capture.before(instruction, position); });
    }
    void behind(const Instruction& instruction, unsigned position) {
        backwards([&](auto& capture) { capture.behind(instruction, position); });
    }
    void before_branch(const Instruction& branch, unsigned position) {
        forwards([&](auto& capture) { capture.before_branch(branch, position); });
    }
    bool follow(const Instruction& branch, unsigned position) {
        bool any = false;
        forwards([&](auto& capture) { any = any || capture.follows(branch, position); });
        return any;
    }
    void leave(const Way& way) {
        backwards([&](auto& capture) { capture.leave(way); });
    }
    void leave_indirectly(const Instruction& branch, unsigned position) {
        backwards([&](auto& capture) { capture.leave_indirectly(branch, position); });
    }

    // The number of a capture in the list: Item::capture.
    template <typename Each>
    static constexpr std::uint8_t kNumber = [] {
        unsigned number = 0;
        bool found = false;
        ((found = found || std::is_same_v<C, Each>, number += found ? 0 : 1), ...);
        return static_cast<std::uint8_t>(number);
    }();

  private:
    template <typename Do>
    void forwards(const Do& act) {
        std::apply([&](auto&... each) { ((each ? act(*each) : void()), ...); }, captures_);
    }
    template <typename Do>
    void backwards(const Do& act) {
        backwards(act, std::index_sequence_for<C...>());
    }
    template <typename Do, std::size_t... I>
    void backwards(const Do& act, std::index_sequence<I...> /*numbers*/) {
        const auto call = [&act](auto& each) {
            if (each) act(*each);
        };
        (call(std::get<sizeof...(C) - 1 - I>(captures_)), ...);
    }

    std::tuple<std::optional<C>...> captures_;
};

// The order ensures the following:
// - The fetch of an instruction is recorded before its references.
// - The references of a call belong to the caller's context.
// - On a way out, values are read before other captures borrow registers, and all captures work in
//   the block's context.
// - The increment of a block's counter gets a place after the items of all others.
using Captures = CaptureList<Contexts, BlockRecords, Fetches, MemoryReferences, ObjectReferences,
                             Specials, Predictions, Branches, Values, Calls, BlockIncrements>;

}  // namespace assay::native
