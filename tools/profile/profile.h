// Reads and adds up events files, or subtracts one side from another. The caller chooses the parts
// to keep, so that a tool that needs only functions stays small.
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

// Parts of the files to keep. Heads are always kept.
namespace parts {
inline constexpr unsigned kFunctions = 1;     // counts by function and source file
inline constexpr unsigned kLines = 2;         // with the calls through which they were inlined
inline constexpr unsigned kInstructions = 4;  // with these calls also
inline constexpr unsigned kValues = 8;
inline constexpr unsigned kContexts = 16;  // includes calls without contexts
inline constexpr unsigned kGroups = 32;    // requires kContexts
inline constexpr unsigned kSeries = 64;
// All parts of an events file except groups.
inline constexpr unsigned kRows = kLines | kInstructions | kValues | kContexts | kSeries;
}  // namespace parts

// A line of a source file, added up over its functions.
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

// Details to read in addition to the counts of functions.
struct Details {
    std::vector<bool> files;  // source files, by index
    bool instructions = false;
};

class Profile final : public events::Handler {
  public:
    // Files are rejected if their counts take more than `most_bytes`. Adding up temporarily takes
    // as much memory again.
    explicit Profile(unsigned kept, std::size_t most_bytes = kMostBytes)
        : kept_(kept), most_bytes_(most_bytes) {}
    Profile(const Profile&) = delete;
    Profile& operator=(const Profile&) = delete;
    // Replaces names of functions and source files in the FunctionTable.
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
        std::uint32_t site;  // 0 in lines(); the inlining site in lines_by_site()
        CountStore::Row row;
    };
    struct Instruction {
        std::uint32_t place, line, site, object;
        std::uint64_t address;
        CountStore::Row row;
    };
    // A call that was inlined. Site 0 stands for no call. Parents precede their sites.
    struct Site {
        std::uint32_t parent, line;  // as in events::Site
        Strings::Id file, function;
        std::uint32_t depth;  // how many sites lead to it, itself included
    };
    // A function. It has several places if code from other files is inlined into it.
    struct Function {
        Strings::Id file, name;
        std::uint32_t first_place, end_place;
    };
    // Context 0 is outside of all calls. Parents precede their contexts.
    struct Context {
        std::uint32_t parent;
        events::StackKind kind;
        std::uint32_t object;  // object, address and line of the call, as in events::Stack
        std::uint64_t address;
        std::uint32_t line;
        Strings::Id function;
        CountStore::Row row;
        std::uint64_t calls = 0;  // how often the context was entered; 0 if that is not known
    };
    // Calls in the context `caller` that went on in `context`, an earlier call of the function.
    struct Recursion {
        std::uint32_t context, caller;
        std::uint32_t object;  // object, address and line of the call, as in events::Recursion
        std::uint64_t address;
        std::uint32_t line;
        // clang-tidy takes the 0 of a comparison for a pointer.
        auto operator<=>(const Recursion&) const = default;  // NOLINT(modernize-use-nullptr)
    };
    // A call without its stack: Callgrind's files have calls, but no contexts.
    struct KnownCall {
        Strings::Id file, function;  // of the caller; the file of the function
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
    // Rejects files whose events differ from those of `other`. Call it before the first file.
    // `other` must exist until all files are read.
    void require_events_of(const Profile& other) { same_events_as_ = &other; }
    // Passes the contents of added files on to `beside`, except instructions and objects. Counts of
    // lines have the sign of their side. `beside` must exist until all files are read.
    void pass_on(events::Handler& beside) { beside_ = &beside; }
    // Accepts files that are differences. Call it before the first file.
    void accept_differences() { accept_ = events::Accept::kDifferences; }
    // Adds a file. `whole` is described at Groups. Throws Error if the file is malformed or
    // implausibly large, or if its events differ from those of the other files.
    void add_file(const std::string& path, Side side = Side::kNew, Groups::WholeOf whole = {});
    // Adds a group without counts. Returns its index. Call it only while a file is added.
    std::uint32_t add_whole_group(std::string kind, std::string name, std::uint32_t parent) {
        return groups_.add_whole_group(std::move(kind), std::move(name), parent);
    }
    // After the last file of a difference: matches functions of both sides; see FunctionTable.
    void match_functions() { by_source_.match(); }
    // After finish(), requires kFunctions: reads the files again for lines and instructions of some
    // source files, unless all are kept. Throws Error also if a file has changed.
    void read_details(const Details& details);
    // Call it after the last file. Adds up and sorts the parts kept besides functions.
    void finish();
    // Throws Error if a file had neither counts nor values of instructions.
    void check_instructions() const;

    // --- Heads of the files.

    // The header of the first file. It is a difference if any counts were subtracted.
    const events::Header& header() const { return header_; }
    const Heads& heads() const { return heads_; }
    const std::vector<std::string>& paths() const { return paths_; }
    const std::vector<std::string>& commands() const { return heads_.commands(); }
    // Reasons why files are incomplete, with their names.
    const std::vector<std::string>& incomplete() const { return heads_.incomplete(); }
    const std::vector<events::Event>& events() const { return header_.events; }
    const std::vector<events::Derived>& derived() const { return header_.derived; }
    const std::vector<events::Object>& objects() const { return heads_.objects(); }
    Counts totals() const { return totals_; }

    // --- Functions, and details of them.

    const FunctionTable& by_source() const { return by_source_; }
    // Lines of a source file, in ascending order. Only from kept parts and details.
    std::vector<SourceLine> source_lines(std::uint32_t file) const;
    std::vector<SourceInstruction> source_instructions(std::uint32_t file) const;

    // --- After finish().

    // Throws Error that lists both if the other profile has different events.
    void check_same_events(const Profile& other) const;

    const std::vector<events::Series>& series() const { return series_.series(); }
    // Number of series beyond the limit of an events file.
    std::size_t series_left_out() const { return series_.left_out(); }

    const Strings& strings() const { return strings_; }
    std::string_view text(Strings::Id id) const { return strings_[id]; }
    const CountStore& counts() const { return counts_; }

    // Order of rows: functions by file and name; places by function; lines by place and line;
    // values also by address; instructions by place, line, site and address.
    std::span<const Function> functions() const { return functions_; }
    std::span<const Place> places() const { return places_; }
    std::span<const Line> lines(std::uint32_t place) const;
    std::span<const Line> lines() const { return lines_; }
    // Lines with a separate row for each inlining site, ordered by site.
    std::span<const Line> lines_by_site(std::uint32_t place) const;
    std::span<const Line> lines_by_site() const { return has_sites() ? lines_by_site_ : lines_; }
    std::span<const Instruction> instructions() const { return instructions_; }
    std::span<const Instruction> instructions(std::uint32_t place) const;
    std::span<const Values> values() const { return values_; }
    std::span<const Values> values(std::uint32_t place) const;

    std::span<const Site> sites() const { return sites_; }
    bool has_sites() const { return sites_.size() > 1; }
    // The inlined calls from the function that was not inlined to this site.
    std::vector<std::uint32_t> sites_to(std::uint32_t site) const;

    std::span<const Context> contexts() const { return contexts_; }
    bool has_contexts() const { return contexts_.size() > 1; }
    const std::map<KnownCall, CallCosts>& calls() const { return calls_; }
    // True if a file tells how often contexts were entered.
    bool counts_calls() const { return counts_calls_; }
    // The numbers of recursive calls.
    const std::map<Recursion, std::uint64_t>& recursions() const { return recursions_; }
    // The linkage name of a function; empty if the files do not have it. If functions of one name
    // have several linkage names, the first in byte order.
    std::string_view linkage_name(Strings::Id function) const;
    // The object with the function's code, as an index of objects(). No value if the files do not
    // have it. If several objects have the function, the first of them.
    std::optional<std::uint32_t> binary_of(Strings::Id function) const;
    // Names of functions with their linkage names, ordered by name.
    std::vector<std::pair<std::string_view, std::string_view>> linkage_names() const;
    const Groups& groups() const { return groups_; }
    // Sum of the counts in contexts, by event.
    Counts context_totals() const { return context_totals_; }
    // The function of that name, for contexts, which have only names. If several functions have
    // that name, the one with the most lines. A function that includes code from files without
    // functions is also several functions here.
    std::optional<std::uint32_t> function_named(Strings::Id name) const;
    // The line of the call that leads to a context; 0 if unknown.
    std::uint32_t call_line(const Context& context) const;
    // The instruction at an address; null if the profile does not have it.
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
    void binary(std::string_view function, std::uint32_t object) override;
    void linkage(std::string_view function, std::string_view name) override;
    void stack(const events::Stack& stack, Counts counts) override;
    void calls(std::uint32_t context, std::uint64_t number) override;
    void recursion(const events::Recursion& recursion, std::uint64_t number) override;
    void call(const Call& call, Counts inclusive) override;

    bool keeps(unsigned parts) const { return (kept_ & parts) != 0; }
    // True if these parts of the current location are kept.
    bool takes(unsigned parts) const { return !skips_ && (taken_ & parts) != 0; }
    void add_up_rows();
    template <typename Use>
    void for_each_place_in(std::uint32_t source_file, const Use& use) const;
    std::vector<std::uint64_t> counts_of(CountStore::Row row) const;
    void start_first(const events::Header& header);
    void add_totals(Counts totals);
    std::vector<std::string> callers_of(std::uint64_t context) const;
    // Throws Error if too many rows of the current location wait for their sites.
    void check_location(std::size_t rows) const;
    std::vector<std::uint32_t> ranks_of_files() const;
    void sort_places();
    void find_functions();
    // Adds up rows once there are enough new ones, so that memory depends on the number of
    // different rows. Do not call it while line_sites() may refer to rows by their order.
    void make_room();
    bool sites_may_follow() const { return site_map_.size() > 1; }
    // Sorts rows, and adds up rows with equal keys.
    void compact();
    template <typename Row>
    void add_up(std::vector<Row>& rows, CountStore& sums) const;
    void add_up_values();
    void add_up_contexts(CountStore& sums);
    // Memory for the kept parts, without names.
    std::size_t bytes() const;
    void add_up_sites();
    void index_rows();

    struct PlaceHash {
        std::size_t operator()(const Place& place) const;
    };

    const unsigned kept_;
    const std::size_t most_bytes_;
    events::EventChoice choice_{.estimates_cycles = true};
    events::Accept accept_ = events::Accept::kProfiles;
    events::Handler* beside_ = nullptr;
    const Profile* same_events_as_ = nullptr;
    std::string path_;  // path of the file being read
    Side side_ = Side::kNew;
    Signed signed_;
    bool of_differences_ = false;  // true if the files themselves are differences
    events::Header header_;
    std::vector<std::string> paths_, without_instructions_;
    bool has_instructions_ = false;  // of the file being read
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
    const Details* details_ = nullptr;  // details to read in a second pass, or null
    // Parts to take from the current file. A file that cannot be read again, such as a pipe, gives
    // all details at once.
    unsigned taken_ = 0;
    bool skips_ = false;  // skip the location, because no details of it are needed
    Groups groups_;
    Groups::WholeOf whole_of_;  // of the file being read

    Strings strings_;
    CountStore counts_;
    std::vector<Place> places_;
    std::unordered_map<Place, std::uint32_t, PlaceHash> place_indices_;
    std::uint32_t place_ = 0;
    std::vector<Line> lines_;
    std::vector<Line> lines_by_site_;  // empty if equal to lines_
    std::vector<Instruction> instructions_;
    std::size_t next_line_ = 0, next_instruction_ = 0;  // next rows whose sites may follow
    std::vector<Values> values_;
    std::size_t rows_when_compacted_ = 0, rows_since_ = 0;
    bool contexts_came_again_ = false;  // since the last compact()
    std::vector<Function> functions_;
    // Index of the first row of each place.
    std::vector<std::size_t> place_lines_, place_lines_by_site_, place_instructions_, place_values_;
    std::vector<std::uint32_t> by_address_;  // indices of instructions, ordered by address

    std::vector<Site> sites_ = {{}};
    std::map<std::tuple<std::uint32_t, std::uint32_t, Strings::Id, Strings::Id>, std::uint32_t>
        site_indices_;
    std::vector<Context> contexts_ = {{}};
    std::map<std::tuple<std::uint32_t, events::StackKind, std::uint32_t, std::uint64_t,
                        std::uint32_t, Strings::Id>,
             std::uint32_t>
        context_indices_;
    std::map<KnownCall, CallCosts> calls_;
    bool counts_calls_ = false;
    std::map<Recursion, std::uint64_t> recursions_;
    std::unordered_map<Strings::Id, std::uint32_t> functions_by_name_;
    std::unordered_map<Strings::Id, Strings::Id> linkage_names_;  // by name
    std::unordered_map<Strings::Id, std::uint32_t> binaries_;     // objects by name of function
};

}  // namespace assay
