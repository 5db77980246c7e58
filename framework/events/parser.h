// Parses an events file (docs/reference/events-file.md), assay's or Cachegrind's, without doing any
// input itself: it is fed with blocks of text, cut anywhere. Memory use is bounded by the header
// and the longest line, whatever the file contains.
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

// The largest numbers that fit in 32 and 64 bits.
inline constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::uint64_t kMax64 = std::numeric_limits<std::uint64_t>::max();

// Where counts belong. `file` contains the source line; `function_file` is the file that
// `function` was introduced in, which differs only in files that name inlined code by `fi=`.
struct Location {
    std::string_view file, function_file, function;
};

// Receives what a parser reads, in the order of the file. What is passed is valid during the call.
class Handler {
  public:
    virtual ~Handler() = default;
    // Once, before anything else.
    virtual void start(const Header&) {}
    // The file is a difference of two profiles, which it does not say: a negative count follows.
    // Only with Accept::kDifferences. Counts so far were below 2^63.
    virtual void turns_into_difference() {}
    // Of the lines that follow.
    virtual void location(const Location&) {}
    // One count per event; lines may occur more than once and then add up.
    virtual void line(std::uint32_t, std::span<const std::uint64_t>) {}
    // The breakdown of lines already passed.
    struct Instruction {
        std::uint32_t object;
        std::uint64_t address;  // relative to the object
        std::uint32_t line;
    };
    virtual void instruction(const Instruction&, std::span<const std::uint64_t>) {}
    // The values of one instruction. There is at most one list of a name for an instruction, unless
    // the file was made by hand.
    virtual void values(const Instruction&, const Hotlist&) {}
    // Where code was inlined, before all locations.
    virtual void site(const Site&) {}
    // Of the lines and the instructions of a location, after them: the site of the next `count`, in
    // the order in which they were passed on; 0: they are not inlined code. Nor are those left
    // over.
    virtual void line_sites(std::uint32_t, std::uint64_t /*count*/) {}
    virtual void instruction_sites(std::uint32_t, std::uint64_t /*count*/) {}
    // Before all locations, behind sites.
    virtual void group(const Group&) {}
    // Among the lines of that function: its name as the linker knows it, which is not empty.
    virtual void linkage(std::string_view /*function*/, std::string_view /*name*/) {}
    // The breakdown of a line already passed: what belongs to a group itself.
    virtual void counts_of(std::uint32_t /*group*/, std::uint32_t /*line*/,
                           std::span<const std::uint64_t>) {}
    // The breakdown of all lines by calling context, after them.
    virtual void stack(const Stack&, std::span<const std::uint64_t>) {}

    // Of Callgrind's files only. Their objects are not in the header that start() receives: each
    // is passed before the first instruction in it.
    virtual void object(const Object&) {}
    // Calls from a line of the current location: how many, and what they cost with all that they
    // called in turn. No part of any total.
    struct Call {
        std::uint32_t line;
        std::string_view callee_file, callee;
        std::uint64_t calls;
    };
    virtual void call(const Call&, std::span<const std::uint64_t>) {}
};

// What a reader can make sense of.
enum class Accept : std::uint8_t {
    kProfiles,
    kDifferences,  // profiles too
};

class Parser {
  public:
    // The path is for messages: every function throws Error("PATH:LINE: reason (value)").
    Parser(std::string path, Handler& handler, Accept accept = Accept::kProfiles);

    void feed(std::string_view block);
    // The file has ended. Throws if that is too early.
    void finish();

    const Header& header() const { return header_; }
    // Equal to the summary once finish() has returned.
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
    void parse_linkage(std::string_view text);
    void parse_counts_of(std::string_view text);
    void parse_stack(std::string_view text);
    void parse_series(std::string_view text);
    void parse_series_attribute(Series& series, const std::string& key, const std::string& value);
    void parse_axis(std::string_view text, bool is_x);
    void parse_points(std::string_view text);
    // The series that lines are about now.
    Series& open_series(std::string_view text);
    // No more lines are about the last series.
    void end_series();
    // How and where a context was entered.
    void take_entry(std::string_view& text, Stack& stack);

    // OBJECT:0xADDRESS
    std::pair<std::uint32_t, std::uint64_t> parse_place_in_object(std::string_view text);
    // Takes OBJECT:0xADDRESS and LINE from the front of `text`.
    Handler::Instruction take_instruction(std::string_view& text);
    void announce_location();
    void start_body();
    // Fills counts_ from the words of `text`, missing ones with 0; returns how many there were.
    std::size_t parse_counts(std::string_view text);
    std::uint64_t parse_count(const char*& at, const char* end);
    void add_counts(std::vector<std::uint64_t>& totals);
    // Counts of instructions and of contexts are parts of the summary.
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
        std::uint32_t depth;  // how many it is in, itself included
    };
    std::vector<KnownGroup> groups_;  // by number, from 0
    std::vector<std::string> kinds_;
    std::vector<std::vector<std::uint64_t>> kind_totals_;
    std::array<std::uint64_t, 2> without_site_{};  // Rows of this location whose site may follow
    std::string file_, function_file_, function_;
    bool has_file_ = false, has_function_ = false;
    bool location_changed_ = false;
};

}  // namespace assay::events
