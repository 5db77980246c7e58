// Answers profilers' questions about code: source places, with strings for the C ABI, and the types
// of data that instructions refer to.
#pragma once

#include "assay/trace_types.h"
#include "framework/collector/trace/address_map.h"
#include "framework/collector/trace/segment.h"
#include "framework/data_references/member_references.h"
#include "framework/data_references/type_tree.h"
#include "framework/symbols/symbolizer.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::collector {

class SourcePlaces {
  public:
    SourcePlaces(const AddressMap& addresses, symbols::Symbolizer& symbolizer)
        : addresses_(addresses), symbolizer_(symbolizer) {}

    // Returns frames, innermost first, never empty. Valid as long as this object.
    std::span<const trace_frame_t> find(std::uint64_t pc);
    // Looks up many at once.
    void prepare(std::span<const std::uint64_t> pcs);

  private:
    using Frames = std::vector<trace_frame_t>;

    Frames frames_of(const symbols::Location& location);
    const char* keep(std::string_view text);

    const AddressMap& addresses_;
    symbols::Symbolizer& symbolizer_;
    std::unordered_map<std::uint64_t, Frames> known_;  // by pc
    std::deque<std::string> texts_;
};

// The types and members that references are to, for profilers that ask (assay/trace_parse.h).

class ReferenceTypes {
  public:
    // Both must outlive this object.
    ReferenceTypes(const AddressMap& addresses, symbols::Symbolizer& symbolizer)
        : addresses_(addresses), symbolizer_(symbolizer) {}

    // A node of the tree, or none. The lookup of a site also handles all new sites of its file, but
    // no site of another file.
    struct Found {
        std::uint32_t number = 0;
        std::uint64_t offset = data_references::MemberReference::kVaries;
    };
    Found of_site(std::uint32_t site, const CodeTables& code);
    // Null for 0 and for unknown numbers. Valid until the next call.
    const trace_data_type_t* row(std::uint32_t number);

  private:
    void learn(std::uint32_t mapping, const CodeTables& code);
    void link_members();

    const AddressMap& addresses_;
    symbols::Symbolizer& symbolizer_;
    data_references::TypeTree tree_;
    std::map<std::string, std::unique_ptr<data_references::MemberReferences>> objects_;  // by path
    std::map<std::uint32_t, std::uint32_t> learned_;  // by mapping: the first unknown site
    std::vector<Found> found_;                        // by site
    std::vector<std::uint32_t> first_, following_;    // by node: its members
    trace_data_type_t told_{};                        // row()
};

}  // namespace assay::collector
