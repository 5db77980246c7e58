// Builds calls and functions with inclusive counts. Events that are counted by context use the
// calling contexts of the profile. Other events use the calls that were inlined. Profiles without
// contexts use the calls of Callgrind's files. Such calls do not tell which of them are nested, so
// functions of a recursive cycle may then have too low inclusive counts.
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

// A function by file and name, as in Profile::Function. For a function of a context, which has only
// a name, the file is that of Profile::function_named(), or kNoFile. For the function of another
// inlining site, it is the file of the call.
struct FunctionKey {
    Strings::Id file, name;
    bool operator==(const FunctionKey&) const = default;
    bool operator<(const FunctionKey& other) const {
        return std::tie(file, name) < std::tie(other.file, other.name);
    }
};

// Numbers that no text of a profile has.
inline constexpr Strings::Id kNoFile = std::numeric_limits<Strings::Id>::max();
inline constexpr Strings::Id kOutsideName = kNoFile - 1;
// The caller of functions whose caller is not known.
inline constexpr FunctionKey kOutsideCaller = {kNoFile, kOutsideName};

// Returns the text of an id; "???" for kNoFile and kOutside for kOutsideName.
std::string_view text_of(const Profile& profile, Strings::Id id);

struct CallSite {
    FunctionKey caller;
    bool
        inlined;  // also true for jumps and calls from outside, which have no object and no address
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
    // Number of calls, as the file tells it; else as the event with the unit "calls" counts them. 0
    // if it is not known, as for inlined calls.
    std::uint64_t number = 0;
    // By event: counts of the callee and of all functions that it called. Recursive calls of an
    // active callee add nothing, because the outermost call has their counts.
    std::vector<std::uint64_t> inclusive;
};

struct FunctionCounts {
    // Counts of the function's lines, for all callers.
    std::vector<std::uint64_t> exclusive;
    // Counts of the function and all functions that it called, counted once per path. Includes the
    // function's counts outside all contexts.
    std::vector<std::uint64_t> inclusive;
};

struct CallGraph {
    std::map<CallSite, Calls> calls;
    // Empty for a profile without contexts and without known calls. With contexts, the inclusive
    // counts of a function are the sum of its calls, including those from kOutsideCaller.
    // kOutsideCaller itself is not a key.
    std::map<FunctionKey, FunctionCounts> functions;
};

CallGraph call_graph(const Profile& profile);

// Counts of each of profile.functions() with the functions that it called and that were inlined
// into it. Empty if the profile knows neither contexts nor calls nor inlining sites.
std::vector<std::vector<std::uint64_t>> inclusive_counts(const Profile& profile,
                                                         const CallGraph& graph);

// Calls by caller and callee, added up over all call sites.
std::map<std::pair<FunctionKey, FunctionKey>, Calls> calls_of_functions(const CallGraph& graph);

}  // namespace assay
