// The groups of one or more events files, whose counts are added up: data objects, types and their
// members, threads; each with its counts and with the lines that these are of.
//
// Groups of several files are one if their kinds, names, outer groups, classes, sizes and offsets
// are the same, and their binaries, and the calls that led to where they were allocated. So are
// those of one file that were allocated alike; others of one file are not, as variables of one
// name.
#pragma once

#include "framework/events/reader.h"
#include "tools/profile/count_store.h"
#include "tools/profile/strings.h"

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

class GroupProfile final : public events::Handler {
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
    // Before the first file.
    void choose_events(events::EventChoice choice) { choice_ = std::move(choice); }
    // Throws Error if the file is malformed, if its events are not those of the others, or if it
    // has more than any program has. `whole` is called with the file's header and own groups.
    void add_file(const std::string& path, const WholeOf& whole = {});
    // Without counts; its index. Only while a file is added.
    std::uint32_t add_whole_group(std::string kind, std::string name, std::uint32_t parent);
    // After the last one: adds up what is in inner groups.
    void finish();

    const std::vector<Group>& groups() const { return groups_; }
    // Of all kinds, in the order of the files.
    const std::vector<std::string>& kinds() const { return kinds_; }
    std::vector<Line> lines(std::uint32_t group) const;
    std::string_view text(Strings::Id id) const { return strings_[id]; }
    Counts totals() const { return totals_; }

  private:
    struct Context {
        std::uint32_t parent;
        std::string function;
    };
    struct LineKey {
        std::uint32_t group;
        Strings::Id file, function;
        std::uint32_t line;
        bool operator<(const LineKey& other) const {
            return std::tie(group, file, function, line) <
                   std::tie(other.group, other.file, other.function, other.line);
        }
    };

    void start(const events::Header& header) override;
    void location(const events::Location& location) override;
    void line(std::uint32_t line, Counts counts) override;
    void group(const events::Group& group) override;
    void counts_of(std::uint32_t group, std::uint32_t line, Counts counts) override;
    void stack(const events::Stack& stack, Counts counts) override;

    std::vector<std::string> callers_of(const events::Group& group) const;
    std::uint32_t index_of(const events::Group& group, std::uint32_t parent);
    void take_room(std::size_t bytes);
    void add_attributes(Group& to, const events::Group& from);
    void add_line(const LineKey& key, Counts counts);
    void add_kind(const std::string& kind);

    std::string path_, first_path_;
    events::EventChoice choice_;           // after the first file: its events
    events::Header header_, file_header_;  // of the first file, and of the one being read
    std::vector<std::uint64_t> totals_;
    Strings strings_;
    // Of the file being read.
    std::vector<events::Object> binaries_;
    std::vector<events::Group> read_;
    std::vector<Context> contexts_;
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
