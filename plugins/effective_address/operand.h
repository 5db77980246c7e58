// What is known of one data operand of one instruction: all its references, of all threads.
#pragma once

#include "plugins/effective_address/footprint.h"
#include "plugins/effective_address/frequent_items.h"
#include "plugins/effective_address/reference_run.h"
#include "plugins/effective_address/sharing.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace effective_address {

// Of references by where they lie.
struct Alignment {
    std::uint64_t misaligned = 0;     // the address is no multiple of the size
    std::uint64_t line_crossing = 0;  // first and last byte lie in different lines
    std::uint64_t page_crossing = 0;
};

// How many references were at their operand's most frequent stride, and how many at the next most
// frequent ones. The others are irregular.
struct Pattern {
    std::uint64_t constant = 0, few = 0;
};

class alignas(64) Operand {
  public:
    static constexpr std::size_t kMostOfFew = 4;  // strides, with the most frequent one
    // 16 strides and 128 addresses are counted exactly. Of more, where runs are short, one of
    // kSampleOf references is looked at, and weighs as much.
    static constexpr std::uint32_t kMostStrides = 16, kMostAddresses = 128;
    static constexpr std::uint32_t kSampleOf = 128;
    static constexpr std::uint64_t kLongRun = 8;  // of so many references

    Operand(std::uint64_t pc, std::uint16_t bytes, std::uint8_t number, bool writes);

    // How the references of an operand are to be taken.
    enum Kind : std::uint8_t {
        kRuns = 0,  // in whole runs, by add()
        // Each by one of the next two, and by look_at() if it is_looked_at(). Runs from kLongRun on
        // may be taken by add(), too.
        kFew = 1,        // irregular, but few addresses: by add_known()
        kIrregular = 2,  // by add_single()
        // Besides: strides are so few that all are counted, by count_stride().
        kFewStrides = 4,
    };
    Kind kind() const { return kind_; }

    // Of any kind: takes a run that has ended.
    void add(const ReferenceRun& run, Footprint::Budget& budget);
    // Only how many they are, and where.
    void add_references(const ReferenceRun& run, Footprint::Budget& budget);
    // Takes a reference that is aligned and to an address that it knows; of others it returns
    // false.
    bool add_known(std::uint64_t address) {
        // Of an address that is known, the line is, too.
        if (address & alignment_mask_ || !addresses_.count_known(address)) return false;
        ++references_;
        return true;
    }
    // Takes how many and where, of a reference that is aligned; of others it returns false.
    bool add_single(std::uint64_t address, Footprint::Budget& budget) {
        if (address & alignment_mask_) return false;
        ++references_;
        footprint_.add(address >> kLineShift, budget);
        return true;
    }
    // Takes a reference that neither of both has taken.
    void add_other(std::uint64_t address, Footprint::Budget& budget);
    // Of kFewStrides: counts the stride if it is known; else returns false.
    bool count_stride(std::int64_t stride) {
        return strides_.count_known(static_cast<std::uint64_t>(stride));
    }
    void add_stride(std::int64_t stride);
    // Of a run of `count` references that has been added otherwise, or of one that goes on: whether
    // it has ended and look_at() has to look for frequent strides and addresses. To be asked once
    // of each that has ended.
    bool is_looked_at(std::uint64_t count, bool ended) {
        const bool is_long = count >= kLongRun;
        until_sample_ -= ended && !is_long ? static_cast<std::int64_t>(count) : 0;
        return until_sample_ <= 0 || (ended && is_long);
    }
    void look_at(const ReferenceRun& run);

    std::uint64_t pc() const { return pc_; }
    std::uint16_t bytes() const { return bytes_; }
    std::uint8_t number() const { return number_; }  // within the instruction
    bool writes() const { return writes_; }

    std::uint64_t references() const { return references_; }
    const Alignment& alignment() const { return alignment_; }
    const Footprint& footprint() const { return footprint_; }
    Pattern pattern() const;
    // The most frequent, by falling counts. Where they were sampled, only those that samples are
    // enough of, with counts scaled up to all references.
    std::vector<Item> strides(std::size_t most) const;
    std::vector<Item> addresses(std::size_t most) const;
    bool strides_exact() const { return strides_.exact(); }
    bool addresses_exact() const { return !addresses_sampled_; }

  private:
    // Runs are short where there are so many of them, and more than one for so many references.
    static constexpr std::uint64_t kManyRuns = 1024, kShortRun = 8;

    void choose_kind();
    void add_frequent(const ReferenceRun& run);
    void sample(std::uint64_t address, std::int64_t stride);
    void add_place(const ReferenceRun& run, Footprint::Budget& budget);
    void add_footprint(const ReferenceRun& run, Footprint::Budget& budget);
    void add_unaligned(const ReferenceRun& run, Footprint::Budget& budget);
    void add_address(std::uint64_t address, std::uint64_t weight);
    void add_addresses(const ReferenceRun& run);
    static std::vector<Item> frequent(const FrequentItems& items, std::size_t most, bool exact,
                                      std::uint64_t whole);
    std::uint32_t random();

    // What a reference that stands for itself needs, in one line.
    std::uint64_t references_ = 0;
    std::uint64_t alignment_mask_;  // of an address: not 0 if the reference can be misaligned
    Footprint footprint_;
    Kind kind_ = kRuns;
    bool writes_;
    std::uint16_t bytes_;
    std::uint32_t random_ = 1;
    // References in short runs until one is looked at; not above 0 if it was within the last run.
    std::int64_t until_sample_ = kSampleOf;

    FrequentItems addresses_, strides_;
    std::uint64_t pc_;
    std::uint8_t number_;
    bool addresses_sampled_ = false;
    std::uint64_t runs_ = 0;
    std::uint64_t firsts_ = 0;  // references without a predecessor
    Alignment alignment_;
};

// What lies in a falsely shared line, and what would part those who share it.

// What the references of an operand to an address are to, as far as it is known.
struct Field {
    std::string type;         // the outermost one; "" if it is not known
    std::string member;       // the path to it in that, as "inner.count"; "" if there is none
    std::string aligned;      // the first member of that path
    bool is_struct = false;   // of type
    std::uint64_t start = 0;  // of the object of that type; 0 if it is not known
    std::uint64_t bytes = 0;  // of the type
    std::string name() const { return member.empty() ? type : type + "." + member; }
};
using NamedField = std::function<Field(std::uint32_t operand, std::uint64_t address)>;

// What is to be declared differently, as "alignas(64) for counters.second (counters: 16 -> 128
// bytes)"; several with commas between them. `data` tells a variable or block by its address, as
// "table + 8", or "".
std::string parting(const FalselyShared& line, const NamedField& field,
                    const std::function<std::string(std::uint64_t)>& data);

}  // namespace effective_address
