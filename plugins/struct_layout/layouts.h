// Other layouts of a struct that may be better, to be tried: its members in another order, or in
// two structs.
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

// The structs of the program, what of them is used together, and where their instances are.

inline constexpr std::uint32_t kNone = UINT32_MAX;

// What stays together wherever it is put: a member, or bit-fields that share bytes.
struct Unit {
    struct Member {
        std::string name, type;
        std::uint32_t bits = 0;
    };
    std::vector<Member> members;
    std::uint64_t offset = 0, bytes = 0, alignment = 1;
    std::uint64_t references = 0;
    std::uint64_t visits = 0;  // of an instance, in which it is used
    bool first = false;        // a base class, or the pointer to virtual functions
    bool last = false;         // an array without a bound

    std::string name() const;
};

struct Struct {
    std::uint32_t number = 0;
    std::string name;
    std::uint64_t bytes = 0, alignment = 1;
    std::vector<Unit> units;             // by offset
    std::vector<std::uint32_t> unit_at;  // by byte: kNone in holes
    std::uint64_t references = 0, l1_misses = 0, ll_misses = 0;
    // How often units were used in one visit of an instance, by sets of units: those of the most
    // references, up to 64 of them. `bits` has the bit of each.
    std::map<std::uint64_t, std::uint64_t> visits;
    std::vector<std::uint32_t> bits;

    // Why no other layout is looked for; "" if one is.
    std::string obstacle() const;
    std::uint64_t together(std::uint32_t unit, std::uint32_t other) const;
    // The unit that has all of these bytes; kNone if none has.
    std::uint32_t unit_of(std::uint64_t offset, std::uint64_t size) const;
};

// Of a site: which struct its references are to.
struct SiteUse {
    std::uint32_t of = kNone;           // an index in Structs::all
    std::uint64_t offset = UINT64_MAX;  // of each reference in the struct; UINT64_MAX: it varies
};

// Those that references of the run are to.
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

// Where instances of one struct are: arrays of them, one after the other in one variable or block.
struct InstanceArray {
    std::uint64_t start = 0, count = 0;
    bool in_block = false;  // it is known which variable or block it is in
    bool regular = true;    // instances are a multiple of the struct's size apart
};

class Instances {
  public:
    explicit Instances(std::uint64_t bytes) : bytes_(bytes) {}

    void seen(std::uint64_t start) {
        if (start != last_) starts_.insert(last_ = start);
    }
    // When all have been seen.
    void find_arrays(const assay::Trace& trace);
    const std::vector<InstanceArray>& arrays() const { return arrays_; }
    // The array that an address lies in, by its index; kNone if it is in none. `hint` is what was
    // found last.
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

// Counts visits: the references to an instance while it is among those that were referred to last.
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
    std::array<Visit, 16> recent_{};  // the last one first
    std::map<std::uint64_t, std::uint64_t> counts_;
};

struct Layout {
    struct Part {
        std::vector<std::uint32_t> units;  // in their order
        std::uint64_t bytes = 0, alignment = 1;
        bool padded = false;   // at its end, to be as large as it is
        bool aligned = false;  // to more than its members need
    };
    std::string name;
    std::vector<Part> parts;             // two: an instance is an element of two arrays
    std::vector<std::uint32_t> part_of;  // by unit
    std::vector<std::uint64_t> offsets;  // by unit, in its part

    // Whether instances are where they were, so that arrays need not be known.
    bool keeps_places(const Struct& of) const {
        return parts.size() == 1 && parts[0].bytes == of.bytes;
    }
};

// Those to try, each once. What is used together comes together, in lines of that size.
std::vector<Layout> layouts(const Struct& of, std::uint64_t line);

// As C, with offsets.
std::string text(const Layout& layout, const Struct& of);

}  // namespace struct_layout
