// The files whose code is mapped in the profiled process, by address and over time.
#pragma once

#include "assay/trace_types.h"

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay::collector {

inline constexpr std::uint32_t kNoMapping = UINT32_MAX;

// One executable mapping of a file.
struct Mapping {
    std::uint64_t start;
    std::uint64_t offset;  // of `start`, in the file
    const std::string* path;
};

class AddressMap {
  public:
    void map(std::uint64_t start, std::uint64_t end, std::uint64_t offset, std::string_view path);
    void unmap(std::uint64_t start, std::uint64_t end);

    // Returns the index of the mapping at `pc`, or of the last mapping there. Counts arrive at the
    // end of a run, so an unmapped library keeps its addresses until another mapping covers them.
    std::uint32_t find(std::uint64_t pc) const;
    // A faster find() for many addresses, if adjacent calls mostly hit the same part of a mapping.
    // Valid until the next map() or unmap().
    class Finder;
    // Returns the object that is mapped at `pc` now, or null. Valid until the next map() or
    // unmap().
    const trace_object_t* object(std::uint64_t pc) const;

    // In the order of mapping.
    const std::vector<Mapping>& mappings() const { return mappings_; }

  private:
    // Disjoint parts of mappings, by start address.
    struct Part {
        trace_object_t object;
        std::uint32_t mapping;
        bool mapped;
    };
    using Parts = std::map<std::uint64_t, Part>;

    // Makes `address` the border of two parts if it lies inside a part.
    void split(std::uint64_t address);
    Parts::const_iterator part_of(std::uint64_t pc) const;

    std::deque<std::string> paths_;
    std::vector<Mapping> mappings_;
    Parts parts_;
};

class AddressMap::Finder {
  public:
    explicit Finder(const AddressMap& map) : map_(map), last_(map.parts_.end()) {}

    std::uint32_t find(std::uint64_t pc) {
        if (last_ == map_.parts_.end() || pc < last_->first || pc >= last_->second.object.end)
            last_ = map_.part_of(pc);
        return last_ == map_.parts_.end() ? kNoMapping : last_->second.mapping;
    }

  private:
    const AddressMap& map_;
    Parts::const_iterator last_;
};

}  // namespace assay::collector
