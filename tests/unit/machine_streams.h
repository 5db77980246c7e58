// Random machines and streams of references, and what the fast simulation and the plain model make
// of them.
#pragma once

#include "plugins/machine/columns.h"
#include "plugins/machine/first_caches.h"
#include "plugins/machine/front_end.h"
#include "plugins/machine/hierarchy.h"
#include "plugins/machine/machine.h"

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace streams {

using Random = std::mt19937_64;

struct OfCore {
    std::uint32_t core;
    machine::Reference reference;
};

// Before the reference with that index, memory becomes something else.
struct Change {
    std::size_t before;
    std::uint64_t start, bytes;
    machine::Memory memory;
};

// Fetches, reads, writes and both at once, by all cores, or first by one alone: walks of a fixed
// stride, some backwards, hot lines, words that cores share, pages apart, and references over the
// end of a line.
std::vector<OfCore> references(Random& random, const machine::Machine& machine, int count);

// A machine that has no complaint.
machine::Machine any_machine(Random& random);
// The same with translation buffers that are divided by the sizes of pages.
machine::Machine any_machine_of_pages(Random& random);
// The same with first caches that can be simulated in advance.
machine::Machine any_machine_of_independent_first_caches(Random& random);

// A cache of `sets` sets, of whom and at which level.
machine::Cache cache(const std::string& name, std::uint32_t level, machine::Holds holds,
                     machine::Of of, std::uint64_t sets, std::uint32_t ways,
                     std::uint32_t line = 64);

// Of all that references() refers to, for so many of them, in their order.
std::vector<Change> changes(Random& random, int count);

// The fast simulation.
class Simulation {
  public:
    // Both stay their owner's, and there. `first_caches`: these in advance, where that can be done.
    Simulation(const machine::Machine& machine, const machine::Columns& columns,
               bool first_caches = false)
        : front_(machine, columns), hierarchy_(machine, columns), counts_(columns.size()) {
        if (first_caches && machine::FirstCaches::are_independent(machine))
            first_caches_.emplace(machine, columns);
    }

    // References of one core, as a part. Returns what is counted of all until now.
    std::uint64_t* run(std::span<const OfCore> part);
    const std::uint64_t* counts() const { return counts_.data(); }
    void forget(std::uint32_t core);
    void translate_by(std::uint32_t core, machine::PageSizes& sizes) {
        front_.translate_by(core, sizes, steps_);
    }

  private:
    void run_all(std::span<const OfCore> part);

    machine::FrontEnd front_;
    std::optional<machine::FirstCaches> first_caches_;  // instead of front_
    machine::Hierarchy hierarchy_;
    machine::Steps steps_;
    std::vector<std::uint64_t> counts_;
};

// Runs both, the fast one with what the driver records, the plain one with everything; "" if they
// agree, else the first reference and column that differs.
std::string difference(const machine::Machine& machine, const std::vector<OfCore>& references,
                       const std::vector<Change>& changes = {});
// Of a stream of its own.
std::string difference(const machine::Machine& machine, std::uint64_t seed, int count);

// What the fast simulation counts, column by column.
class Counts {
  public:
    Counts(const machine::Machine& machine, const std::vector<OfCore>& references,
           const std::vector<Change>& changes = {});
    // Of the column of that name, which there must be.
    std::uint64_t operator[](const std::string& name) const;

  private:
    machine::Columns columns_;
    std::vector<std::uint64_t> counts_;
};

OfCore read(std::uint32_t core, std::uint64_t address, std::uint32_t bytes = 8);
// As the instruction of the core with that number.
OfCore read_at(std::uint64_t executed, std::uint32_t core, std::uint64_t address);
OfCore write(std::uint32_t core, std::uint64_t address, std::uint32_t bytes = 8);

}  // namespace streams
