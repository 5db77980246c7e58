// The groups of one or more events files, whose counts are added up: data objects, types and their
// members, threads; each with its counts and with the lines that these are of.
//
// Groups of several files are one if their kinds, names, outer groups, classes, sizes and offsets
// are the same, and their binaries, and the calls that led to where they were allocated. So are
// those of one file that were allocated alike; others of one file are not, as variables of one
// name.
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

// Profile feeds it.
class Groups {
  public:
    struct Group {
        std::uint32_t parent;  // an index; kNone: it is in none
        std::string kind, name;
        std::vector<std::pair<std::string, std::string>> attributes;
        // Of one that was allocated: the functions that led there, the innermost first.
        std::vector<std::string> callers;
        std::vector<std::uint32_t> inner;   // groups in it, in the order of the files
        std::vector<std::uint64_t> counts;  // with those of the inner ones

        std::string binary;  // the path of the one that has the variable; "" if there is none

        std::string_view attribute(std::string_view key) const;  // "" if it has none
        std::optional<std::uint64_t> number(std::string_view key) const;
    };
    static constexpr std::uint32_t kNone = UINT32_MAX;
    static constexpr std::size_t kMostCallers = 64;
    // Of a source line, counts that belong to a group itself.
    struct Line {
        Strings::Id file, function;
        std::uint32_t line;
        std::vector<std::uint64_t> counts;
    };

    // Groups that all of a file belongs to, besides those that it has.
    struct Whole {
        std::vector<std::uint32_t> groups;  // indices
        bool lines = false;                 // they have the file's lines, too
    };
    using WholeOf =
        std::function<Whole(const events::Header& header, const std::vector<events::Group>& own)>;

    const std::vector<Group>& groups() const { return groups_; }
    // Of all kinds, in the order of the files.
    const std::vector<std::string>& kinds() const { return kinds_; }
    std::vector<Line> lines(std::uint32_t group) const;
    std::string_view text(Strings::Id id) const { return strings_[id]; }

    // --- While files are read.

    // `whole` is called with the header and the groups of the file itself.
    void begin_file(const std::string& path, const events::Header& header, WholeOf whole);
    void location(const events::Location& location);
    void line(std::uint32_t line, Counts counts);
    void add(const events::Group& group);
    // What of a line belongs to a group of the file itself.
    void add_part(std::uint32_t group, std::uint32_t line, Counts counts);
    // By the number of a context in the file: its functions, the innermost first, at most
    // kMostCallers.
    using CallersOf = std::function<std::vector<std::string>(std::uint64_t context)>;
    void end_file(const CallersOf& callers_of);
    // Without counts; its index.
    std::uint32_t add_whole_group(std::string kind, std::string name, std::uint32_t parent);
    // After the last file: adds up what is in inner groups.
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
    // Of the file being read.
    std::string path_;
    events::Header header_;
    std::vector<events::Group> read_;
    WholeOf whole_of_;
    Whole whole_;
    std::map<LineKey, std::vector<std::uint64_t>> read_lines_;
    Strings::Id file_ = 0, function_ = 0;

    std::vector<Group> groups_;
    std::vector<std::string> kinds_;
    std::map<std::vector<std::string>, std::uint32_t> indices_;  // by what groups have in common
    std::map<LineKey, std::vector<std::uint64_t>> lines_;
    std::map<std::vector<std::string>, std::uint32_t> alike_;  // of this file, how many so far
    std::size_t bytes_ = 0;                                    // of the counts and names kept
};

}  // namespace assay
