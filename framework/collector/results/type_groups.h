// The types and members that data events refer to, as groups of the events file.
#pragma once

#include "framework/collector/results/profile.h"
#include "framework/data_references/member_references.h"
#include "framework/data_references/type_tree.h"
#include "framework/events/writer.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::collector {

class TypeGroups {
  public:
    explicit TypeGroups(const Profile& profile)
        : profile_(profile), references_(profile.types ? profile.samples->rows() : 0) {}

    // Finds out about instructions of one object: their addresses in it, sorted, and rows of the
    // database. Does nothing without Profile::types.
    void add(const std::string& object_path, std::span<const std::uint64_t> addresses,
             std::span<const std::uint32_t> rows);
    // After all of those: which events are of data, and which groups there are. `first` is the
    // number of the first one.
    void finish(std::uint32_t first);

    // For people: of how many references the type is known. Empty without Profile::types.
    std::string coverage() const;
    std::vector<events::Group> groups() const;
    // The counts of a line, which are those of some rows of the database.
    void write_line(events::Writer& writer, std::span<const std::uint32_t> rows);

  private:
    using Kind = data_references::MemberReference::Kind;

    void find_data_events();
    bool has_counts(std::uint32_t row) const;

    const Profile& profile_;
    data_references::TypeTree tree_;
    std::vector<data_references::MemberReference> references_;  // by row
    std::vector<bool> of_data_;                                 // by event of the file
    std::vector<std::uint32_t> groups_;                         // by node: their numbers, or 0
    std::vector<std::uint64_t> sums_;  // of write_line(), by node and event
    std::vector<std::uint32_t> touched_;
};

}  // namespace assay::collector
