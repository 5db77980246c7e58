// Parses an events file (docs/reference/events-file.md) of assay or Cachegrind. The caller reads
// the file and passes blocks of text, cut anywhere. Memory use is bounded by the header and the
// longest line, whatever the file contains.
#pragma once

#include "framework/events/header.h"
#include "framework/events/lexical.h"
#include "framework/events/series.h"

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::events {

inline constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint64_t kMax64 = std::numeric_limits<std::uint64_t>::max();

// The place of counts. `file` contains the source line. `function_file` is the file in which
// `function` was introduced. They differ only in files that mark inlined code with `fi=`.
struct Location {
    std::string_view file, function_file, function;
};

// Receives the content of a file in its order. Arguments are valid only during the call.
class Handler {
  public:
    virtual ~Handler() = default;
    // Called once, before everything else.
    virtual void start(const Header&) {}
    // The file turns out to be a difference of two profiles: a negative count follows. Called only
    // with Accept::kDifferences. All counts so far were below 2^63.
    virtual void turns_into_difference() {}
    // The location of the lines that follow.
    virtual void location(const Location&) {}
    // One count per event. The counts of lines that occur more than once add up.
    virtual void line(std::uint32_t, std::span<const std::uint64_t>) {}
    // A part of the counts of lines already passed.
    struct Instruction {
        std::uint32_t object;
        std::uint64_t address;  // relative to the object
        std::uint32_t line;
    };
    virtual void instruction(const Instruction&, std::span<const std::uint64_t>) {}
    // The values of one instruction. An instruction has at most one list of each name, unless the
    // file was written by hand.
    virtual void values(const Instruction&, const Hotlist&) {}
    // A place where code was inlined. Called before all locations.
    virtual void site(const Site&) {}
    // Called after the lines and instructions of a location. Gives the site of the next `count` of
    // them, in the order in which they were passed. Site 0 means that they are not inlined. Lines
    // and instructions that no call covers are not inlined either.
    virtual void line_sites(std::uint32_t, std::uint64_t /*count*/) {}
    virtual void instruction_sites(std::uint32_t, std::uint64_t /*count*/) {}
    // Called after all sites and before all locations.
    virtual void group(const Group&) {}
    // The object of the header that has the function's code. Called among the lines of that
    // function.
    virtual void binary(std::string_view /*function*/, std::uint32_t /*object*/) {}
    // The name of the function in the object's symbol table, never empty. Called among the lines of
    // that function.
    virtual void linkage(std::string_view /*function*/, std::string_view /*name*/) {}
    // The part of a line's counts that belongs to the group itself. The line has already been
    // passed.
    virtual void counts_of(std::uint32_t /*group*/, std::uint32_t /*line*/,
                           std::span<const std::uint64_t>) {}
    // The counts of all lines by calling context. Called after the lines.
    virtual void stack(const Stack&, std::span<const std::uint64_t>) {}
    // How often the context with this number was entered in the way that it says, and by recursion.
    virtual void calls(std::uint32_t, std::uint64_t) {}
    virtual void recursion(const Recursion&, std::uint64_t) {}

    // Called for Callgrind's files only, before the first instruction of each object. The header
    // that start() receives does not have these objects.
    virtual void object(const Object&) {}
    // Calls from a line of the current location: their number, and their cost including all calls
    // in them. These costs are not part of any total.
    struct Call {
        std::uint32_t line;
        std::string_view callee_file, callee;
        std::uint64_t calls;
    };
    virtual void call(const Call&, std::span<const std::uint64_t>) {}
};

// The kinds of profiles that the caller can process.
enum class Accept : std::uint8_t {
    kProfiles,
    kDifferences,  // profiles also
};

class Parser {
  public:
    // `path` appears in messages: every function throws Error("PATH:LINE: reason (value)").
    Parser(std::string path, Handler& handler, Accept accept = Accept::kProfiles);

    void feed(std::string_view block);
    // The file has ended. Throws Error if it ended too early.
    void finish();

    const Header& header() const { return header_; }
    // Equal to the summary after finish().
    const std::vector<std::uint64_t>& totals() const { return totals_; }

  private:
    enum class State { kDescriptions, kEvents, kExtensions, kBody, kEnd };

    void parse_line(std::string_view line);
    void parse_header(std::string_view line);
    void parse_description(std::string_view text);
    void parse_events(std::string_view text);
    void parse_body(std::string_view line);
    void parse_place(std::string_view line);
    void parse_counts_line(std::string_view line);
    void parse_summary(std::string_view text);
    void parse_extension(std::string_view text);
    void parse_version(std::string_view text);
    void parse_event(std::string_view text);
    void parse_derived(std::string_view text);
    void parse_object(std::string_view text);
    void parse_instruction(std::string_view text);
    void parse_values(std::string_view text);
    Hotlist parse_hotlist(std::string_view text);
    HotValue parse_hot_value(std::string_view text);
    void parse_site(std::string_view text);
    enum class Rows : std::uint8_t { kLines, kInstructions };
    void parse_sites(std::string_view text, Rows rows);
    void parse_group(std::string_view text);
    void parse_binary(std::string_view text);
    void parse_linkage(std::string_view text);
    void parse_counts_of(std::string_view text);
    void parse_stack(std::string_view text);
    void parse_calls(std::string_view text);
    void parse_recursion(std::string_view text);
    void parse_series(std::string_view text);
    void parse_series_attribute(Series& series, const std::string& key, const std::string& value);
    void parse_axis(std::string_view text, bool is_x);
    void parse_points(std::string_view text);
    // The series that the current lines describe.
    Series& open_series(std::string_view text);
    // Call it when the lines about the last series have ended.
    void end_series();
    // Reads how and where a context was entered.
    void take_entry(std::string_view& text, Stack& stack);
    // Reads the number of a context that is known.
    std::uint32_t known_context(std::string_view number);

    // OBJECT:0xADDRESS and :LINE, which can be missing.
    void parse_place_of_call(std::string_view text, std::uint32_t& object, std::uint64_t& address,
                             std::uint32_t& line);
    // OBJECT:0xADDRESS
    std::pair<std::uint32_t, std::uint64_t> parse_place_in_object(std::string_view text);
    // Takes OBJECT:0xADDRESS and LINE from the front of `text`.
    Handler::Instruction take_instruction(std::string_view& text);
    void announce_location();
    void start_body();
    // Fills counts_ from the words of `text` and missing counts with 0. Returns the number of
    // words.
    std::size_t parse_counts(std::string_view text);
    std::uint64_t parse_count(const char*& at, const char* end);
    void add_counts(std::vector<std::uint64_t>& totals);
    // Throws if counts of instructions or of contexts exceed the summary, whose parts they are.
    void check_part(const std::vector<std::uint64_t>& totals, std::string_view what) const;
    void check_difference();
    void turn_into_difference(std::string_view count);
    std::uint64_t parse_number(std::string_view text, std::uint64_t largest, int base = 10);
    [[noreturn]] void fail(std::string_view reason) const;
    [[noreturn]] void fail(std::string_view reason, std::string_view value) const;

    std::string path_;
    Handler& handler_;
    Accept accept_;
    LineCutter lines_;
    std::uint64_t line_number_ = 0;
    State state_ = State::kDescriptions;
    unsigned version_ = 0;  // 0: Cachegrind's own format
    Header header_;
    std::vector<std::uint64_t> counts_, totals_, instruction_totals_, stack_totals_;
    std::uint32_t stacks_ = 0, sites_ = 0;
    struct KnownGroup {
        std::uint32_t kind;   // an index
        std::uint32_t depth;  // number of groups that contain it, itself included
    };
    std::vector<KnownGroup> groups_;  // by number, from 0
    std::vector<std::string> kinds_;
    std::vector<std::vector<std::uint64_t>> kind_totals_;
    std::array<std::uint64_t, 2> without_site_{};  // rows of this location whose site may follow
    std::string file_, function_file_, function_;
    bool has_file_ = false, has_function_ = false;
    bool location_changed_ = false;
};

}  // namespace assay::events
