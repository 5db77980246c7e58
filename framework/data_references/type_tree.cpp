#include "framework/data_references/type_tree.h"

#include <algorithm>
#include <utility>

namespace assay::data_references {
namespace {

using symbols::DataMember;
using symbols::DataType;

std::string kind_name(DataType::Kind kind) {
    switch (kind) {
        case DataType::Kind::kStruct:
            return "struct";
        case DataType::Kind::kClass:
            return "class";
        case DataType::Kind::kUnion:
            return "union";
        case DataType::Kind::kPointer:
            return "pointer";
        default:
            return "other";
    }
}

}  // namespace

std::uint32_t TypeTree::add(TypeNode&& node) {
    Key key(node.parent, node.name, node.offset, node.size, node.file, node.line, node.first_bit);
    const auto [known, is_new] =
        numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) nodes_.push_back(std::move(node));
    return known->second;
}

std::uint32_t TypeTree::add(const symbols::DataPlace& place, symbols::DataTypes& types) {
    const DataType& outermost = types[place.type];
    TypeNode type;
    type.name = types.full_name(place.type);
    type.size = outermost.size;
    type.kind = kind_name(outermost.kind);
    type.file = outermost.file;
    type.line = outermost.line;
    type.alignment = types.alignment(place.type);
    std::uint32_t number = add(std::move(type));
    std::uint64_t start = 0;  // of the innermost struct
    for (const symbols::DataPlace::Step& step : place.members) {
        const DataType& in = types[step.in];
        const DataMember& first = in.members[step.first];
        const DataMember& last = in.members[step.last];
        TypeNode member;
        member.parent = number;
        member.is_member = true;
        for (std::uint32_t i = step.first; i <= step.last; ++i)
            member.name += (i == step.first ? "" : "+") + in.members[i].name;
        member.bit_fields = step.last - step.first + 1;
        member.type = types.full_name(first.type);
        member.alignment = std::max(first.alignment, types.alignment(first.type));
        if (member.name.empty()) member.name = member.type;
        member.offset = start + first.offset;
        member.size = last.offset + last.size - first.offset;
        if (first.bits != 0) {
            member.first_bit = first.first_bit;
            member.bits = static_cast<std::uint32_t>((last.offset - first.offset) * 8) +
                          last.first_bit + last.bits - first.first_bit;
        }
        number = add(std::move(member));
        start += first.offset;
    }
    return number;
}

void TypeTree::add_members(const symbols::DataPlace& place, symbols::DataTypes& types) {
    const auto count = static_cast<std::uint32_t>(types[place.type].members.size());
    for (std::uint32_t i = 0; i < count; ++i) {
        symbols::DataPlace member;
        member.type = place.type;
        member.members.push_back({place.type, i, i});
        add(member, types);
    }
}

}  // namespace assay::data_references
