#include "framework/collector/profilers/reference_types.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace assay::collector {
namespace {

using data_references::MemberReference;
using data_references::MemberReferences;
using data_references::TypeNode;

std::uint32_t kind_of(const TypeNode& node) {
    if (node.is_member) return TRACE_TYPE_MEMBER;
    if (node.kind == "struct" || node.kind == "class") return TRACE_TYPE_STRUCT;
    if (node.kind == "union") return TRACE_TYPE_UNION;
    return node.kind == "pointer" ? TRACE_TYPE_POINTER : TRACE_TYPE_OTHER;
}

bool is_data(const trace_site_t& site) {
    return site.kind == TRACE_SITE_READ || site.kind == TRACE_SITE_WRITE ||
           site.kind == TRACE_SITE_MODIFY;
}

}  // namespace

ReferenceTypes::Found ReferenceTypes::of_site(std::uint32_t site, const CodeTables& code) {
    if (site >= code.sites.size()) return {};
    if (site >= found_.size()) learn(code);
    return found_[site];
}

void ReferenceTypes::learn(const CodeTables& code) {
    using AtAddress = std::pair<std::uint64_t, std::uint32_t>;
    std::map<std::uint32_t, std::vector<AtAddress>> wanted;  // by mapping: offset in it, site
    AddressMap::Finder mappings(addresses_);
    auto site = static_cast<std::uint32_t>(found_.size());
    found_.resize(code.sites.size());
    for (; site < found_.size(); ++site) {
        if (!is_data(code.sites[site])) continue;
        const std::uint64_t pc = code.instrs[code.sites[site].instr].pc;
        const std::uint32_t index = mappings.find(pc);
        if (index == kNoMapping) continue;
        wanted[index].emplace_back(pc - addresses_.mappings()[index].start, site);
    }
    for (auto& [index, sites] : wanted) {
        const Mapping& mapping = addresses_.mappings()[index];
        const std::string& path = *mapping.path;
        std::unique_ptr<MemberReferences>& object = objects_[path];
        if (object == nullptr) {
            object = std::make_unique<MemberReferences>(
                path, tree_, symbols::kDebugRoot, symbols::ImageCache(symbolizer_.cache_folder()));
            object->add_all_members();
        }
        std::sort(sites.begin(), sites.end());
        const std::uint64_t start = symbolizer_.address_of_offset(path, mapping.offset);
        std::vector<std::uint64_t> addresses;
        for (const AtAddress& at : sites) addresses.push_back(start + at.first);
        const std::vector<MemberReferences::Operands> operands = object->find_operands(addresses);
        for (std::size_t i = 0; i < sites.size(); ++i) {
            const trace_site_t& row = code.sites[sites[i].second];
            const MemberReference& reference = operands[i][row.operand == 0 ? 0 : 1];
            if (reference.kind == MemberReference::Kind::kTyped)
                found_[sites[i].second] = {reference.node, reference.offset};
        }
    }
    link_members();
}

void ReferenceTypes::link_members() {
    const std::vector<TypeNode>& nodes = tree_.nodes();
    first_.assign(nodes.size(), 0);
    following_.assign(nodes.size(), 0);
    std::vector<std::uint32_t> members;
    for (std::uint32_t node = 1; node < nodes.size(); ++node)
        if (nodes[node].is_member) members.push_back(node);
    const auto place = [&](std::uint32_t node) {
        const TypeNode& of = nodes[node];
        return std::tuple(of.parent, of.offset, of.first_bit, ~of.bit_fields, node);
    };
    std::sort(members.begin(), members.end(),
              [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
    for (std::size_t i = members.size(); i-- > 0;)
        following_[members[i]] = std::exchange(first_[nodes[members[i]].parent], members[i]);
}

const trace_data_type_t* ReferenceTypes::row(std::uint32_t number) {
    if (number == 0 || number >= tree_.nodes().size()) return nullptr;
    const TypeNode& node = tree_.nodes()[number];
    told_ = {.size = sizeof told_,
             .kind = kind_of(node),
             .outer = node.parent,
             .members = first_[number],
             .next = following_[number],
             .first_bit = node.first_bit,
             .bits = node.bits,
             .bit_fields = node.bit_fields,
             .offset = node.offset,
             .bytes = node.size,
             .alignment = node.alignment,
             .name = node.name.c_str(),
             .type = node.type.c_str(),
             .file = node.file.c_str(),
             .line = node.line,
             .reserved = 0};
    return &told_;
}

}  // namespace assay::collector
