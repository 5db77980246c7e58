// Calls with what they cost, from the calling contexts of a profile; of events that are not counted
// by context, the calls that were inlined.
#pragma once

#include "tools/profile/whole_profile.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace assay::exporting {

// A function by file and name, as in WholeProfile::Function. Contexts have only names; the file is
// that of WholeProfile::function_named(), or "???". That of a site is the one of the call.
struct FunctionKey {
    Strings::Id file, name;
    bool operator==(const FunctionKey&) const = default;
    bool operator<(const FunctionKey& other) const {
        return std::tie(file, name) < std::tie(other.file, other.name);
    }
};

struct CallSite {
    FunctionKey caller;
    bool inlined;  // or jumped to: then there is neither object nor address
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
    // As an event with the unit "calls" counts them. Without one: the number of contexts. 0 for
    // calls that were inlined and are in no context.
    std::uint64_t number = 0;
    // Of each event: the callee's own counts and those of all that it called. Counts of a callee
    // that was already being executed are left out: they are in the outermost call's.
    std::vector<std::uint64_t> inclusive;
};

using CallGraph = std::map<CallSite, Calls>;

// `unknown` is the text "???".
CallGraph call_graph(const WholeProfile& profile, Strings::Id unknown);

}  // namespace assay::exporting
