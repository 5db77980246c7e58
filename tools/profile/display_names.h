// The names of functions and types that tools show to people. Files and JSON keep the full names.
#pragma once

#include "tools/profile/profile.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace assay {

enum class NameStyle : std::uint8_t { kShort, kFull };

// Parses the value of --names.
NameStyle name_style(std::string_view text);

// Gives each function a short name that no other function has: without parameters, or with them if
// a second function would get the same text, or else in full. Usage: add() all names, then
// finish(), then show names.
class DisplayNames {
  public:
    explicit DisplayNames(NameStyle style) : style_(style) {}

    // Texts of names must live as long as this object.
    void add(std::string_view function);
    void add(const Profile& profile);
    void finish();

    // The name to show. A function that was not added keeps its parameters.
    std::string operator()(std::string_view function) const;
    std::string of_type(std::string_view type) const;
    // "f(int) (a.c:12)", where memory was allocated.
    std::string of_site(std::string_view site) const;
    // The name of an object, type, member or thread. Sites of allocations and variables of the
    // stack begin with the name of a function.
    std::string of_group(const Groups::Group& group) const;

  private:
    const NameStyle style_;
    std::unordered_set<std::string_view> functions_;  // until finish()
    std::unordered_map<std::string_view, std::string> shown_;
};

}  // namespace assay
