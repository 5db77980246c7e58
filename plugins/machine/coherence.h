// Which cores' own caches have a line, and in which state: the protocols MESI (Papamarcos and
// Patel, "A low-overhead coherence solution for multiprocessors with private cache memories", ISCA
// 1984) and MOESI (Sweazey and Smith, "A class of compatible cache consistency protocols and their
// support by the IEEE Futurebus", ISCA 1986).
//
// States only: what becomes of the copies is the hierarchy's business (hierarchy.h).
#pragma once

#include "plugins/machine/line_map.h"
#include "plugins/machine/machine.h"

#include <cstdint>

namespace machine {

enum class State : std::uint8_t { kInvalid, kShared, kExclusive, kOwned, kModified };

class Coherence {
  public:
    static constexpr std::uint32_t kNobody = UINT32_MAX;

    explicit Coherence(Protocol protocol) : protocol_(protocol) {}

    State state(std::uint32_t core, std::uint64_t line);
    struct Holders {
        std::uint64_t cores = 0;        // whose own caches have the line, as bits
        std::uint32_t owner = kNobody;  // that has it exclusive, owned or modified

        bool have(std::uint32_t core) const { return cores & bit(core); }
    };
    Holders holders(std::uint64_t line);

    struct Read {
        std::uint32_t supplier = kNobody;  // the core that has had it modified or owned
        bool cleans = false;               // and now writes it back
        bool had = false;                  // the core has got it: nothing else happens
    };
    // A core reads the line. `alone`: no cache of another cluster has it.
    Read read(std::uint32_t core, std::uint64_t line, bool alone);

    struct Write {
        State before = State::kInvalid;    // of the core
        std::uint64_t losers = 0;          // cores that lose the line, as bits
        std::uint32_t supplier = kNobody;  // of a core that had not got it
    };
    // A core is going to write the line, and has it modified then.
    Write write(std::uint32_t core, std::uint64_t line);
    // A core's own caches have the line no more.
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
