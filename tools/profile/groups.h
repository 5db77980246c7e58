// The groups of events files, added up: data objects, types and their members, threads. Each group
// has its counts and the source lines that counted.
//
// Groups of different files are joined if these are equal: kind, name, outer group, class, size,
// offset, number, binary, and the calls that led to the allocation. Groups of one file are joined
// only if they were allocated: variables of one file may have equal names.
#pragma once

#include "framework/events/parser.h"
#include "tools/profile/count_store.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace assay {

// Profile adds the contents of files.
class Groups {
  public:
    struct Group {
        std::uint32_t parent;  // index; kNone for outermost groups
        std::string kind, name;
        std::vector<std::pair<std::string, std::string>> attributes;
        // For allocated objects: the functions that led to the allocation, the innermost first.
        std::vector<std::string> callers;
        std::vector<std::uint32_t> inner;   // inner groups, in the order of the files
        std::vector<std::uint64_t> counts;  // including inner groups, after finish()

        std::string binary;  // path of the binary that contains the variable; "" if unknown

        std::string_view attribute(std::string_view key) const;  // "" without this attribute
        std::optional<std::uint64_t> number(std::string_view key) const;
    };
    static constexpr std::uint32_t kNone = UINT32_MAX;
    static constexpr std::size_t kMostCallers = 64;
    // Counts of a source line for the group itself, without inner groups.
    struct Line {
        Strings::Id file, function;
        std::uint32_t line;
        std::vector<std::uint64_t> counts;
    };

    // Groups that contain a whole file, in addition to the file's own groups.
    struct Whole {
        std::vector<std::uint32_t> groups;  // indices
        bool lines = false;                 // add the lines of the file to these groups
    };
    using WholeOf =
        std::function<Whole(const events::Header& header, const std::vector<events::Group>& own)>;

    const std::vector<Group>& groups() const { return groups_; }
    // All kinds of groups, in the order of the files.
    const std::vector<std::string>& kinds() const { return kinds_; }
    std::vector<Line> lines(std::uint32_t group) const;
    std::string_view text(Strings::Id id) const { return strings_[id]; }

    // --- While files are read.

    // `whole` is called with the header and the groups of the file itself.
    void begin_file(const std::string& path, const events::Header& header, WholeOf whole);
    void location(const events::Location& location);
    void line(std::uint32_t line, Counts counts);
    void add(const events::Group& group);
    // Adds the part of a line's counts that belongs to a group of the current file.
    void add_part(std::uint32_t group, std::uint32_t line, Counts counts);
    // Returns the functions of a context of the current file, the innermost first, at most
    // kMostCallers.
    using CallersOf = std::function<std::vector<std::string>(std::uint64_t context)>;
    void end_file(const CallersOf& callers_of);
    // Adds a group without counts. Returns its index.
    std::uint32_t add_whole_group(std::string kind, std::string name, std::uint32_t parent);
    // After the last file: adds counts of inner groups to their outer groups.
    void finish();

  private:
    struct LineKey {
        std::uint32_t group;
        Strings::Id file, function;
        std::uint32_t line;
        bool operator<(const LineKey& other) const {
            return std::tie(group, file, function, line) <
                   std::tie(other.group, other.file, other.function, other.line);
        }
    };

    std::uint32_t index_of(const events::Group& group, std::uint32_t parent,
                           const CallersOf& callers_of);
    void take_room(std::size_t bytes);
    void add_attributes(Group& to, const events::Group& from);
    void add_line(const LineKey& key, Counts counts);
    void add_kind(const std::string& kind);

    std::size_t columns_ = 0;
    Strings strings_;
    // State while a file is read.
    std::string path_;
    events::Header header_;
    std::vector<events::Group> read_;
    WholeOf whole_of_;
    Whole whole_;
    std::map<LineKey, std::vector<std::uint64_t>> read_lines_;
    Strings::Id file_ = 0, function_ = 0;

    std::vector<Group> groups_;
    std::vector<std::string> kinds_;
    std::map<std::vector<std::string>, std::uint32_t>
        indices_;  // by the values that identify a group
    std::map<LineKey, std::vector<std::uint64_t>> lines_;
    std::map<std::vector<std::string>, std::uint32_t>
        alike_;              // number of equal groups in the current file
    std::size_t bytes_ = 0;  // memory for counts and names
};

}  // namespace assay
