// Which file's code lies at which address of the profiled process, over time.
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
    std::uint64_t offset;  // in the file, of `start`
    const std::string* path;
};

class AddressMap {
  public:
    void map(std::uint64_t start, std::uint64_t end, std::uint64_t offset, std::string_view path);
    void unmap(std::uint64_t start, std::uint64_t end);

    // The index of the mapping that lies, or that lay last, at `pc`. An unmapped library keeps
    // its addresses until something else is mapped there: its counts arrive at the end.
    std::uint32_t find(std::uint64_t pc) const;
    // The same for many addresses, of which those that follow one another mostly lie in one part
    // of a mapping. Valid until the next map() or unmap().
    class Finder;
    // The object at `pc` now, or nullptr. Valid until the next map() or unmap().
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

    // Makes `address` the border of two parts if it lies inside of one.
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
