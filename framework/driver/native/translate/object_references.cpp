#include "framework/driver/native/translate/object_references.h"

#include "framework/driver/native/translate/memory_references.h"
#include "framework/trace/object_sites.h"

#include <algorithm>
#include <cstdlib>

namespace assay::native {
namespace {

// References that are further apart often belong to different objects.
constexpr std::int64_t kMostDistance = 1024;

bool has_same_registers(const MemoryReference& a, const MemoryReference& b) {
    if (is_constant(a) || is_constant(b)) return is_constant(a) && is_constant(b);
    return !a.address32 && !b.address32 && a.segment == b.segment && a.base == b.base &&
           a.index == b.index && a.scale == b.scale;
}

}  // namespace

void ObjectReferences::place(Placer& placer, const PlannedBlock& block, unsigned instr) {
    if (instr == block.first) first_open_ = groups_.size();
    const Instruction& instruction = plan_.instructions[instr];
    const Form& form = *instruction.form;
    if (!Specials::takes(spec_, form))
        for (unsigned r = 0; r < form.reference_count; ++r)
            place_reference(placer, instr, form.references[r]);
    const auto change = instruction.stack_change();
    const auto moved = static_cast<GprMask>(change ? form.writes & ~bit(RSP) : form.writes);
    for (std::size_t i = first_open_; i < groups_.size(); ++i) {
        Group& group = groups_[i];
        if (group.form.base == RSP) group.stack_change += change.value_or(0);
        const bool known = is_constant(group.form) || !(moved & address_registers(group.form));
        group.open = group.open && known && !form.sets_base;
    }
    if (form.sets_base) placer.stay_behind(instr);
}

void ObjectReferences::place_reference(Placer& placer, unsigned instr,
                                       const MemoryReference& form) {
    const Instruction& instruction = plan_.instructions[instr];
    Member member{static_cast<std::uint16_t>(instr), form.kind,
                  (form.encoded ? instruction.displacement() : 0) + form.bias};
    if (form.base == kRip) member.offset += static_cast<std::int64_t>(instruction.next_pc());
    for (std::size_t i = first_open_; i < groups_.size(); ++i)
        if (join(groups_[i], member, form)) return;
    Item item;
    item.instr = static_cast<std::uint16_t>(instr);
    item.first_reference = static_cast<std::uint32_t>(groups_.size());
    groups_.push_back({form, {member}});
    placer.place(item, is_constant(form) ? GprMask{0} : address_registers(form));
}

bool ObjectReferences::join(Group& group, const Member& member, const MemoryReference& form) {
    if (!group.open || group.members.size() == trace::kMostOfObjectGroup ||
        !has_same_registers(group.form, form))
        return false;
    Member joined = member;
    if (form.base == RSP) joined.offset += group.stack_change;
    const bool near =
        std::all_of(group.members.begin(), group.members.end(), [&joined](const Member& other) {
            return std::abs(joined.offset - other.offset) <= kMostDistance;
        });
    if (near) group.members.push_back(joined);
    return near;
}

void ObjectReferences::emit(const Item& item) {
    const Group& group = groups_[item.first_reference];
    const Member& first = group.members.front();
    const std::uint32_t site = writer_.next_site();
    for (const Member& member : group.members) {
        const auto distance = static_cast<std::int16_t>(member.offset - first.offset);
        const bool is_first = &member == &first;
        writer_.new_site(member.instr, static_cast<std::uint16_t>(distance), TRACE_SITE_OBJECT,
                         trace::object_operand(member.kind, is_first ? group.members.size() : 0));
    }
    const std::uint32_t run = run_of(group, site);
    // An earlier check may have borrowed a register of this address.
    if (!is_constant(group.form)) scratch_.give_back(address_registers(group.form));
    if (run == driver::ObjectRuns::kNone)
        record(item, group, site);
    else
        check(item, group, site, run);
}

std::uint32_t ObjectReferences::run_of(const Group& group, std::uint32_t site) {
    driver::ObjectRuns& runs = writer_.tables.object_runs();
    const std::span<const std::uint32_t> missed = writer_.often_missed;
    if (!runs.active() || group.form.segment != Segment::kFlat || group.form.base == RSP ||
        group.form.address32 || std::find(missed.begin(), missed.end(), site) != missed.end())
        return driver::ObjectRuns::kNone;
    return runs.run_of(site);
}

void ObjectReferences::record(const Item& item, const Group& group, std::uint32_t site) {
    const MemoryReference& form = group.form;
    const std::int64_t offset = group.members.front().offset;
    const bool constant = is_constant(form);
    GprMask exclude = constant ? GprMask{0} : address_registers(form);
    const auto cursor = static_cast<std::uint8_t>(scratch_.cursor(exclude, item.position));
    if (constant)
        return UnitWriter::append_constant(hot_, cursor, static_cast<std::uint64_t>(offset), site);
    const unsigned a = scratch_.acquire(exclude, item.position);
    hot_.load_offset(a, form, offset);
    if (form.segment != Segment::kFlat) {
        exclude |= bit(a);
        const unsigned b = scratch_.acquire(exclude, item.position);
        hot_.load_context(b, segment_base_offset(form.segment));
        hot_.lea(a, Address{static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), 1, 0});
    }
    UnitWriter::append(hot_, cursor, a, site);
    hot_.lea(cursor, Address{cursor, kNoGpr, 1, kRecordBytes});
}

// A constant address keeps its object during a run. Others are compared with the run's memory.
void ObjectReferences::check(const Item& item, const Group& group, std::uint32_t site,
                             std::uint32_t run) {
    const std::size_t own = kRunsInContext + run * sizeof(trace::ObjectRun);
    const bool constant = is_constant(group.form);
    const std::int64_t offset = group.members.front().offset;
    GprMask exclude = constant ? GprMask{0} : address_registers(group.form);
    if (item.flags_live) exclude |= bit(RAX);
    const unsigned a = scratch_.acquire(exclude, item.position);
    if (!constant) hot_.load_offset(a, group.form, offset);
    const KeptFlags flags(hot_, item.flags_live, scratch_.is_free(RAX));
    if (constant) {
        hot_.with_thread(kGroup1Byte, kCompare, own + offsetof(trace::ObjectRun, bytes), true, 1);
        hot_.u8(0);
    } else {
        hot_.with_thread(kSubtractMemory, a, own + offsetof(trace::ObjectRun, start));
        hot_.with_thread(kCompareMemory, a, own + offsetof(trace::ObjectRun, bytes));
    }
    const std::uint64_t leaves = hot_.jump_if(constant ? kEqual : kAboveEqual, hot_.address);
    hot_.with_thread(kIncrement, 0, own + offsetof(trace::ObjectRun, left_out), false);
    const std::uint64_t full = hot_.jump_if(kSign, hot_.address);
    if (!constant) {
        hot_.load_context(a, offsetof(Context, countdown));
        hot_.with_thread(kStore, a, own + offsetof(trace::ObjectRun, clock));
    }
    const std::uint64_t back = hot_.address;
    flags.restore(hot_);

    hot_.patch(full, cold_.address);
    cold_.with_thread(kIncrement, 1, own + offsetof(trace::ObjectRun, left_out),
                      false);  // decrement
    hot_.patch(leaves, cold_.address);
    if (constant)
        cold_.load_address(a, static_cast<std::uint64_t>(offset));
    else
        cold_.with_thread(kAddMemory, a, own + offsetof(trace::ObjectRun, start));
    end_run(group, site, run, a);
    cold_.jump(back);
}

void ObjectReferences::end_run(const Group& group, std::uint32_t site, std::uint32_t run,
                               unsigned address) {
    const auto [lowest, highest] =
        std::minmax_element(group.members.begin(), group.members.end(),
                            [](const Member& a, const Member& b) { return a.offset < b.offset; });
    const std::uint32_t extent =
        driver::object_extent(group.members.front().offset - lowest->offset,
                              highest->offset - lowest->offset, is_constant(group.form));
    const unsigned cursor = scratch_.cached_cursor();
    if (cursor != kNoGpr) cold_.store_context(kCursorOffset, cursor);
    writer_.call_stub(cache_.object_stub(), [&] {
        cold_.push_constant(extent);
        cold_.push_constant(run);
        cold_.push_constant(site);
        cold_.push(address);
    });
    if (cursor != kNoGpr) cold_.load_context(cursor, kCursorOffset);
}

}  // namespace assay::native
