// The part of the events file that breaks its counts down by calling context.
#pragma once

#include "framework/collector/profile.h"

#include <functional>
#include <string_view>
#include <tuple>
#include <vector>

namespace assay::collector {

// A place in an object of the header.
struct ObjectPlace {
    std::uint32_t object;
    std::uint64_t address;  // link-time
    bool operator==(const ObjectPlace&) const = default;
    bool operator<(const ObjectPlace& other) const {
        return std::tie(object, address) < std::tie(other.object, other.address);
    }
};

class StackLines {
  public:
    // The contexts that have counts, or lead to some that have. `find` is called for the places
    // that the lines name.
    StackLines(const Profile& profile, const std::function<ObjectPlace(std::uint64_t)>& find);

    // Finds the functions' names; `objects` are those of the header.
    void resolve(const std::vector<events::Object>& objects);
    void write(events::Writer& writer) const;

  private:
    struct Line {
        std::uint32_t context, parent;  // the parent's number in the file
        ObjectPlace call, function;
        std::string_view name;
    };

    const Profile& profile_;
    std::vector<Line> lines_;  // by their number in the file, from 1
};

}  // namespace assay::collector
