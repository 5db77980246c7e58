#include "framework/collector/profilers/source_places.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace assay::collector {

std::span<const trace_frame_t> SourcePlaces::find(std::uint64_t pc) {
    if (!known_.contains(pc)) prepare({&pc, 1});
    return known_[pc];
}

void SourcePlaces::prepare(std::span<const std::uint64_t> pcs) {
    // Sorted by object and then by link-time address.
    std::map<std::string, std::multimap<std::uint64_t, std::uint64_t>> wanted;
    for (const std::uint64_t pc : pcs) {
        const std::uint32_t index = addresses_.find(pc);
        if (!known_.try_emplace(pc, Frames{{"???", "???", 0, 0}}).second || index == kNoMapping)
            continue;
        const Mapping& mapping = addresses_.mappings()[index];
        const std::uint64_t start = symbolizer_.address_of_offset(*mapping.path, mapping.offset);
        wanted[*mapping.path].emplace(pc - mapping.start + start, pc);
    }
    std::vector<symbols::Request> requests;
    for (const auto& [object, addresses] : wanted) {
        requests.push_back({object, {}});
        for (const auto& [address, pc] : addresses) requests.back().addresses.push_back(address);
    }
    const auto locations = symbolizer_.resolve(requests);
    auto location = locations.begin();
    for (const auto& [object, addresses] : wanted) {
        auto of_object = location++->begin();
        for (const auto& [address, pc] : addresses) known_[pc] = frames_of(*of_object++);
    }
}

SourcePlaces::Frames SourcePlaces::frames_of(const symbols::Location& location) {
    Frames frames;
    for (const symbols::Frame& frame : location.frames)
        frames.push_back({keep(frame.function), keep(frame.file), frame.line, 0});
    return frames;
}

const char* SourcePlaces::keep(std::string_view text) {
    return texts_.emplace_back(text).c_str();
}

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
    if (site >= code.sites.size() || !is_data(code.sites[site])) return {};
    const std::uint32_t mapping = addresses_.find(code.instrs[code.sites[site].instr].pc);
    if (mapping == kNoMapping) return {};
    if (learned_[mapping] <= site) learn(mapping, code);
    return found_[site];
}

void ReferenceTypes::learn(std::uint32_t index, const CodeTables& code) {
    const Mapping& mapping = addresses_.mappings()[index];
    const std::uint64_t start = symbolizer_.address_of_offset(*mapping.path, mapping.offset);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> sites;  // by address
    AddressMap::Finder mappings(addresses_);
    found_.resize(code.sites.size());
    std::uint32_t& learned = learned_[index];
    for (; learned < code.sites.size(); ++learned) {
        if (!is_data(code.sites[learned])) continue;
        const std::uint64_t pc = code.instrs[code.sites[learned].instr].pc;
        if (mappings.find(pc) == index) sites.emplace_back(pc - mapping.start + start, learned);
    }
    std::sort(sites.begin(), sites.end());
    std::vector<std::uint64_t> addresses;
    addresses.reserve(sites.size());
    for (const auto& [address, site] : sites) addresses.push_back(address);

    std::unique_ptr<MemberReferences>& object = objects_[*mapping.path];
    if (object == nullptr) {
        object =
            std::make_unique<MemberReferences>(*mapping.path, tree_, symbols::kDebugRoot,
                                               symbols::ImageCache(symbolizer_.cache_folder()));
        object->add_all_members();
    }
    const std::vector<MemberReferences::Operands> operands = object->find_operands(addresses);
    for (std::size_t i = 0; i < sites.size(); ++i) {
        const std::uint32_t site = sites[i].second;
        const MemberReference& reference = operands[i][code.sites[site].operand == 0 ? 0 : 1];
        if (reference.kind == MemberReference::Kind::kTyped)
            found_[site] = {reference.node, reference.offset};
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
