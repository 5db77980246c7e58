// What an events file says about itself (docs/reference/events-file.md), shared by its writer and
// readers.
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
inline constexpr std::size_t kMaxHotValues = 1024;  // written for one instruction
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;

struct Event {
    std::string name;         // letters, digits, `_`, `-` and `.`; a letter first
    std::string description;  // may be empty
    std::string unit;         // plural noun; may be empty
    std::string profiler;     // which profiler declared it; may be empty
};

// A figure over event totals, e.g. {"D1 miss rate", "(D1mr + D1mw) / (Dr + Dw)", "%"}. See
// formula.h.
struct Derived {
    std::string name, formula, unit;
};

struct Object {
    std::string path;
    std::string build_id;  // lower-case hexadecimal, or empty
    // What was added to its link-time addresses in the process; none if that is unknown, or was
    // not the same all the time.
    std::optional<std::uint64_t> load = {};
};

// How a context was entered.
enum class StackKind : std::uint8_t {
    kCall,
    kHandler,  // of a signal: no call, but what was interrupted
    kInlined,  // a call that the compiler has replaced by the function's code
    kJumped,   // by a jump, as a tail call is
};
// Whether it is known which instruction has entered it.
constexpr bool has_place(StackKind kind) {
    return kind == StackKind::kCall || kind == StackKind::kHandler;
}

// A calling context: the stack down to one function. Its counts are its own, without those of the
// contexts in it.
struct Stack {
    std::uint32_t number, parent;  // from 1 upwards; the parent's is lower, 0: outside of all calls
    StackKind kind;
    std::uint32_t object;   // where the call is, as an index in Header::objects, with has_place()
    std::uint64_t address;  // relative to the object, with has_place()
    std::uint32_t line;     // of the call, in the source of the parent's function; 0 if unknown
    std::string_view function;
};

// A call that the compiler has replaced by the function's code: where code was inlined.
struct Site {
    std::uint32_t number, parent;  // from 1 upwards; the parent's is lower: where the function of
                                   // the call was inlined itself; 0: it was not
    std::uint32_t line;            // of the call; 0 if unknown
    std::string_view file, function;  // of the call, not of what is called
};

// Whose counts are: an object of the data, a member of a type, a thread. Those of one kind break
// the counts of lines down.
struct Group {
    std::uint32_t number, parent;  // from 1 upwards; the parent's is lower; 0: in none
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
    std::string incomplete;      // why the counts are not those of a whole run; empty if they are
    // The counts are of one profile less those of another. They are then passed on as two's
    // complement: convert them to std::int64_t.
    bool difference = false;
};

// Throws Error, with both lists, if the events of a file are not those of another one.
void check_same_events(const Header& header, const std::string& path, const Header& first,
                       const std::string& first_path,
                       std::string_view remedy = "give only files of the same profilers together");

}  // namespace assay::events
