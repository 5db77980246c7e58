#include "plugins/struct_layout/layouts.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>
#include <utility>

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
        // Aligned to the rounded-up size of the unit, so that no bit-field crosses a border.
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

namespace {

using Units = std::vector<std::uint32_t>;

std::uint64_t rounded_up(std::uint64_t number, std::uint64_t to) {
    return (number + to - 1) / to * to;
}

// Orders units: first those that must be first, then used units, then unused ones in their old
// order. Each line starts with the most used unit that is left, followed by the units that are used
// together with it most often.
Units by_use(const Struct& of, Units units, std::uint64_t line) {
    Units order;
    std::uint64_t in_line = 0;
    std::size_t line_begin = 0;
    const auto rank = [&](std::uint32_t unit) {
        std::uint64_t together = 0;
        for (std::size_t i = line_begin; i < order.size(); ++i)
            together += of.together(order[i], unit);
        const Unit& at = of.units[unit];
        return std::tuple(at.first, together, at.visits, at.references, at.alignment,
                          ~std::uint64_t{unit});
    };
    while (!units.empty()) {
        const auto best =
            std::max_element(units.begin(), units.end(),
                             [&](std::uint32_t a, std::uint32_t b) { return rank(a) < rank(b); });
        in_line += of.units[*best].bytes;
        order.push_back(*best);
        units.erase(best);
        if (in_line < line) continue;
        in_line %= line;
        line_begin = order.size() - (in_line != 0 ? 1 : 0);
    }
    return order;
}

// Lays out units one after the other. Fills holes from alignment with the next unit that fits.
Layout::Part pack(const Struct& of, Units units, std::vector<std::uint64_t>& offsets) {
    Layout::Part part;
    std::uint64_t end = 0;
    while (!units.empty()) {
        const std::uint64_t wanted = rounded_up(end, of.units[units.front()].alignment);
        auto next = std::find_if(units.begin(), units.end(), [&](std::uint32_t unit) {
            const Unit& at = of.units[unit];
            return end % at.alignment == 0 && end + at.bytes <= wanted;
        });
        if (next == units.end()) next = units.begin();
        const Unit& unit = of.units[*next];
        offsets[*next] = rounded_up(end, unit.alignment);
        end = offsets[*next] + unit.bytes;
        part.alignment = std::max(part.alignment, unit.alignment);
        part.units.push_back(*next);
        units.erase(next);
    }
    part.bytes = rounded_up(end, part.alignment);
    return part;
}

void add(std::vector<Layout>& to, Layout layout, const Struct& of) {
    layout.part_of.resize(of.units.size());
    for (std::uint32_t part = 0; part < layout.parts.size(); ++part)
        for (const std::uint32_t unit : layout.parts[part].units) layout.part_of[unit] = part;
    to.push_back(std::move(layout));
}

// Rounds the size of the first part up to a power of two, so that no element lies in two lines.
void add_aligned(std::vector<Layout>& to, Layout layout, const Struct& of, std::uint64_t line) {
    Layout::Part& first = layout.parts[0];
    if (first.bytes >= line || line % first.bytes == 0) return;
    first.bytes = first.alignment = std::bit_ceil(first.bytes);
    first.aligned = true;
    layout.name += ", aligned";
    add(to, std::move(layout), of);
}

void add_orders(std::vector<Layout>& to, const Struct& of, const Units& all, std::uint64_t line) {
    Layout layout;
    layout.name = "reordered";
    layout.offsets.resize(of.units.size());
    Layout::Part part = pack(of, by_use(of, all, line), layout.offsets);
    part.bytes = rounded_up(part.bytes, part.alignment = std::max(part.alignment, of.alignment));
    layout.parts = {part};
    add(to, layout, of);
    if (part.bytes < of.bytes) {
        Layout padded = layout;
        padded.name = "reordered, as large as now";
        padded.parts[0].bytes = of.bytes;
        padded.parts[0].padded = true;
        add(to, std::move(padded), of);
    }
    add_aligned(to, std::move(layout), of, line);
}

// The numbers of visits that a member needs to be in the first of two structs. Chooses the largest
// gaps, as ratios, between the visits of members.
std::vector<std::uint64_t> places_to_split(const Struct& of) {
    constexpr std::size_t kMostSplits = 4;
    std::set<std::uint64_t> visits{0};
    for (const Unit& unit : of.units) visits.insert(unit.visits);
    std::vector<std::pair<double, std::uint64_t>> gaps;
    for (auto more = std::next(visits.begin()); more != visits.end(); ++more) {
        const auto less = std::max<std::uint64_t>(*std::prev(more), 1);
        gaps.emplace_back(static_cast<double>(*more) / static_cast<double>(less), *more);
    }
    std::sort(gaps.rbegin(), gaps.rend());
    if (gaps.size() > kMostSplits) gaps.resize(kMostSplits);
    std::vector<std::uint64_t> places;
    places.reserve(gaps.size());
    for (const auto& [ratio, least] : gaps) places.push_back(least);
    std::sort(places.rbegin(), places.rend());
    return places;
}

void add_splits(std::vector<Layout>& to, const Struct& of, const Units& all, std::uint64_t line) {
    for (const std::uint64_t least : places_to_split(of)) {
        Units hot, cold;
        for (const std::uint32_t unit : all) {
            const Unit& at = of.units[unit];
            (at.first || at.visits >= least ? hot : cold).push_back(unit);
        }
        if (hot.empty() || cold.empty()) continue;
        Layout layout;
        layout.name = "split, " + std::to_string(hot.size()) + " of " + std::to_string(all.size()) +
                      " in the first";
        layout.offsets.resize(of.units.size());
        layout.parts.push_back(pack(of, by_use(of, hot, line), layout.offsets));
        layout.parts.push_back(pack(of, by_use(of, cold, line), layout.offsets));
        add(to, layout, of);
        add_aligned(to, std::move(layout), of, line);
    }
}

// Puts the name into types such as "node *" and "int[4]". Writes base classes, pointers to virtual
// functions and unnamed members as C comments.
std::string declared(const Unit::Member& member) {
    if (member.type.starts_with('(') || member.type == member.name)
        return "/* " + member.type + " " + member.name + " */";
    const std::size_t bracket = member.type.find('[');
    std::string type = member.type.substr(0, bracket);
    if (!type.ends_with('*')) type += ' ';
    return type + member.name + (bracket == std::string::npos ? "" : member.type.substr(bracket)) +
           (member.bits != 0 ? " : " + std::to_string(member.bits) : "") + ";";
}

}  // namespace

std::vector<Layout> layouts(const Struct& of, std::uint64_t line) {
    Units all;
    for (std::uint32_t unit = 0; unit < of.units.size(); ++unit) all.push_back(unit);
    std::vector<Layout> found;
    add_orders(found, of, all, line);
    add_splits(found, of, all, line);
    return found;
}

std::string text(const Layout& layout, const Struct& of) {
    std::string out;
    for (const Layout::Part& part : layout.parts) {
        const bool second = &part != &layout.parts.front();
        out += std::string("    struct ") +
               (part.aligned ? "__attribute__((aligned(" + std::to_string(part.alignment) + "))) "
                             : "") +
               of.name + (second ? "_rest" : "") + " {\n";
        for (const std::uint32_t index : part.units) {
            const Unit& unit = of.units[index];
            for (const Unit::Member& member : unit.members) {
                std::string line = "        " + declared(member);
                line.resize(std::max<std::size_t>(line.size() + 1, 44), ' ');
                out += line + "// " + std::to_string(layout.offsets[index]) +
                       (unit.references == 0 ? ", never used" : "") + "\n";
            }
        }
        if (part.padded) {
            const std::uint32_t last = part.units.back();
            const std::uint64_t end = layout.offsets[last] + of.units[last].bytes;
            out += "        char padding[" + std::to_string(part.bytes - end) + "];\n";
        }
        out += "    };  // " + std::to_string(part.bytes) + " bytes, now " +
               std::to_string(of.bytes) + "\n";
    }
    return out;
}

}  // namespace struct_layout
