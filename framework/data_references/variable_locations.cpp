#include "framework/data_references/variable_locations.h"

#include <dwarf.h>

#include <algorithm>
#include <iterator>

namespace assay::data_references {
namespace {

using namespace native;
using symbols::DataType;
using symbols::DataTypeId;

constexpr int kDeepestBlock = 64;                        // nesting of blocks
constexpr std::size_t kMostEntries = 1 << 18;            // of one function, with inlined ones
constexpr std::ptrdiff_t kMostVariableRanges = 1 << 14;  // of one variable

// Converts DWARF's number (System V ABI, AMD64 supplement, figure 3.36).
std::uint8_t gpr_of_dwarf(std::uint64_t number) {
    constexpr std::array<std::uint8_t, 16> kNumbers = {RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP,
                                                       R8,  R9,  R10, R11, R12, R13, R14, R15};
    return number < kNumbers.size() ? kNumbers[number] : kNoGpr;
}

// The register of DW_OP_reg..., which holds the value itself.
std::uint8_t holding(const Dwarf_Op& operation) {
    if (operation.atom >= DW_OP_reg0 && operation.atom <= DW_OP_reg31)
        return gpr_of_dwarf(operation.atom - DW_OP_reg0);
    return operation.atom == DW_OP_regx ? gpr_of_dwarf(operation.number) : kNoGpr;
}

struct Sum {
    std::uint8_t base = kNoGpr;
    std::int64_t offset = 0;
};

// The operands of DW_OP_breg...: a register and a constant.
Sum sum_of(const Dwarf_Op& operation) {
    if (operation.atom >= DW_OP_breg0 && operation.atom <= DW_OP_breg31)
        return {gpr_of_dwarf(operation.atom - DW_OP_breg0),
                static_cast<std::int64_t>(operation.number)};
    if (operation.atom == DW_OP_bregx)
        return {gpr_of_dwarf(operation.number), static_cast<std::int64_t>(operation.number2)};
    return {};
}

}  // namespace

VariableLocations::VariableLocations(const Dwarf_Die& function, symbols::DataTypes& types)
    : types_(types) {
    Dwarf_Die die = function;
    read_frame_base(die);
    add_children(die, 0);
    choose();
}

void VariableLocations::read_frame_base(Dwarf_Die& function) {
    Dwarf_Attribute attribute;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    if (dwarf_attr_integrate(&function, DW_AT_frame_base, &attribute) == nullptr ||
        dwarf_getlocation(&attribute, &operations, &count) != 0 || count != 1)
        return;
    if (operations->atom == DW_OP_call_frame_cfa) {
        frame_base_ = kFrameAddress;
    } else if (const std::uint8_t reg = holding(*operations); reg != kNoGpr) {
        frame_base_ = reg;
    } else {
        const Sum sum = sum_of(*operations);
        frame_base_ = sum.base;
        frame_offset_ = sum.offset;
    }
}

void VariableLocations::add_children(Dwarf_Die& parent, int depth) {
    if (depth == kDeepestBlock) return;
    Dwarf_Die child;
    const void* before = parent.addr;
    // In damaged files, the next entry may be an earlier one.
    for (int rest = dwarf_child(&parent, &child);
         rest == 0 && child.addr > before && entries_ < kMostEntries;
         rest = dwarf_siblingof(&child, &child)) {
        before = child.addr;
        ++entries_;
        switch (dwarf_tag(&child)) {
            case DW_TAG_variable:
            case DW_TAG_formal_parameter:
                add_variable(child);
                break;
            case DW_TAG_call_site:
            case DW_TAG_GNU_call_site:
                add_call(child);
                break;
            case DW_TAG_lexical_block:
            case DW_TAG_inlined_subroutine:
                add_children(child, depth + 1);
                break;
            default:
                break;
        }
    }
}

void VariableLocations::add_call(Dwarf_Die& call) {
    const bool is_gnu = dwarf_tag(&call) == DW_TAG_GNU_call_site;
    Dwarf_Attribute attribute;
    Dwarf_Addr returns_to = 0;
    Dwarf_Die callee;
    const unsigned place = is_gnu ? DW_AT_low_pc : DW_AT_call_return_pc;
    const unsigned origin = is_gnu ? DW_AT_abstract_origin : DW_AT_call_origin;
    if (dwarf_attr(&call, place, &attribute) == nullptr ||
        dwarf_formaddr(&attribute, &returns_to) != 0 ||
        dwarf_attr(&call, origin, &attribute) == nullptr ||
        dwarf_formref_die(&attribute, &callee) == nullptr)
        return;
    if (dwarf_hasattr_integrate(&callee, DW_AT_noreturn)) never_.insert(returns_to);
    returned_.try_emplace(returns_to, types_.type_of(callee));
}

std::optional<DataTypeId> VariableLocations::returned_to(std::uint64_t pc) const {
    const auto found = returned_.find(pc);
    return found != returned_.end() ? std::optional(found->second) : std::nullopt;
}

void VariableLocations::add_variable(Dwarf_Die& variable) {
    Dwarf_Attribute attribute;
    if (dwarf_attr(&variable, DW_AT_location, &attribute) == nullptr) return;
    const DataTypeId type = types_.type_of(variable);
    if (type == 0) return;
    std::ptrdiff_t offset = 0;
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    Dwarf_Op* operations = nullptr;
    std::size_t count = 0;
    for (std::ptrdiff_t i = 0; i < kMostVariableRanges; ++i) {
        offset = dwarf_getlocations(&attribute, offset, &base, &start, &end, &operations, &count);
        if (offset <= 0) break;
        if (count != 0 && start < end) add_expression({operations, count}, start, end, type);
    }
}

void VariableLocations::add_expression(Operations operations, std::uint64_t start,
                                       std::uint64_t end, DataTypeId type) {
    const bool in_pieces = std::any_of(operations.begin(), operations.end(),
                                       [](const Dwarf_Op& o) { return o.atom == DW_OP_piece; });
    if (in_pieces)
        add_pieces(operations, start, end, type);
    else
        add_whole(operations, start, end, type);
}

void VariableLocations::add_whole(Operations operations, std::uint64_t start, std::uint64_t end,
                                  DataTypeId type) {
    const bool is_pointer = types_[type].kind == DataType::Kind::kPointer;
    const std::uint8_t reg = holding(operations[0]);
    Sum sum = sum_of(operations[0]);
    if (operations[0].atom == DW_OP_fbreg && frame_base_ != kNoGpr)
        sum = {frame_base_, frame_offset_ + static_cast<std::int64_t>(operations[0].number)};
    if (operations.size() == 1 && reg != kNoGpr) {
        if (is_pointer) add_in_register(reg, start, end, {types_.target(type), 0});
    } else if (operations.size() == 1 && sum.base != kNoGpr) {
        add_in_memory(start, end, sum.base, sum.offset, type, false);
    } else if (operations.size() == 2 && sum.base != kNoGpr) {
        if (operations[1].atom == DW_OP_deref)
            add_in_memory(start, end, sum.base, sum.offset, type, true);
        else if (operations[1].atom == DW_OP_stack_value && is_pointer)
            add_in_register(sum.base, start, end, {types_.target(type), -sum.offset});
    }
}

// The members of a small struct, such as a string_view, can be in registers.
void VariableLocations::add_pieces(Operations operations, std::uint64_t start, std::uint64_t end,
                                   DataTypeId type) {
    std::uint64_t offset = 0;
    for (std::size_t i = 0, first = 0; i < operations.size(); ++i) {
        if (operations[i].atom != DW_OP_piece) continue;
        const std::uint64_t size = operations[i].number;
        if (size > types_[type].size || offset > types_[type].size - size) return;
        if (i == first + 1 && size == sizeof(void*)) {
            const std::uint8_t reg = holding(operations[first]);
            const auto place = types_.place(type, static_cast<std::int64_t>(offset), size);
            if (reg != kNoGpr && place && types_[place->part].kind == DataType::Kind::kPointer)
                add_in_register(reg, start, end, {types_.target(place->part), 0});
        }
        offset += size;
        first = i + 1;
    }
}

void VariableLocations::add_in_memory(std::uint64_t start, std::uint64_t end, std::uint8_t base,
                                      std::int64_t offset, DataTypeId type, bool indirect) {
    in_memory_.push_back({start, end, base, offset, type, indirect});
    // A base that is not the frame holds the address of an object elsewhere.
    if (!indirect && base < 16 && base != RSP && base != RBP)
        add_in_register(base, start, end, {type, -offset});
}

void VariableLocations::add_in_register(unsigned reg, std::uint64_t start, std::uint64_t end,
                                        const Pointee& pointee) {
    if (reg < 16 && pointee.type != 0 && types_[pointee.type].size != 0)
        in_registers_[reg].push_back({start, end, pointee});
}

bool VariableLocations::is_better(const Pointee& a, const Pointee& b) const {
    const auto rank = [this](const Pointee& p) {
        const DataType& type = types_[p.type];
        return std::pair(type.has_members(), type.size);
    };
    return rank(a) > rank(b);
}

// Where ranges overlap, keeps the better one.
void VariableLocations::choose() {
    for (std::vector<Range>& ranges : in_registers_) {
        std::sort(ranges.begin(), ranges.end(),
                  [](const Range& a, const Range& b) { return a.start < b.start; });
        std::vector<std::uint64_t> borders;
        for (const Range& range : ranges) {
            borders.push_back(range.start);
            borders.push_back(range.end);
        }
        std::sort(borders.begin(), borders.end());
        borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
        std::vector<Range> chosen;
        std::vector<const Range*> active;
        auto next = ranges.begin();
        for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
            std::erase_if(active, [&](const Range* range) { return range->end <= borders[i]; });
            for (; next != ranges.end() && next->start <= borders[i]; ++next)
                active.push_back(&*next);
            const auto best = std::max_element(active.begin(), active.end(),
                                               [this](const Range* a, const Range* b) {
                                                   return is_better(b->pointee, a->pointee);
                                               });
            if (best != active.end())
                chosen.push_back({borders[i], borders[i + 1], (*best)->pointee});
        }
        ranges = std::move(chosen);
    }
}

std::optional<Pointee> VariableLocations::in_register(unsigned reg, std::uint64_t pc) const {
    if (reg >= 16) return std::nullopt;
    const std::vector<Range>& ranges = in_registers_[reg];
    const auto after = std::upper_bound(
        ranges.begin(), ranges.end(), pc,
        [](std::uint64_t wanted, const Range& range) { return wanted < range.start; });
    if (after == ranges.begin() || std::prev(after)->end <= pc) return std::nullopt;
    return std::prev(after)->pointee;
}

}  // namespace assay::data_references
