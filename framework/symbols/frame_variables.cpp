#include "framework/symbols/frame_variables.h"

#include "framework/symbols/image_cache.h"
#include "framework/symbols/static_variables.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace assay::symbols {

namespace {

constexpr int kMostDepth = 256;
// Per function.
constexpr std::uint64_t kMostEntries = std::uint64_t{1} << 20;
// Limit for entries of functions, and for answers. Beyond it, all are dropped.
constexpr std::size_t kMostKept = std::size_t{1} << 19;
// Larger offsets are errors in the file.
constexpr std::int64_t kLargestFrame = std::int64_t{1} << 40;

constexpr unsigned kRbpNumber = 6, kRspNumber = 7;  // of DWARF for x86-64

std::int64_t sum(std::int64_t a, std::uint64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + b);
}

// Limit for the entries and ranges that are read from the unit of `die`. Links in broken files can
// form circles.
std::uint64_t most_steps(Dwarf_Die die) {
    return 2 * unit_bytes(die);
}

bool has(Dwarf_Die die, unsigned attribute) {
    return dwarf_hasattr(&die, attribute) != 0;
}

}  // namespace

std::unique_ptr<FrameVariables> FrameVariables::open(const std::string& path,
                                                     const std::string& debug_root,
                                                     const std::string& cache_folder) {
    auto debug = std::make_unique<DebugInfo>(path, debug_root, ImageCache(cache_folder), true);
    if (debug->dwarf() == nullptr) return nullptr;
    return std::unique_ptr<FrameVariables>(new FrameVariables(std::move(debug)));
}

// Reads .eh_frame of the object, which it has even if its debug information is in another file.
FrameVariables::FrameVariables(std::unique_ptr<DebugInfo> debug)
    : debug_(std::move(debug)),
      code_start_(debug_->object_file()->code_start()),
      cfi_(dwarf_getcfi_elf(debug_->object_file()->elf())),
      unit_map_(debug_->dwarf(), code_start_) {}

std::optional<FrameVariable> FrameVariables::find(Address pc, std::int64_t offset_from_cfa) {
    const std::span variables = at(pc);
    const auto found =
        std::find_if(variables.rbegin(), variables.rend(), [&](const FrameVariable& variable) {
            return variable.start <= offset_from_cfa && offset_from_cfa < variable.end;
        });
    if (found == variables.rend()) return std::nullopt;
    return *found;
}

std::span<const FrameVariable> FrameVariables::at(Address pc) {
    if (answered_ > kMostKept) {
        answers_.clear();
        answered_ = 0;
    }
    const auto [known, is_new] = answers_.try_emplace(pc);
    if (is_new) {
        if (const Function* function = function_of(pc)) known->second = resolve(*function, pc);
        answered_ += known->second.size() + 1;
    }
    return known->second;
}

// --- Functions.

const FrameVariables::Function* FrameVariables::function_of(Address pc) {
    const std::optional<Dwarf_Off> offset = unit_map_.find(pc);
    if (!offset) return nullptr;
    Unit& unit = unit_at(*offset);
    std::uint32_t index = unit.map.find(pc);
    if (index == IntervalMap::kNone && !unit.everywhere) {
        unit.everywhere = true;
        list_functions(unit);
        index = unit.map.find(pc);
    }
    if (index == IntervalMap::kNone) return nullptr;
    const Dwarf_Die die = unit.functions[index];
    if (entries_ > kMostKept) {
        functions_.clear();
        entries_ = 0;
    }
    const auto [known, is_new] = functions_.try_emplace(die.addr);
    if (is_new) {
        known->second = read(die);
        entries_ += known->second.entries.size() + 1;
    }
    return &known->second;
}

FrameVariables::Unit& FrameVariables::unit_at(Dwarf_Off offset) {
    const auto [known, is_new] = units_.try_emplace(offset);
    Unit& unit = known->second;
    Dwarf_Die die;
    if (is_new && dwarf_offdie(debug_->dwarf(), offset, &die) != nullptr) {
        unit.die = split_unit(die);
        list_functions(unit);
    }
    return unit;
}

void FrameVariables::list_functions(Unit& unit) {
    unit.map = {};
    unit.functions.clear();
    Children children;
    if (unit.die.addr != nullptr) {
        std::uint64_t left = most_steps(unit.die);
        list_functions_of(unit, children, unit.die, 0, left);
    }
    unit.map.seal();
}

void FrameVariables::list_functions_of(Unit& unit, Children& children, Dwarf_Die parent, int depth,
                                       std::uint64_t& left) {
    if (depth > kMostDepth) return;
    for (Dwarf_Die die : children.of(parent)) {
        if (left == 0) return;
        --left;
        switch (dwarf_tag(&die)) {
            case DW_TAG_subprogram:
                for (const auto& [low, high] : ranges_of(die, left))
                    unit.map.add(low, high, static_cast<std::uint32_t>(unit.functions.size()));
                unit.functions.push_back(die);
                break;
            case DW_TAG_namespace:
            case DW_TAG_module:
                list_functions_of(unit, children, die, depth + 1, left);
                continue;
            default:
                break;
        }
        if (unit.everywhere) list_functions_of(unit, children, die, depth + 1, left);
    }
}

FrameVariables::Ranges FrameVariables::ranges_of(Dwarf_Die die, std::uint64_t& left) const {
    Ranges ranges;
    Dwarf_Addr base = 0, low = 0, high = 0;
    for (std::ptrdiff_t at = 0; left > 0 && (at = dwarf_ranges(&die, at, &base, &low, &high)) > 0;
         --left) {
        if (low >= code_start_ && low < high) ranges.emplace_back(low, high);
    }
    return ranges;
}

// --- Variables of a function.

FrameVariables::Function FrameVariables::read(Dwarf_Die die) {
    Function function;
    Reading reading{function, {}, std::min(kMostEntries, most_steps(die))};
    const Ranges ranges = ranges_of(die, reading.left);
    Dwarf_Attribute attribute;
    Dwarf_Addr base = 0, low = 0, high = 0;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_attr_integrate(&die, DW_AT_frame_base, &attribute) != nullptr) {
        for (std::ptrdiff_t at = 0;
             reading.left > 0 &&
             (at = dwarf_getlocations(&attribute, at, &base, &low, &high, &operations, &count)) > 0;
             --reading.left) {
            const std::vector<Place> found = places({operations, count});
            if (found.size() == 1) function.bases.push_back({low, high, found[0]});
            if (count != 1) continue;
            // The frame base is the value of the register.
            if (operations->atom == DW_OP_reg0 + kRbpNumber)
                function.bases.push_back({low, high, {Base::kRbp}});
            if (operations->atom == DW_OP_reg0 + kRspNumber)
                function.bases.push_back({low, high, {Base::kRsp}});
        }
    }
    const char* name = dwarf_diename(&die);
    read_children(reading, die, ranges, names_.keep(name != nullptr ? name : kUnknown), 0);
    return function;
}

void FrameVariables::read_children(Reading& reading, Dwarf_Die parent, const Ranges& scope,
                                   std::string_view owner, int depth) {
    if (depth > kMostDepth) return;
    for (Dwarf_Die die : reading.children.of(parent)) {
        if (reading.left == 0) return;
        --reading.left;
        switch (dwarf_tag(&die)) {
            case DW_TAG_variable:
            case DW_TAG_formal_parameter:
                read_variable(reading, die, scope, owner);
                break;
            case DW_TAG_inlined_subroutine: {
                const char* name = dwarf_diename(&die);
                read_children(reading, die, ranges_of(die, reading.left),
                              names_.keep(name != nullptr ? name : kUnknown), depth + 1);
                break;
            }
            case DW_TAG_lexical_block:
            case DW_TAG_try_block:
            case DW_TAG_catch_block:
            case DW_TAG_with_stmt:
            case DW_TAG_GNU_formal_parameter_pack:
                if (has(die, DW_AT_low_pc) || has(die, DW_AT_ranges))
                    read_children(reading, die, ranges_of(die, reading.left), owner, depth + 1);
                else
                    read_children(reading, die, scope, owner, depth + 1);
                break;
            default:
                break;
        }
    }
}

void FrameVariables::read_variable(Reading& reading, Dwarf_Die variable, const Ranges& scope,
                                   std::string_view owner) {
    Dwarf_Attribute attribute;
    if (dwarf_attr(&variable, DW_AT_location, &attribute) == nullptr) return;
    const char* name = dwarf_diename(&variable);
    if (name == nullptr || *name == '\0') return;
    std::optional<std::uint64_t> whole;
    Dwarf_Addr base = 0, low = 0, high = 0;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    for (std::ptrdiff_t at = 0;
         reading.left > 0 &&
         (at = dwarf_getlocations(&attribute, at, &base, &low, &high, &operations, &count)) > 0;
         --reading.left) {
        for (Place place : places({operations, count})) {
            if (!whole) whole = variable_size(variable);
            if (place.size == 0) place.size = *whole - std::min(*whole, place.first);
            if (place.size == 0 || place.size > kLargestFrame) continue;
            for (const auto& [from, to] : scope) {
                if (reading.left == 0) return;
                const Address start = std::max(from, low), end = std::min(to, high);
                if (start >= end) continue;
                --reading.left;
                reading.function.entries.push_back({start, end, place, names_.keep(name), owner});
            }
        }
    }
}

// The places in memory that are an offset from a register, the frame base or the CFA.
std::vector<FrameVariables::Place> FrameVariables::places(std::span<const Dwarf_Op> operations) {
    std::vector<Place> found;
    std::uint64_t first = 0;
    std::size_t i = 0;
    while (i < operations.size()) {
        std::optional<Place> place;
        const Dwarf_Op& operation = operations[i];
        const auto offset = static_cast<std::int64_t>(operation.number);
        switch (operation.atom) {
            case DW_OP_call_frame_cfa:
                place = Place{Base::kCfa, 0};
                break;
            case DW_OP_fbreg:
                place = Place{Base::kFrameBase, offset};
                break;
            case DW_OP_breg0 + kRbpNumber:
                place = Place{Base::kRbp, offset};
                break;
            case DW_OP_breg0 + kRspNumber:
                place = Place{Base::kRsp, offset};
                break;
            case DW_OP_bregx:
                if (operation.number == kRbpNumber || operation.number == kRspNumber)
                    place = Place{operation.number == kRbpNumber ? Base::kRbp : Base::kRsp,
                                  static_cast<std::int64_t>(operation.number2)};
                break;
            default:
                break;
        }
        if (operation.atom != DW_OP_piece) ++i;  // a piece without a location was optimized away
        for (; i < operations.size() && operations[i].atom == DW_OP_plus_uconst; ++i) {
            if (place) place->offset = sum(place->offset, operations[i].number);
        }
        if (i == operations.size()) {
            if (place && first == 0) found.push_back(*place);
            break;
        }
        for (; i < operations.size() && operations[i].atom != DW_OP_piece; ++i) place.reset();
        if (i == operations.size()) break;
        const std::uint64_t bytes = operations[i].number;
        if (place && bytes != 0) {
            place->first = first;
            place->size = bytes;
            found.push_back(*place);
        }
        first += bytes;
        ++i;
    }
    return found;
}

// --- Places of variables.

std::vector<FrameVariable> FrameVariables::resolve(const Function& function, Address pc) const {
    std::vector<FrameVariable> variables;
    for (const Entry& entry : function.entries) {
        if (pc < entry.low || pc >= entry.high) continue;
        const std::optional<std::int64_t> start = from_cfa(function, entry.place, pc);
        if (!start || *start > kLargestFrame || *start < -kLargestFrame) continue;
        variables.push_back({*start, sum(*start, entry.place.size), entry.name, entry.function});
    }
    return variables;
}

std::optional<std::int64_t> FrameVariables::from_cfa(const Function& function, const Place& place,
                                                     Address pc) const {
    switch (place.base) {
        case Base::kCfa:
            return place.offset;
        case Base::kRbp:
        case Base::kRsp: {
            const std::optional<std::int64_t> base = register_from_cfa(place.base, pc);
            if (!base) return std::nullopt;
            return sum(*base, static_cast<std::uint64_t>(place.offset));
        }
        case Base::kFrameBase:
            break;
    }
    for (const FrameBase& base : function.bases) {
        if (pc < base.low || pc >= base.high || base.place.base == Base::kFrameBase) continue;
        const std::optional<std::int64_t> start = from_cfa(function, base.place, pc);
        if (!start) return std::nullopt;
        return sum(*start, static_cast<std::uint64_t>(place.offset));
    }
    return std::nullopt;
}

// The value of the register, if the CFA at `pc` is computed from it.
std::optional<std::int64_t> FrameVariables::register_from_cfa(Base base, Address pc) const {
    for (Dwarf_CFI* cfi : {cfi_.get(), dwarf_getcfi(debug_->dwarf())}) {
        Dwarf_Frame* frame = nullptr;
        if (cfi == nullptr || dwarf_cfi_addrframe(cfi, pc, &frame) != 0) continue;
        const std::unique_ptr<Dwarf_Frame, void (*)(void*)> owner(frame, std::free);
        Dwarf_Op* operations = nullptr;
        std::size_t count = 0;
        if (dwarf_frame_cfa(frame, &operations, &count) != 0) continue;
        const std::vector<Place> cfa = places({operations, count});
        if (cfa.size() != 1 || cfa[0].base != base) continue;
        return sum(0, -static_cast<std::uint64_t>(cfa[0].offset));
    }
    return std::nullopt;
}

}  // namespace assay::symbols
