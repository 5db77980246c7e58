#include "plugins/struct_layout/structs.h"

#include <algorithm>
#include <bit>

namespace struct_layout {

std::string Unit::name() const {
    std::string all;
    for (const Member& member : members) all += (all.empty() ? "" : "+") + member.name;
    return all;
}

std::string Struct::obstacle() const {
    if (units.size() < 2) return "it has a single member";
    for (const Unit& unit : units)
        if (unit.offset % unit.alignment != 0) return "it is packed";
    if (units.back().last) return "it ends in an array without a bound";
    return "";
}

std::uint64_t Struct::together(std::uint32_t unit, std::uint32_t other) const {
    if (bits[unit] == kNone || bits[other] == kNone) return 0;
    const std::uint64_t both = std::uint64_t{1} << bits[unit] | std::uint64_t{1} << bits[other];
    std::uint64_t sum = 0;
    for (const auto& [used, count] : visits)
        if ((used & both) == both) sum += count;
    return sum;
}

std::uint32_t Struct::unit_of(std::uint64_t offset, std::uint64_t size) const {
    const std::uint32_t unit = unit_at[offset];
    if (unit == kNone || offset + size > units[unit].offset + units[unit].bytes) return kNone;
    return unit;
}

Structs::Structs(const assay::Trace& trace) {
    const auto sites = trace.sites();
    by_site_.resize(sites.size());
    for (std::uint32_t site = 0; site < sites.size(); ++site) {
        std::uint64_t offset = 0;
        std::uint32_t number = trace.type_of_site(site, offset);
        const trace_data_type_t* row = trace.data_type(number);
        while (row != nullptr && row->outer != 0) row = trace.data_type(number = row->outer);
        if (row == nullptr || row->kind != TRACE_TYPE_STRUCT || row->bytes == 0) continue;
        by_site_[site] = {add(trace, number), offset};
    }
}

std::uint32_t Structs::add(const assay::Trace& trace, std::uint32_t number) {
    const auto [known, is_new] = known_.try_emplace(number, static_cast<std::uint32_t>(all.size()));
    if (!is_new) return known->second;
    const trace_data_type_t* row = trace.data_type(number);
    Struct found;
    found.number = number;
    found.name = row->name;
    found.bytes = row->bytes;
    found.alignment = row->alignment;
    std::uint64_t end = 0;
    for (std::uint32_t at = row->members; at != 0; at = row->next) {
        row = trace.data_type(at);
        if (row->bit_fields > 1) continue;
        const bool base = found.units.empty() && row->offset == 0 &&
                          (row->name == std::string(row->type) ||
                           std::string_view(row->name).starts_with("_vptr"));
        if (found.units.empty() || row->offset >= end) {
            found.units.emplace_back();
            found.units.back().offset = row->offset;
            found.units.back().first = base;
            found.units.back().last = row->bytes == 0;
        }
        Unit& unit = found.units.back();
        unit.members.push_back({row->name, row->type, row->bits});
        end = std::max(end, row->offset + row->bytes);
        unit.bytes = end - unit.offset;
        // Bit-fields do not cross the borders of what is as large as they are together.
        unit.alignment = std::max(
            unit.alignment,
            row->bits == 0 ? row->alignment : std::min(std::bit_ceil(unit.bytes), row->alignment));
    }
    found.unit_at.assign(found.bytes, kNone);
    for (std::uint32_t i = 0; i < found.units.size(); ++i)
        for (std::uint64_t byte = 0; byte < found.units[i].bytes; ++byte)
            if (found.units[i].offset + byte < found.bytes)
                found.unit_at[found.units[i].offset + byte] = i;
    all.push_back(std::move(found));
    return known->second;
}

void Instances::find_arrays(const assay::Trace& trace) {
    std::vector<std::uint64_t> sorted(starts_.begin(), starts_.end());
    starts_.clear();
    std::sort(sorted.begin(), sorted.end());
    std::uint64_t last_block = 0;
    for (const std::uint64_t start : sorted) {
        std::uint64_t offset = 0;
        const trace_data_object_t* const object = trace.data_object_at(start, offset);
        const bool in_block = object != nullptr && (object->kind == TRACE_DATA_STATIC ||
                                                    object->kind == TRACE_DATA_THREAD_LOCAL ||
                                                    object->kind == TRACE_DATA_HEAP);
        const std::uint64_t block = start - offset;
        if (arrays_.empty() || !in_block || !arrays_.back().in_block || block != last_block) {
            arrays_.push_back({start, 1, in_block, true});
        } else {
            InstanceArray& array = arrays_.back();
            const std::uint64_t distance = start - array.start;
            if (distance % bytes_ != 0) array.regular = false;
            array.count = std::max(array.count, (distance + bytes_ - 1) / bytes_ + 1);
        }
        last_block = block;
    }
}

std::uint32_t Instances::find(std::uint64_t address, std::uint32_t& hint) const {
    if (hint < arrays_.size() && contains(hint, address)) return hint;
    const auto behind =
        std::upper_bound(arrays_.begin(), arrays_.end(), address,
                         [](std::uint64_t at, const InstanceArray& a) { return at < a.start; });
    if (behind == arrays_.begin()) return kNone;
    const auto array = static_cast<std::uint32_t>(behind - arrays_.begin() - 1);
    return contains(array, address) ? hint = array : kNone;
}

void Visits::refer(std::uint64_t instance, std::uint64_t units) {
    std::size_t at = 0;
    while (at + 1 < recent_.size() && recent_[at].instance != instance) ++at;
    Visit visit = recent_[at];
    if (visit.instance != instance) {
        leave(visit);
        visit = {instance, 0};
    }
    visit.units |= units;
    std::move_backward(recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(at),
                       recent_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    recent_[0] = visit;
}

void Visits::end() {
    for (Visit& visit : recent_) {
        leave(visit);
        visit = {};
    }
}

}  // namespace struct_layout
