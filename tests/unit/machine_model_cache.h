// The parts of the plain model of a machine (machine_model.h) that are one cache's: its lines,
// their replacement, its prefetchers. Written from docs/reference/machine-file.md, without regard
// to speed.
#pragma once

#include "plugins/machine/machine.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace model {

struct Way {
    bool used = false;
    std::uint64_t line = 0;
    bool dirty = false;
    bool prefetched = false;          // and not referred to since
    std::uint64_t prefetched_at = 0;  // instructions of the core that did it
    std::uint32_t prefetched_by = 0;  // this one
    // What policies note.
    std::uint64_t arrived = 0;  // a time
    std::uint64_t uses = 0;
    std::uint32_t prediction = 0;
    bool recent = false;
    std::uint64_t signature = 0;
    bool was_hit = false;
};
using Set = std::vector<Way>;

// Which line of a set goes. Sets are known by their numbers.
class Policy {
  public:
    virtual ~Policy() = default;
    virtual void hit(std::uint64_t set_number, Set& set, std::uint32_t way) = 0;
    virtual void fill(std::uint64_t set_number, Set& set, std::uint32_t way, std::uint64_t pc,
                      bool is_prefetch) = 0;
    // Of a set without a free way.
    virtual std::uint32_t victim(std::uint64_t set_number, Set& set) = 0;
    // The line goes, for whatever reason.
    virtual void end(const Way&) {}
};

std::unique_ptr<Policy> make_policy(const machine::Replacement& replacement, std::uint64_t sets);

class Lines {
  public:
    Lines(std::uint64_t sets, std::uint32_t ways, machine::Hash hash,
          const machine::Replacement& replacement);

    // The line, or null.
    Way* find(std::uint64_t line);
    void refer(std::uint64_t line);  // that is there
    // Takes a line in that is not there. What goes for it, if anything.
    std::optional<Way> take_in(std::uint64_t line, std::uint64_t pc, bool is_prefetch);
    std::optional<Way> remove(std::uint64_t line);
    std::uint64_t size() const { return sets_.size() * sets_[0].size(); }

  private:
    std::uint64_t set_of(std::uint64_t line) const;

    machine::Hash hash_;
    std::vector<Set> sets_;
    std::unique_ptr<Policy> policy_;
};

// What a prefetcher is told of one reference to a line.
struct Told {
    std::uint64_t line, address, pc;
    bool hit, first;  // `first` since it was prefetched
    bool is_trigger() const { return !hit || first; }
};

class Prefetcher {
  public:
    virtual ~Prefetcher() = default;
    // The lines that it asks for.
    virtual std::vector<std::uint64_t> reference(const Told& told) = 0;
};

std::unique_ptr<Prefetcher> make_prefetcher(const machine::Prefetch& prefetch,
                                            std::uint32_t line_bytes);

}  // namespace model
