// Calls and functions with what they cost, from the calling contexts of a profile; of events that
// are not counted by context, from the calls that were inlined. Without contexts, from the calls of
// Callgrind's files: functions that call one another in a circle then have at least the inclusive
// counts that are given, because nothing tells which calls are within which.
#pragma once

#include "tools/profile/profile.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace assay {

// A function by file and name, as in Profile::Function. Contexts have only names; the file is
// that of Profile::function_named(), or kNoFile. Of others, that of a site is the one of
// the call.
struct FunctionKey {
    Strings::Id file, name;
    bool operator==(const FunctionKey&) const = default;
    bool operator<(const FunctionKey& other) const {
        return std::tie(file, name) < std::tie(other.file, other.name);
    }
};

// Not the numbers of any texts of a profile.
inline constexpr Strings::Id kNoFile = std::numeric_limits<Strings::Id>::max();
inline constexpr Strings::Id kOutsideName = kNoFile - 1;
// Stands for the caller of what was not called by any function that is known.
inline constexpr FunctionKey kOutsideCaller = {kNoFile, kOutsideName};

// These, too: "???" and kOutside.
std::string_view text_of(const Profile& profile, Strings::Id id);

struct CallSite {
    FunctionKey caller;
    bool inlined;  // or jumped to, or from outside: then there is neither object nor address
    std::uint32_t object;
    std::uint64_t address;
    std::uint32_t line;  // 0 if unknown
    FunctionKey callee;
    bool operator<(const CallSite& other) const { return key() < other.key(); }

  private:
    std::tuple<FunctionKey, bool, std::uint32_t, std::uint64_t, std::uint32_t, FunctionKey> key()
        const {
        return {caller, inlined, object, address, line, callee};
    }
};

struct Calls {
    // As an event with the unit "calls" counts them. 0 without one, and for calls that were inlined
    // and are in no context.
    std::uint64_t number = 0;
    // Of each event: the callee's own counts and those of all that it called. Counts of a callee
    // that was already being executed are left out: they are in the outermost call's.
    std::vector<std::uint64_t> inclusive;
};

struct FunctionCounts {
    // As the lines of the function have them, whatever called it.
    std::vector<std::uint64_t> exclusive;
    // Those with all that the function called; once, however often it is on a path. What of its own
    // counts is in no context is in here, too.
    std::vector<std::uint64_t> inclusive;
};

struct CallGraph {
    std::map<CallSite, Calls> calls;
    // Empty for a profile that has neither contexts nor known calls. With contexts, the inclusive
    // counts of a function are the sum of its calls, those from kOutsideCaller included.
    // kOutsideCaller itself is not in here.
    std::map<FunctionKey, FunctionCounts> functions;
};

CallGraph call_graph(const Profile& profile);

// By caller and callee, wherever the calls stand.
std::map<std::pair<FunctionKey, FunctionKey>, Calls> calls_of_functions(const CallGraph& graph);

}  // namespace assay
