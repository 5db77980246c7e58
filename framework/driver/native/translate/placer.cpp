#include "framework/driver/native/translate/placer.h"

#include <algorithm>

namespace assay::native {

Placer::Placer(UnitPlan& plan) : plan_(plan) {
    plan_.items.clear();
    plan_.references.clear();
}

void Placer::begin(PlannedBlock& block) {
    block.first_item = static_cast<std::uint32_t>(plan_.items.size());
    earliest_ = block.first;
}

void Placer::end(PlannedBlock& block) const {
    block.item_count = static_cast<std::uint32_t>(plan_.items.size()) - block.first_item;
}

void Placer::add(Item item) {
    item.capture = capture_;
    plan_.items.push_back(item);
    earliest_ = item.position;
}

void Placer::place(Item item, GprMask address) {
    item.position = item.instr;
    item.flags_live = plan_.flags_live[item.instr] != 0;
    for (unsigned at = item.instr; item.flags_live; --at) {
        if (plan_.flags_live[at] == 0) {
            item.position = static_cast<std::uint16_t>(at);
            item.flags_live = false;
        }
        if (at == earliest_ || (plan_.instructions[at - 1U].form->writes & address) != 0) break;
    }
    add(item);
}

void Placer::place_before(unsigned instr) {
    Item item;
    item.instr = item.position = static_cast<std::uint16_t>(instr);
    add(item);
}

void Placer::place_behind(unsigned instr) {
    Item item;
    item.instr = static_cast<std::uint16_t>(instr);
    item.position = static_cast<std::uint16_t>(instr + 1);
    add(item);
}

void Placer::place_anywhere(const PlannedBlock& block) {
    Item item;
    item.capture = capture_;
    item.position = block.first;
    item.flags_live = true;
    for (unsigned i = block.first; i < block.end() && item.flags_live; ++i) {
        if (plan_.flags_live[i] != 0) continue;
        item.position = static_cast<std::uint16_t>(i);
        item.flags_live = false;
    }
    const auto before =
        std::find_if(plan_.items.begin() + block.first_item, plan_.items.end(),
                     [&item](const Item& other) { return other.position > item.position; });
    plan_.items.insert(before, item);
}

void Placer::place_at_entry(const PlannedBlock& block) {
    Item item;
    item.capture = capture_;
    item.position = block.first;
    item.flags_live = plan_.flags_live[block.first] != 0;
    plan_.items.insert(plan_.items.begin() + block.first_item, item);
}

}  // namespace assay::native
