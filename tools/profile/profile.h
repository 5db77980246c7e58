// One or more events files, read once and added up, or the difference of two sides. What is kept of
// them is chosen: a tool that needs functions pays for functions only.
#pragma once

#include "framework/events/reader.h"
#include "tools/expressions/expressions.h"
#include "tools/profile/count_store.h"
#include "tools/profile/functions.h"
#include "tools/profile/groups.h"
#include "tools/profile/heads.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay {

// What is kept of the files, besides what their heads say.
namespace parts {
inline constexpr unsigned kFunctions = 1;     // counts by function and source file
inline constexpr unsigned kLines = 2;         // and the calls through which they were inlined
inline constexpr unsigned kInstructions = 4;  // the same
inline constexpr unsigned kValues = 8;
inline constexpr unsigned kContexts = 16;  // and calls without contexts
inline constexpr unsigned kGroups = 32;    // needs contexts
inline constexpr unsigned kSeries = 64;
// What can be written as an events file again, but for groups.
inline constexpr unsigned kRows = kLines | kInstructions | kValues | kContexts | kSeries;
}  // namespace parts

// A line of a source file, whatever functions it is of.
struct SourceLine {
    std::uint32_t line;
    std::vector<std::uint64_t> counts;
};

// An instruction of a source line.
struct SourceInstruction {
    std::uint32_t line, object;
    std::uint64_t address;
    std::vector<std::uint64_t> counts;
};

// What of files is wanted beyond the counts of functions.
struct Details {
    std::vector<bool> files;  // source files, by index
    bool instructions = false;
};

class Profile final : public events::Handler {
  public:
    // Files are refused if their counts take more than `most_bytes`, and as much again while they
    // are added up.
    explicit Profile(unsigned kept, std::size_t most_bytes = kMostBytes)
        : kept_(kept), most_bytes_(most_bytes) {}
    Profile(const Profile&) = delete;
    Profile& operator=(const Profile&) = delete;
    // Of functions and source files, names after the replacements.
    Profile(unsigned kept, std::vector<Replacement> file_names,
            std::vector<Replacement> function_names)
        : kept_(kept),
          most_bytes_(kMostBytes),
          by_source_(std::move(file_names), std::move(function_names)) {}

    // As Location in parser.h.
    struct Place {
        Strings::Id file, function_file, function;
        bool operator==(const Place&) const = default;
    };
    struct Line {
        std::uint32_t place, line;
        std::uint32_t site;  // 0 in lines(); where it was inlined, in lines_by_site()
        CountStore::Row row;
    };
    struct Instruction {
        std::uint32_t place, line, site, object;
        std::uint64_t address;
        CountStore::Row row;
    };
    // A call that was inlined. The site 0 stands for none. The parent of another comes before it.
    struct Site {
        std::uint32_t parent, line;  // as in events::Site
        Strings::Id file, function;
        std::uint32_t depth;  // how many sites lead to it, itself included
    };
    // Whose source lines are in one file or, where code is inlined into it, in several.
    struct Function {
        Strings::Id file, name;
        std::uint32_t first_place, end_place;
    };
    // The context 0 is outside of all calls. The parent of another comes before it.
    struct Context {
        std::uint32_t parent;
        events::StackKind kind;
        std::uint32_t object;  // of the call; address and line too, as in events::Stack
        std::uint64_t address;
        std::uint32_t line;
        Strings::Id function;
        CountStore::Row row;
    };
    // A call without its stack: Callgrind's files have calls, but no contexts.
    struct KnownCall {
        Strings::Id file, function;  // the caller's; the file is that of the function
        std::uint32_t line;          // of the call
        Strings::Id callee_file, callee;
        bool operator<(const KnownCall& other) const {
            return std::tie(file, function, line, callee_file, callee) <
                   std::tie(other.file, other.function, other.line, other.callee_file,
                            other.callee);
        }
    };
    struct CallCosts {
        std::uint64_t number = 0;
        std::vector<std::uint64_t> inclusive;
    };
    struct Values {
        std::uint32_t place, line, object;
        std::uint64_t address;
        events::Hotlist list;
    };

    // Before the first file.
    void choose_events(events::EventChoice choice) { choice_ = std::move(choice); }
    // Before the first file. The other profile must outlive the reading.
    void require_events_of(const Profile& other) { same_events_as_ = &other; }
    // Has `beside`, which must outlive the reading, receive what is read of the files that are
    // added, too, but for instructions and objects; the counts of a line with the sign of its side.
    void pass_on(events::Handler& beside) { beside_ = &beside; }
    // Before the first file: files may be differences, which are refused otherwise.
    void accept_differences() { accept_ = events::Accept::kDifferences; }
    // Throws Error if the file is malformed, if its events are not those of the others, or if it
    // has more than any program has. `whole`: see Groups.
    void add_file(const std::string& path, Side side = Side::kNew, Groups::WholeOf whole = {});
    // Without counts; its index. Only while a file is added.
    std::uint32_t add_whole_group(std::string kind, std::string name, std::uint32_t parent) {
        return groups_.add_whole_group(std::move(kind), std::move(name), parent);
    }
    // Of a difference, after the last file: see FunctionTable.
    void match_functions() { by_source_.match(); }
    // After finish(), with functions: reads the files again for lines and instructions of some
    // source files, unless it keeps all. Throws Error also if one has changed since.
    void read_details(const Details& details);
    // After the last file: adds up and sorts what is kept besides functions.
    void finish();
    // Throws Error if any of the files had neither counts nor values of instructions.
    void check_instructions() const;

    // --- What files say of themselves.

    // Of the first file. It is a difference if anything was subtracted.
    const events::Header& header() const { return header_; }
    const Heads& heads() const { return heads_; }
    const std::vector<std::string>& paths() const { return paths_; }
    const std::vector<std::string>& commands() const { return heads_.commands(); }
    // What makes a file incomplete, with its name.
    const std::vector<std::string>& incomplete() const { return heads_.incomplete(); }
    const std::vector<events::Event>& events() const { return header_.events; }
    const std::vector<events::Derived>& derived() const { return header_.derived; }
    const std::vector<events::Object>& objects() const { return heads_.objects(); }
    Counts totals() const { return totals_; }

    // --- Functions, and details of them.

    const FunctionTable& by_source() const { return by_source_; }
    // Of a source file, in ascending order. What is not kept, and no detail, is missing.
    std::vector<SourceLine> source_lines(std::uint32_t file) const;
    std::vector<SourceInstruction> source_instructions(std::uint32_t file) const;

    // --- After finish().

    // Throws Error, with both lists, if the other's are different.
    void check_same_events(const Profile& other) const;

    const std::vector<events::Series>& series() const { return series_.series(); }
    // How many more there are than an events file has.
    std::size_t series_left_out() const { return series_.left_out(); }

    const Strings& strings() const { return strings_; }
    std::string_view text(Strings::Id id) const { return strings_[id]; }
    const CountStore& counts() const { return counts_; }

    // Functions by file and name; places by function; lines by place and line, values in the same
    // order and by address; instructions by place, line, site and address.
    std::span<const Function> functions() const { return functions_; }
    std::span<const Place> places() const { return places_; }
    std::span<const Line> lines(std::uint32_t place) const;
    std::span<const Line> lines() const { return lines_; }
    // The same, but what was inlined at different sites apart, in their order.
    std::span<const Line> lines_by_site(std::uint32_t place) const;
    std::span<const Line> lines_by_site() const { return has_sites() ? lines_by_site_ : lines_; }
    std::span<const Instruction> instructions() const { return instructions_; }
    std::span<const Instruction> instructions(std::uint32_t place) const;
    std::span<const Values> values() const { return values_; }
    std::span<const Values> values(std::uint32_t place) const;

    std::span<const Site> sites() const { return sites_; }
    bool has_sites() const { return sites_.size() > 1; }
    // From the call in the function that was not inlined to this site.
    std::vector<std::uint32_t> sites_to(std::uint32_t site) const;

    std::span<const Context> contexts() const { return contexts_; }
    bool has_contexts() const { return contexts_.size() > 1; }
    const std::map<KnownCall, CallCosts>& calls() const { return calls_; }
    // As the linker knows the function of that name; empty if the files do not say. Where functions
    // of one name have several, the first in the order of bytes.
    std::string_view linkage_name(Strings::Id function) const;
    // Of all functions that have any, by their names.
    std::vector<std::pair<std::string_view, std::string_view>> linkage_names() const;
    // Whose the counts are.
    const Groups& groups() const { return groups_; }
    // What of each event is counted by context.
    Counts context_totals() const { return context_totals_; }
    // The function of that name. A function that has lines in several files, because it includes
    // code that is no function, is several here; then, as for different functions of one name, the
    // one with the most lines. Contexts know no more than a name.
    std::optional<std::uint32_t> function_named(Strings::Id name) const;
    // The line of the call that leads to a context; 0 if it is unknown.
    std::uint32_t call_line(const Context& context) const;
    // The instruction, if the profile has counts by instruction.
    const Instruction* instruction_at(std::uint32_t object, std::uint64_t address) const;

  private:
    void start(const events::Header& header) override;
    void turns_into_difference() override;
    void object(const events::Object& object) override;
    void location(const events::Location& location) override;
    void line(std::uint32_t line, Counts counts) override;
    void instruction(const events::Handler::Instruction& at, Counts counts) override;
    void values(const events::Handler::Instruction& at, const events::Hotlist& list) override;
    void site(const events::Site& site) override;
    void line_sites(std::uint32_t site, std::uint64_t count) override;
    void instruction_sites(std::uint32_t site, std::uint64_t count) override;
    void group(const events::Group& group) override;
    void counts_of(std::uint32_t group, std::uint32_t line, Counts counts) override;
    void linkage(std::string_view function, std::string_view name) override;
    void stack(const events::Stack& stack, Counts counts) override;
    void call(const Call& call, Counts inclusive) override;

    bool keeps(unsigned parts) const { return (kept_ & parts) != 0; }
    // Of the location that is being read.
    bool takes(unsigned parts) const { return !skips_ && (taken_ & parts) != 0; }
    void add_up_rows();
    template <typename Use>
    void for_each_place_in(std::uint32_t source_file, const Use& use) const;
    std::vector<std::uint64_t> counts_of(CountStore::Row row) const;
    void start_first(const events::Header& header);
    void add_totals(Counts totals);
    std::vector<std::string> callers_of(std::uint64_t context) const;
    // Of rows of the current location whose sites are not known yet.
    void check_location(std::size_t rows) const;
    std::vector<std::uint32_t> ranks_of_files() const;
    void sort_places();
    void find_functions();
    // Adds up once there are enough new rows; so a file takes memory for what is different in it.
    // Not where the site of a row may follow: that names rows by their order.
    void make_room();
    bool sites_may_follow() const { return site_map_.size() > 1; }
    // Sorts rows, and adds up those of the same place.
    void compact();
    template <typename Row>
    void add_up(std::vector<Row>& rows, CountStore& sums) const;
    void add_up_values();
    void add_up_contexts(CountStore& sums);
    // What is kept, but for the names.
    std::size_t bytes() const;
    void add_up_sites();
    void index_rows();

    struct PlaceHash {
        std::size_t operator()(const Place& place) const;
    };

    const unsigned kept_;
    const std::size_t most_bytes_;
    events::EventChoice choice_;  // after the first file: its events
    events::Accept accept_ = events::Accept::kProfiles;
    events::Handler* beside_ = nullptr;
    const Profile* same_events_as_ = nullptr;
    std::string path_;  // of the file being read
    Side side_ = Side::kNew;
    Signed signed_;
    bool of_differences_ = false;  // the files themselves
    events::Header header_;
    std::vector<std::string> paths_, without_instructions_;
    bool has_instructions_ = false;  // the file being read
    Heads heads_;
    MergedSeries series_;
    std::vector<std::uint32_t> context_map_;  // of the file being read
    std::vector<std::uint32_t> site_map_;     // of the file being read
    std::vector<std::uint64_t> totals_, context_totals_;

    FunctionTable by_source_{{}, {}};
    std::vector<std::uint32_t> source_files_;  // by place, if there are functions
    struct File {
        std::string path;
        Side side;
        std::vector<std::uint64_t> totals;
        bool can_be_read_again;
    };
    std::vector<File> read_;
    const Details* details_ = nullptr;  // that files are read again for
    // What is taken of a file: of one that cannot be read again, such as a pipe, all details too.
    unsigned taken_ = 0;
    bool skips_ = false;  // the location: it has no details that are wanted
    Groups groups_;
    Groups::WholeOf whole_of_;  // of the file being read

    Strings strings_;
    CountStore counts_;
    std::vector<Place> places_;
    std::unordered_map<Place, std::uint32_t, PlaceHash> place_indices_;
    std::uint32_t place_ = 0;
    std::vector<Line> lines_;
    std::vector<Line> lines_by_site_;  // empty if they are no others than lines_
    std::vector<Instruction> instructions_;
    std::size_t next_line_ = 0, next_instruction_ = 0;  // whose sites may follow
    std::vector<Values> values_;
    std::size_t rows_when_compacted_ = 0, rows_since_ = 0;
    bool contexts_came_again_ = false;  // since then
    std::vector<Function> functions_;
    // Where those of a place begin.
    std::vector<std::size_t> place_lines_, place_lines_by_site_, place_instructions_, place_values_;
    std::vector<std::uint32_t> by_address_;  // instructions

    std::vector<Site> sites_ = {{}};
    std::map<std::tuple<std::uint32_t, std::uint32_t, Strings::Id, Strings::Id>, std::uint32_t>
        site_indices_;
    std::vector<Context> contexts_ = {{}};
    std::map<std::tuple<std::uint32_t, events::StackKind, std::uint32_t, std::uint64_t,
                        std::uint32_t, Strings::Id>,
             std::uint32_t>
        context_indices_;
    std::map<KnownCall, CallCosts> calls_;
    std::unordered_map<Strings::Id, std::uint32_t> functions_by_name_;
    std::unordered_map<Strings::Id, Strings::Id> linkage_names_;  // by name
};

}  // namespace assay
