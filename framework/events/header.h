// The header of an events file (docs/reference/events-file.md), for its writer and its readers.
#pragma once

#include "framework/events/series.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::events {

inline constexpr unsigned kFormatVersion = 1;
inline constexpr std::size_t kMaxEvents = 256;
inline constexpr std::size_t kMaxHotValues = 1024;  // of one instruction
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

struct Event {
    std::string name;         // letters, digits, `_`, `-` and `.`; a letter first
    std::string description;  // may be empty
    std::string unit;         // plural noun; may be empty
    std::string profiler;     // which profiler declared it; may be empty
    // Of the event kCycles, which the reader calculates: how. Otherwise empty.
    std::string formula = {};
};

// The figure that estimates cycles. The reader makes it an event if it is a sum of events times
// whole numbers.
inline constexpr std::string_view kCycles = "Cy";

// Descriptions of counts that are estimates.
inline constexpr std::string_view kSampled = "Sampled", kSamplingError = "Error, 95 % confidence";

// A figure over event totals, such as {"D1 miss rate", "(D1mr + D1mw) / (Dr + Dw)", "%"}. See
// formula.h.
struct Derived {
    std::string name, formula, unit;
};

struct Object {
    std::string path;
    std::string build_id;  // lower-case hexadecimal, or empty
    // The address at which the process had it, minus the link-time address. No value if that is
    // unknown or changed during the run.
    std::optional<std::uint64_t> load = {};
};

// How a context was entered.
enum class StackKind : std::uint8_t {
    kCall,
    kHandler,  // a handler of a signal that interrupted the parent
    kInlined,  // a call that the compiler replaced by the function's code
    kJumped,   // by a jump, such as a tail call
};
// True if the instruction that entered the context is known.
constexpr bool has_place(StackKind kind) {
    return kind == StackKind::kCall || kind == StackKind::kHandler;
}

// A calling context: the stack down to one function. Its counts exclude those of the contexts in
// it.
struct Stack {
    std::uint32_t number, parent;  // numbers go up from 1; the parent's is lower, or 0 outside of
                                   // all calls
    StackKind kind;
    std::uint32_t object;   // of the call, as an index in Header::objects; only with has_place()
    std::uint64_t address;  // of the call, relative to the object; only with has_place()
    std::uint32_t line;     // of the call, in the source of the parent's function; 0 if unknown
    std::string_view function;
};

// Calls in one context that were recursive: the counts went on in another context.
struct Recursion {
    std::uint32_t context, caller;  // numbers of the contexts: where it went on, and of the call
    std::uint32_t object;           // of the call, as in Stack
    std::uint64_t address;
    std::uint32_t line;
};

// An inlined call: the compiler replaced the call by the function's code.
struct Site {
    std::uint32_t number, parent;     // numbers go up from 1; the parent's, which is lower, is the
                                      // site that inlined the function with the call; 0 without one
    std::uint32_t line;               // of the call; 0 if unknown
    std::string_view file, function;  // of the call, not of the called function
};

// An owner of counts: an object of the data, a member of a type, or a thread. The groups of one
// kind break down the counts of lines.
struct Group {
    std::uint32_t number, parent;  // numbers go up from 1; the parent's is lower, or 0 without a
                                   // parent
    std::string kind, name;
    std::vector<std::pair<std::string, std::string>> attributes;
};

struct Header {
    std::vector<std::pair<std::string, std::string>> descriptions;  // desc: NAME: TEXT
    std::string command;                                            // cmd:
    std::vector<Event> events;                                      // 1 to kMaxEvents
    std::vector<Derived> derived;
    std::vector<Object> objects;
    std::vector<Series> series;  // at most kMostSeries
    std::uint32_t pid = 0;       // 0 if unknown
    std::string incomplete;      // why the counts do not cover a whole run; empty if they do
    // The counts are those of one profile minus those of another, passed as two's complement.
    // Convert them to std::int64_t.
    bool difference = false;
};

// Throws Error with both lists if the events of a file differ from those of the first file.
void check_same_events(const Header& header, const std::string& path, const Header& first,
                       const std::string& first_path,
                       std::string_view remedy = "give only files of the same profilers together");

}  // namespace assay::events
