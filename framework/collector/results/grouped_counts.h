// Counts of instructions that are broken down by groups of one kind, as the events file has them.
#pragma once

#include "framework/collector/results/context_shares.h"
#include "framework/collector/results/profile.h"
#include "framework/data_references/member_references.h"
#include "framework/data_references/type_tree.h"
#include "framework/events/writer.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::collector {

class GroupedCounts {
  public:
    // `counts`: by any number instead of the context, of `instructions` rows of the database.
    // `number`: which one that is in the end. `columns`: of the database, by event of the file.
    struct Source {
        const ContextCounts& counts;
        std::size_t instructions, database_columns;
        std::span<const std::size_t> columns;
        std::function<std::uint32_t(std::uint32_t)> number;
    };
    explicit GroupedCounts(const Source& source);

    // Those that have counts in the file, sorted.
    const std::vector<std::uint32_t>& numbers() const { return numbers_; }
    // Adds those that have groups although they have no counts by themselves.
    void add_numbers(std::span<const std::uint32_t> more);
    // The group of a number of those, counted from 0.
    std::uint32_t group(std::uint32_t number) const;
    // The counts of a line, which are those of some rows of the database. `first`: the first
    // group's number in the file.
    void write_line(events::Writer& writer, std::span<const std::uint32_t> rows,
                    std::uint32_t first);

  private:
    const ContextCounts* counts_;
    std::size_t width_;                        // events
    std::vector<std::size_t> events_;          // of the file, by column of the database
    std::vector<std::uint32_t> numbers_;       // by group
    std::vector<ContextCounts::Row> rows_;     // by row of the database
    std::vector<std::uint32_t> first_of_row_;  // in those
    std::vector<std::uint64_t> sums_;          // of write_line(), by group and event
    std::vector<std::uint32_t> touched_;
};

// The threads that have executed what was counted, as groups of the events file.

class ThreadGroups {
  public:
    explicit ThreadGroups(const Profile& profile);

    // Numbered from `first` on.
    std::vector<events::Group> groups(std::uint32_t first);
    // The counts of a line, which are those of some rows of the database.
    void write_line(events::Writer& writer, std::span<const std::uint32_t> rows);

  private:
    const Profile& profile_;
    std::uint32_t first_ = 0;
    std::optional<GroupedCounts> counts_;  // with --threads
};

// The types and members that data events refer to, as groups of the events file.

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
