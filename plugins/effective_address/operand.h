// Statistics of one data operand of one instruction: all its references, of all threads.
#pragma once

#include "plugins/effective_address/footprint.h"
#include "plugins/effective_address/sharing.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace effective_address {

// Counts of references by alignment.
struct Alignment {
    std::uint64_t misaligned = 0;     // the address is not a multiple of the size
    std::uint64_t line_crossing = 0;  // the first and last byte are in different lines
    std::uint64_t page_crossing = 0;
};

// The number of references with their operand's most frequent stride, and with the next most
// frequent strides. The other references are irregular.
struct Pattern {
    std::uint64_t constant = 0, few = 0;
};

class alignas(64) Operand {
  public:
    static constexpr std::size_t kMostOfFew = 4;  // strides, including the most frequent one
    // Up to 16 strides and 128 addresses are counted exactly. With more, and if runs are short, one
    // of kSampleOf references is counted with a weight of kSampleOf.
    static constexpr std::uint32_t kMostStrides = 16, kMostAddresses = 128;
    static constexpr std::uint32_t kSampleOf = 128;
    static constexpr std::uint64_t kLongRun = 8;  // references

    Operand(std::uint64_t pc, std::uint16_t bytes, std::uint8_t number, bool writes);

    // How to add the references of an operand.
    enum Kind : std::uint8_t {
        kRuns = 0,  // in whole runs, with add()
        // One by one with the function named here, and with look_at() if is_looked_at(). Runs of
        // kLongRun or more may also be added with add().
        kFew = 1,        // irregular, but few addresses: with add_known()
        kIrregular = 2,  // with add_single()
        // Flag for the two above: there are so few strides that count_stride() counts all.
        kFewStrides = 4,
    };
    Kind kind() const { return kind_; }

    // Adds a run that has ended, for any kind.
    void add(const ReferenceRun& run, Footprint::Budget& budget);
    // Adds only the number and the location of the references.
    void add_references(const ReferenceRun& run, Footprint::Budget& budget);
    // Adds an aligned reference to a known address. For any other reference, returns false.
    bool add_known(std::uint64_t address) {
        // If the address is known, so is its line.
        if (address & alignment_mask_ || !addresses_.count_known(address)) return false;
        ++references_;
        return true;
    }
    // Adds the number and the location of an aligned reference. For any other reference, returns
    // false.
    bool add_single(std::uint64_t address, Footprint::Budget& budget) {
        if (address & alignment_mask_) return false;
        ++references_;
        footprint_.add(address >> kLineShift, budget);
        return true;
    }
    // Adds a reference for which add_known() or add_single() returned false.
    void add_other(std::uint64_t address, Footprint::Budget& budget);
    // For kFewStrides: counts the stride if it is known. Otherwise returns false.
    bool count_stride(std::int64_t stride) {
        return strides_.count_known(static_cast<std::uint64_t>(stride));
    }
    void add_stride(std::int64_t stride);
    // For a run of `count` references that has been added by other functions, or one that
    // continues: true if it has ended and look_at() must search it for frequent strides and
    // addresses. Call it once for each run that has ended.
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
    // The most frequent ones, by descending count. If they were sampled, only those with enough
    // samples, with counts scaled to all references.
    std::vector<Item> strides(std::size_t most) const;
    std::vector<Item> addresses(std::size_t most) const;
    bool strides_exact() const { return strides_.exact(); }
    bool addresses_exact() const { return !addresses_sampled_; }

  private:
    // Runs are called short if there are many, and more than one for each kShortRun references.
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

    // The members that a single reference uses, in one line.
    std::uint64_t references_ = 0;
    std::uint64_t alignment_mask_;  // bits of an address that are all 0 if the reference is surely
                                    // aligned
    Footprint footprint_;
    Kind kind_ = kRuns;
    bool writes_;
    std::uint16_t bytes_;
    std::uint32_t random_ = 1;
    // References in short runs until the next sample. 0 or less if the last run contains a sample.
    std::int64_t until_sample_ = kSampleOf;

    FrequentItems addresses_, strides_;
    std::uint64_t pc_;
    std::uint8_t number_;
    bool addresses_sampled_ = false;
    std::uint64_t runs_ = 0;
    std::uint64_t firsts_ = 0;  // references without a predecessor
    Alignment alignment_;
};

// The data that an operand references at an address, as far as they are known.
struct Field {
    std::string type;         // the outermost type; "" if unknown
    std::string member;       // path of the member in that type, such as "inner.count"; or ""
    std::string aligned;      // the first member of the path
    bool is_struct = false;   // of type
    std::uint64_t start = 0;  // start of the object of that type; 0 if unknown
    std::uint64_t bytes = 0;  // size of the type
    std::string name() const { return member.empty() ? type : type + "." + member; }
};
using NamedField = std::function<Field(std::uint32_t operand, std::uint64_t address)>;

// The declarations to change so that threads no longer share the line, such as "alignas(64) for
// counters.second (counters: 16 -> 128 bytes)", separated by commas. `data` describes the variable
// or block at an address, such as "table + 8", or returns "".
std::string parting(const FalselyShared& line, const NamedField& field,
                    const std::function<std::string(std::uint64_t)>& data);

}  // namespace effective_address
