#include "framework/symbols/data_types.h"

#include <dwarf.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace assay::symbols {

std::optional<std::uint64_t> number(const Dwarf_Die& of, unsigned name) {
    Dwarf_Die die = of;
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_attr_integrate(&die, name, &attribute) == nullptr ||
        dwarf_formudata(&attribute, &value) != 0)
        return std::nullopt;
    return value;
}

std::optional<Dwarf_Die> referred_type(const Dwarf_Die& of) {
    Dwarf_Die die = of;
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    if (dwarf_attr_integrate(&die, DW_AT_type, &attribute) == nullptr ||
        dwarf_formref_die(&attribute, &type) == nullptr)
        return std::nullopt;
    return type;
}

std::vector<std::uint64_t> element_counts(Dwarf_Die array) {
    constexpr int kMostDimensions = 64;
    std::vector<std::uint64_t> counts;
    Dwarf_Die child;
    int status = dwarf_child(&array, &child);
    for (int i = 0; status == 0 && i < kMostDimensions; ++i) {
        if (dwarf_tag(&child) == DW_TAG_subrange_type) {
            std::optional<std::uint64_t> count = number(child, DW_AT_count);
            if (!count) {
                count = number(child, DW_AT_upper_bound);
                if (count) ++*count;
            }
            counts.push_back(count.value_or(0));
        }
        status = dwarf_siblingof(&child, &child);
    }
    return counts;
}

namespace {

using Kind = DataType::Kind;

// The depth to which types are followed: types in a damaged file may refer to one another in
// circles.
constexpr int kDeepest = 64;
constexpr std::size_t kMostMembers = 1 << 16;

std::string name_of(const Dwarf_Die& of) {
    Dwarf_Die die = of;
    const char* name = dwarf_diename(&die);
    return name != nullptr ? name : "";
}

// Follows a declaration to a type that is defined in its own unit.
Dwarf_Die defined(Dwarf_Die type) {
    Dwarf_Attribute signature;
    Dwarf_Die definition;
    const bool elsewhere = dwarf_attr(&type, DW_AT_signature, &signature) != nullptr &&
                           dwarf_formref_die(&signature, &definition) != nullptr;
    return elsewhere ? definition : type;
}

// The type without typedefs, const and other qualifiers. Sets `alias` to the name of the last
// typedef.
std::optional<Dwarf_Die> peeled(Dwarf_Die type, std::string& alias) {
    for (int depth = 0; depth < kDeepest; ++depth) {
        switch (dwarf_tag(&type)) {
            case DW_TAG_typedef:
                alias = name_of(type);
                break;
            case DW_TAG_const_type:
            case DW_TAG_volatile_type:
            case DW_TAG_restrict_type:
            case DW_TAG_atomic_type:
                break;
            default:
                return defined(type);
        }
        const std::optional<Dwarf_Die> next = referred_type(type);
        if (!next) return std::nullopt;
        type = *next;
    }
    return std::nullopt;
}

Kind kind_of(Dwarf_Die& type) {
    switch (dwarf_tag(&type)) {
        case DW_TAG_structure_type:
            return dwarf_hasattr(&type, DW_AT_declaration) ? Kind::kOther : Kind::kStruct;
        case DW_TAG_class_type:
            return dwarf_hasattr(&type, DW_AT_declaration) ? Kind::kOther : Kind::kClass;
        case DW_TAG_union_type:
            return dwarf_hasattr(&type, DW_AT_declaration) ? Kind::kOther : Kind::kUnion;
        case DW_TAG_pointer_type:
        case DW_TAG_reference_type:
        case DW_TAG_rvalue_reference_type:
            return Kind::kPointer;
        case DW_TAG_array_type:
            return Kind::kArray;
        case DW_TAG_subroutine_type:
            return Kind::kFunction;
        default:
            return Kind::kOther;
    }
}

// The elements of all dimensions of an array together; 0 if a dimension has no bound.
std::uint64_t element_count(const Dwarf_Die& array) {
    std::uint64_t count = 1;
    for (const std::uint64_t length : element_counts(array))
        if (__builtin_mul_overflow(count, length, &count)) return 0;
    return count;
}

// Sets the bits of a member. DWARF describes them with DW_AT_bit_offset up to version 3, and with
// DW_AT_data_bit_offset from version 4 on.
void place_bits(const Dwarf_Die& die, DataMember& member) {
    const std::optional<std::uint64_t> bits = number(die, DW_AT_bit_size);
    if (!bits || *bits == 0 || *bits > 128) return;
    std::uint64_t first = 0;
    if (const std::optional<std::uint64_t> from_start = number(die, DW_AT_data_bit_offset)) {
        first = *from_start;
    } else if (const std::optional<std::uint64_t> from_top = number(die, DW_AT_bit_offset)) {
        if (member.size > 16 || *from_top > member.size * 8 - std::min(member.size * 8, *bits))
            return;
        first = member.size * 8 - *bits - *from_top;
    }
    member.bits = static_cast<std::uint32_t>(*bits);
    member.offset += first / 8;
    member.first_bit = static_cast<std::uint32_t>(first % 8);
    member.size = (member.first_bit + *bits + 7) / 8;
}

void note_declaration(Dwarf_Die& die, DataType& type) {
    int line = 0;
    if (dwarf_decl_line(&die, &line) != 0 || line <= 0) return;
    const char* file = dwarf_decl_file(&die);
    if (file == nullptr) return;
    type.file = file;
    type.line = static_cast<std::uint32_t>(line);
}

bool covers(const DataMember& member, std::uint64_t offset) {
    return offset >= member.offset && offset - member.offset < member.size;
}

// An array without a bound at the end of a struct.
bool is_open(const DataMember& member) {
    return member.size == 0 && member.type != 0;
}

bool is_in_open_part(const DataType& type, std::int64_t offset) {
    return !type.members.empty() && is_open(type.members.back()) &&
           offset >= static_cast<std::int64_t>(type.members.back().offset);
}

// The likeliest member at an offset. Prefers members that hold data, then members that contain the
// whole access. In a union, prefers a member of the size of the access. In a struct, prefers the
// last member, because it can lie in the unused end of a base class.
const DataMember* member_at(const DataType& type, std::uint64_t offset, std::uint64_t size) {
    const auto rank = [&](const DataMember& member) {
        const bool contains = size <= member.size - (offset - member.offset);
        const std::uint64_t fits = type.kind == Kind::kUnion ? member.size == size : member.offset;
        return std::tuple(!member.is_empty, contains, fits);
    };
    const DataMember* found = nullptr;
    for (const DataMember& member : type.members)
        if (covers(member, offset) && (found == nullptr || rank(member) > rank(*found)))
            found = &member;
    if (found != nullptr || type.members.empty()) return found;
    const DataMember& last = type.members.back();
    return is_open(last) && offset >= last.offset ? &last : nullptr;
}

// The step to `found`. If it is a bit-field, also to other bit-fields in the bytes of the access.
DataPlace::Step step_to(const DataType& type, DataTypeId in, const DataMember* found,
                        std::uint64_t offset, std::uint64_t size) {
    const auto index = static_cast<std::uint32_t>(found - type.members.data());
    DataPlace::Step step{in, index, index};
    if (found->bits == 0 || type.kind == Kind::kUnion) return step;
    const auto shares = [&](std::size_t i) {
        const DataMember& member = type.members[i];
        return member.bits != 0 && (covers(member, offset) ||
                                    (member.offset >= offset && member.offset - offset < size));
    };
    while (step.first > 0 && shares(step.first - 1)) --step.first;
    while (step.last + 1 < type.members.size() && shares(step.last + 1)) ++step.last;
    return step;
}

// Into 0 to `size` - 1.
std::uint64_t wrapped(std::int64_t offset, std::uint64_t size) {
    const auto signed_size = static_cast<std::int64_t>(size);
    const std::int64_t rest = offset % signed_size;
    return static_cast<std::uint64_t>(rest < 0 ? rest + signed_size : rest);
}

}  // namespace

DataTypes::DataTypes() {
    types_.push_back(std::make_unique<DataType>());
}

DataTypeId DataTypes::of(const Dwarf_Die& type) {
    return of(type, 0);
}

DataTypeId DataTypes::type_of(const Dwarf_Die& typed) {
    const std::optional<Dwarf_Die> type = referred_type(typed);
    return type ? of(*type, 0) : 0;
}

void DataTypes::set_scope(const Dwarf_Die& type, const std::string& scope) {
    scopes_.try_emplace(type.addr, scope);
}

DataTypeId DataTypes::of(Dwarf_Die type, int depth) {
    if (const auto known = known_.find(type.addr); known != known_.end()) return known->second;
    std::string alias;
    const std::optional<Dwarf_Die> bare = depth < kDeepest ? peeled(type, alias) : std::nullopt;
    if (!bare) return 0;
    const auto known = known_.find(bare->addr);
    const DataTypeId id = known != known_.end() ? known->second : add(*bare, alias, depth);
    known_.try_emplace(type.addr, id);
    return id;
}

// Registers the type before it reads the members, because these can refer to the type.
DataTypeId DataTypes::add(Dwarf_Die type, const std::string& alias, int depth) {
    const auto id = static_cast<DataTypeId>(types_.size());
    known_[type.addr] = id;
    types_.push_back(std::make_unique<DataType>());
    DataType& out = *types_.back();
    out.kind = kind_of(type);
    out.name = name_of(type);
    if (out.name.empty())
        out.name = alias;
    else if (const auto scope = scopes_.find(type.addr); scope != scopes_.end())
        out.name.insert(0, scope->second);
    out.size = number(type, DW_AT_byte_size).value_or(0);
    out.alignment = number(type, DW_AT_alignment).value_or(0);
    if (out.kind == Kind::kPointer && out.size == 0) out.size = sizeof(void*);
    const std::optional<Dwarf_Die> target = referred_type(type);
    if (target && (out.kind == Kind::kPointer || out.kind == Kind::kFunction))
        targets_[id] = *target;
    if (target && out.kind == Kind::kArray) {
        out.element = of(*target, depth + 1);
        const std::uint64_t element = types_[out.element]->size;
        if (out.size == 0 && __builtin_mul_overflow(element, element_count(type), &out.size))
            out.size = 0;
    }
    if (out.has_members()) {
        note_declaration(type, out);
        read_members(type, out, depth);
    }
    return id;
}

DataTypeId DataTypes::target(DataTypeId type) {
    const auto found = targets_.find(type);
    return found != targets_.end() ? of(found->second, 0) : 0;
}

void DataTypes::read_members(Dwarf_Die& type, DataType& into, int depth) {
    Dwarf_Die child;
    const void* before = type.addr;
    int rest = dwarf_child(&type, &child);
    for (std::size_t i = 0; rest == 0 && i < kMostMembers && child.addr > before; ++i) {
        before = child.addr;
        std::optional<DataMember> member = read_member(child, into.kind == Kind::kUnion, depth);
        if (member && member->offset <= into.size && member->size <= into.size - member->offset)
            into.members.push_back(std::move(*member));
        rest = dwarf_siblingof(&child, &child);
    }
    std::stable_sort(into.members.begin(), into.members.end(),
                     [](const DataMember& a, const DataMember& b) { return a.offset < b.offset; });
}

std::optional<DataMember> DataTypes::read_member(Dwarf_Die die, bool in_union, int depth) {
    const int tag = dwarf_tag(&die);
    if (tag != DW_TAG_member && tag != DW_TAG_inheritance) return std::nullopt;
    // A static member.
    if (dwarf_hasattr(&die, DW_AT_declaration) || dwarf_hasattr(&die, DW_AT_external))
        return std::nullopt;
    const std::optional<std::uint64_t> offset = number(die, DW_AT_data_member_location);
    // A virtual base has no constant offset.
    if (!offset && !in_union && !dwarf_hasattr(&die, DW_AT_data_bit_offset)) return std::nullopt;
    const std::optional<Dwarf_Die> type = referred_type(die);
    if (!type) return std::nullopt;
    DataMember member;
    member.base_class = tag == DW_TAG_inheritance;
    member.type = of(*type, depth + 1);
    const DataType& of_type = *types_[member.type];
    member.is_empty = of_type.has_members() &&
                      std::all_of(of_type.members.begin(), of_type.members.end(),
                                  [](const DataMember& inner) { return inner.is_empty; });
    // An empty base class can share its byte with a member.
    if (member.base_class && member.is_empty) return std::nullopt;
    member.name = member.base_class ? types_[member.type]->name : name_of(die);
    member.offset = offset.value_or(0);
    member.size = types_[member.type]->size;
    member.alignment = number(die, DW_AT_alignment).value_or(0);
    place_bits(die, member);
    return member;
}

bool DataTypes::is_within(DataTypeId type, std::int64_t offset) const {
    const DataType& of = *types_[type];
    if (!of.has_members()) return true;
    return offset >= 0 &&
           (static_cast<std::uint64_t>(offset) < of.size || is_in_open_part(of, offset));
}

DataTypeId DataTypes::pointed_to(DataTypeId type, std::int64_t offset) {
    std::set<DataTypeId> targets;
    add_targets(type, offset, 0, targets);
    return targets.size() == 1 ? *targets.begin() : 0;
}

void DataTypes::add_targets(DataTypeId type, std::int64_t offset, int depth,
                            std::set<DataTypeId>& to) {
    constexpr std::size_t kMostTargets = 2;
    const DataType& in = *types_[type];
    if (depth == kDeepest || to.size() == kMostTargets) return;
    if (in.kind == Kind::kArray) return add_targets(in.element, offset, depth + 1, to);
    if (in.size == 0) return;
    const std::uint64_t within =
        is_in_open_part(in, offset) ? static_cast<std::uint64_t>(offset) : wrapped(offset, in.size);
    const auto enter = [&](const DataMember& member) {
        if (member.bits == 0)
            add_targets(member.type, static_cast<std::int64_t>(within - member.offset), depth + 1,
                        to);
    };
    if (in.kind == Kind::kPointer && within == 0) {
        to.insert(target(type));
    } else if (in.kind == Kind::kUnion) {
        for (const DataMember& member : in.members)
            if (covers(member, within)) enter(member);
    } else if (const DataMember* const member = member_at(in, within, sizeof(void*))) {
        enter(*member);
    }
}

std::optional<DataPlace> DataTypes::place(DataTypeId type, std::int64_t offset,
                                          std::uint64_t size) {
    DataPlace place;
    DataTypeId current = type;
    for (int depth = 0; current != 0 && depth < kDeepest; ++depth) {
        const DataType& in = *types_[current];
        if (in.kind == Kind::kArray) {
            current = in.element;
            continue;
        }
        if (place.type == 0) place.type = current;
        place.part = current;
        if (in.size == 0) return std::nullopt;
        if (!is_in_open_part(in, offset))
            offset = static_cast<std::int64_t>(wrapped(offset, in.size));
        if (!in.has_members()) return place;
        const auto within = static_cast<std::uint64_t>(offset);
        const DataMember* member = member_at(in, within, size);
        if (member == nullptr) return place;
        place.members.push_back(step_to(in, current, member, within, size));
        if (member->bits != 0) {
            place.part = 0;
            return place;
        }
        offset -= static_cast<std::int64_t>(member->offset);
        current = member->type;
    }
    if (place.type == 0) return std::nullopt;
    place.part = current;
    return place;
}

std::optional<std::uint64_t> DataTypes::offset_in(const DataPlace& place,
                                                  std::int64_t offset) const {
    const std::uint64_t size = types_[place.type]->size;
    if (size == 0) return std::nullopt;
    for (const DataPlace::Step& step : place.members)
        if (types_[types_[step.in]->members[step.first].type]->kind == Kind::kArray)
            return std::nullopt;
    return wrapped(offset, size);
}

std::uint64_t DataTypes::alignment(DataTypeId type) {
    constexpr std::uint64_t kMost = 16;  // for types without members
    const auto [known, is_new] = alignments_.try_emplace(type, 1);
    std::uint64_t& most = known->second;
    if (!is_new) return most;
    std::vector<DataTypeId> inside{type};
    for (std::size_t looked = 0; looked < inside.size() && looked < kMostMembers; ++looked) {
        const DataType& of = *types_[inside[looked]];
        most = std::max(most, of.alignment);
        if (of.kind == Kind::kArray)
            inside.push_back(of.element);
        else if (of.has_members())
            for (const DataMember& member : of.members) {
                most = std::max(most, member.alignment);
                inside.push_back(member.type);
            }
        else if (of.size != 0)
            most = std::max(most, std::min(kMost, of.size & (~of.size + 1)));
    }
    return most;
}

std::string DataTypes::full_name(DataTypeId type) {
    std::string behind;
    for (int depth = 0; depth < kDeepest; ++depth) {
        const DataType& of = *types_[type];
        switch (of.kind) {
            case Kind::kVoid:
                return "void" + behind;
            case Kind::kPointer:
                behind.insert(0, behind.starts_with('*') || behind.starts_with('[') ? "*" : " *");
                type = target(type);
                continue;
            case Kind::kArray: {
                const std::uint64_t element = types_[of.element]->size;
                behind.insert(0,
                              element == 0 ? "[]" : "[" + std::to_string(of.size / element) + "]");
                type = of.element;
                continue;
            }
            case Kind::kFunction:
                return "(function)" + behind;
            case Kind::kUnion:
                return (of.name.empty() ? "(union)" : of.name) + behind;
            default:
                return (of.name.empty() ? "(struct)" : of.name) + behind;
        }
    }
    return "(type)";
}

}  // namespace assay::symbols
