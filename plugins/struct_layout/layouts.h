// Candidate layouts of a struct: its members in another order, or split into two structs.
#pragma once

#include <array>
#include <assay/profiler.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace struct_layout {

// The structs of the program, the members that are used together, and the places of instances.

inline constexpr std::uint32_t kNone = UINT32_MAX;

// The smallest part that a layout moves: a member, or bit-fields that share bytes.
struct Unit {
    struct Member {
        std::string name, type;
        std::uint32_t bits = 0;
    };
    std::vector<Member> members;
    std::uint64_t offset = 0, bytes = 0, alignment = 1;
    std::uint64_t references = 0;
    std::uint64_t visits = 0;  // of instances, in which the unit is used
    bool first = false;        // a base class, or the pointer to virtual functions
    bool last = false;         // an array without a bound

    std::string name() const;
};

struct Struct {
    std::uint32_t number = 0;
    std::string name;
    std::uint64_t bytes = 0, alignment = 1;
    std::vector<Unit> units;             // by offset
    std::vector<std::uint32_t> unit_at;  // by byte; kNone in holes
    std::uint64_t references = 0, l1_misses = 0, ll_misses = 0;
    // The number of visits by the set of units that they used. A set is a bit mask of the 64 units
    // with the most references; `bits` has the bit of each unit.
    std::map<std::uint64_t, std::uint64_t> visits;
    std::vector<std::uint32_t> bits;

    // The reason why layouts() cannot be used, or "".
    std::string obstacle() const;
    std::uint64_t together(std::uint32_t unit, std::uint32_t other) const;
    // The unit that contains all these bytes, or kNone.
    std::uint32_t unit_of(std::uint64_t offset, std::uint64_t size) const;
};

// The struct that a site refers to.
struct SiteUse {
    std::uint32_t of = kNone;           // an index in Structs::all
    std::uint64_t offset = UINT64_MAX;  // of each reference in the struct; UINT64_MAX if it varies
};

// All structs that the run refers to.
class Structs {
  public:
    explicit Structs(const assay::Trace& trace);

    std::vector<Struct> all;
    SiteUse of_site(std::uint32_t site) const {
        return site < by_site_.size() ? by_site_[site] : SiteUse{};
    }

  private:
    std::uint32_t add(const assay::Trace& trace, std::uint32_t number);

    std::unordered_map<std::uint32_t, std::uint32_t> known_;  // by number
    std::vector<SiteUse> by_site_;
};

// An array of instances of one struct in one variable or block.
struct InstanceArray {
    std::uint64_t start = 0, count = 0;
    bool in_block = false;  // the variable or block is known
    bool regular = true;    // the distances of instances are multiples of the struct's size
};

class Instances {
  public:
    explicit Instances(std::uint64_t bytes) : bytes_(bytes) {}

    void seen(std::uint64_t start) {
        if (start != last_) starts_.insert(last_ = start);
    }
    // Call it after the last seen().
    void find_arrays(const assay::Trace& trace);
    const std::vector<InstanceArray>& arrays() const { return arrays_; }
    // The index of the array that contains an address, or kNone. `hint` is the last result.
    std::uint32_t find(std::uint64_t address, std::uint32_t& hint) const;

  private:
    bool contains(std::uint32_t array, std::uint64_t address) const {
        return address - arrays_[array].start < arrays_[array].count * bytes_;
    }

    const std::uint64_t bytes_;
    std::uint64_t last_ = UINT64_MAX;
    std::unordered_set<std::uint64_t> starts_;
    std::vector<InstanceArray> arrays_;  // by start
};

// Counts visits. A visit is a series of references to an instance that stays among the 16 last used
// ones.
class Visits {
  public:
    void refer(std::uint64_t instance, std::uint64_t units);
    void end();
    const std::map<std::uint64_t, std::uint64_t>& counts() const { return counts_; }

  private:
    struct Visit {
        std::uint64_t instance = 0, units = 0;
    };
    void leave(const Visit& visit) {
        if (visit.units != 0) ++counts_[visit.units];
    }
    std::array<Visit, 16> recent_{};  // the most recent first
    std::map<std::uint64_t, std::uint64_t> counts_;
};

struct Layout {
    struct Part {
        std::vector<std::uint32_t> units;
        std::uint64_t bytes = 0, alignment = 1;
        bool padded = false;   // with bytes added at the end, to keep the size
        bool aligned = false;  // more strictly than its members need
    };
    std::string name;
    std::vector<Part> parts;             // with two parts, an instance is an element of two arrays
    std::vector<std::uint32_t> part_of;  // by unit
    std::vector<std::uint64_t> offsets;  // by unit, in its part

    // True if instances stay at their addresses. The trial then needs no arrays.
    bool keeps_places(const Struct& of) const {
        return parts.size() == 1 && parts[0].bytes == of.bytes;
    }
};

// The layouts to try, without duplicates. Puts members that are used together into the same line of
// `line` bytes.
std::vector<Layout> layouts(const Struct& of, std::uint64_t line);

// C source with offsets in comments.
std::string text(const Layout& layout, const Struct& of);

}  // namespace struct_layout
