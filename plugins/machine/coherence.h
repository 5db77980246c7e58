// The state of each line in the caches of cores. The protocols are MESI (Papamarcos and Patel, "A
// low-overhead coherence solution for multiprocessors with private cache memories", ISCA 1984) and
// MOESI (Sweazey and Smith, "A class of compatible cache consistency protocols and their support by
// the IEEE Futurebus", ISCA 1986).
//
// Tracks states only. The hierarchy moves the copies (hierarchy.h).
#pragma once

#include "plugins/machine/machine.h"
#include "plugins/machine/miss_kinds.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace machine {

// The lines that cores have lost to other cores' writes, and the words written since, to tell true
// from false sharing (Torrellas, Lam and Hennessy, "False sharing and spatial locality in
// multiprocessor caches", IEEE Transactions on Computers 43, 1994).

// The words of a line, which tell true from false sharing.
class LineWords {
  public:
    explicit LineWords(std::uint32_t line_bytes)
        : shift_(line_bytes > 512 ? std::countr_zero(line_bytes) - 6 : 3) {}

    // The 8-byte words of a line that these bytes touch, as bits. Lines above 512 bytes have more
    // than 64 such words, and use larger ones.
    std::uint64_t of(std::uint64_t first, std::uint64_t bytes) const {
        const std::uint64_t from = first >> shift_, to = (first + bytes - 1) >> shift_;
        return ~std::uint64_t{0} >> (63 - to) & ~std::uint64_t{0} << from;
    }

  private:
    int shift_;  // logarithm of a word's bytes
};

class Sharing {
  public:
    // A core has lost the line.
    void lost(std::uint32_t core, std::uint64_t line);
    // Another core has written these words of the line.
    void written(std::uint32_t core, std::uint64_t line, std::uint64_t words);
    // True if a core has lost the line and not got it back.
    bool is_watched(std::uint64_t line) { return losses_.find(line) != nullptr; }
    // The core gets the line back, for these words. True if one of the words was written meanwhile.
    // No value if the core has not lost the line.
    std::optional<bool> found_again(std::uint32_t core, std::uint64_t line, std::uint64_t words);

  private:
    struct Loss {
        std::uint32_t core;
        std::uint64_t written;  // words, as bits
    };

    LineMap<std::vector<Loss>> losses_;
};

enum class State : std::uint8_t { kInvalid, kShared, kExclusive, kOwned, kModified };

class Coherence {
  public:
    static constexpr std::uint32_t kNobody = UINT32_MAX;

    explicit Coherence(Protocol protocol) : protocol_(protocol) {}

    State state(std::uint32_t core, std::uint64_t line);
    struct Holders {
        std::uint64_t cores = 0;        // cores whose own caches have the line, as bits
        std::uint32_t owner = kNobody;  // the core that has it exclusive, owned or modified

        bool have(std::uint32_t core) const { return cores & bit(core); }
    };
    Holders holders(std::uint64_t line);

    struct Read {
        std::uint32_t supplier = kNobody;  // the core that had it modified or owned
        bool cleans = false;               // the supplier writes it back now
        bool had = false;                  // the core already has the line, and nothing else
                                           // happens
    };
    // A core reads the line. `alone`: no cache of another cluster has the line.
    Read read(std::uint32_t core, std::uint64_t line, bool alone);

    struct Write {
        State before = State::kInvalid;    // the core's state
        std::uint64_t losers = 0;          // cores that lose the line, as bits
        std::uint32_t supplier = kNobody;  // the supplier, if the core did not have the line
    };
    // A core writes the line, and has it modified afterwards.
    Write write(std::uint32_t core, std::uint64_t line);
    // The core's own caches have lost the line.
    void drop(std::uint32_t core, std::uint64_t line);

  private:
    struct Entry {
        std::uint64_t holders = 0;
        std::uint32_t owner = kNobody;
        State state = State::kShared;  // of the owner
    };
    static std::uint64_t bit(std::uint32_t core) { return std::uint64_t{1} << core; }

    Protocol protocol_;
    LineMap<Entry> entries_;  // of lines that a core has
};

}  // namespace machine
