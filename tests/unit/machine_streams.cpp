#include "machine_streams.h"

#include "machine_model.h"

#include "framework/driver/replay/miss_filter.h"
#include "plugins/machine/needed_records.h"
#include "plugins/machine/part.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace streams {

using machine::Kind;
using machine::Machine;

namespace {

std::uint32_t cores_of(const Machine& machine) {
    return machine.cores == 0 ? 3 : machine.cores;
}

}  // namespace

machine::Cache cache(const std::string& name, std::uint32_t level, machine::Holds holds,
                     machine::Of of, std::uint64_t sets, std::uint32_t ways, std::uint32_t line) {
    machine::Cache made;
    made.name = name;
    made.level = level;
    made.holds = holds;
    made.of = of;
    made.size = sets * ways * line;
    made.ways = ways;
    made.counts_writes = true;
    return made;
}

OfCore read(std::uint32_t core, std::uint64_t address, std::uint32_t bytes) {
    return {core, {.kind = Kind::kRead, .bytes = bytes, .address = address, .pc = 0x1000}};
}

OfCore read_at(std::uint64_t executed, std::uint32_t core, std::uint64_t address) {
    OfCore made = read(core, address);
    made.reference.executed = executed;
    return made;
}

OfCore write(std::uint32_t core, std::uint64_t address, std::uint32_t bytes) {
    return {
        core,
        {.kind = Kind::kWrite, .writes = true, .bytes = bytes, .address = address, .pc = 0x1010}};
}

std::vector<OfCore> references(Random& random, const Machine& machine, int count) {
    const auto below = [&](std::uint64_t most) { return random() % most; };
    const std::uint32_t cores = cores_of(machine);
    struct Walk {
        std::uint64_t pc, at;
        std::int64_t stride;
        std::uint32_t left;
    };
    constexpr std::uint64_t kBase = 0x10'0000'0000;
    const std::uint64_t spread = std::uint64_t{machine.line} << (3 + below(6));
    const auto new_walk = [&]() -> Walk {
        static constexpr std::int64_t kStrides[] = {8, 64, -64, 24, -16, 256, 192, -128};
        return {0x40'0000 + below(64) * 4, kBase + below(spread), kStrides[below(8)],
                static_cast<std::uint32_t>(4 + below(40))};
    };
    std::vector<std::vector<Walk>> walks(cores);
    std::vector<std::uint64_t> pcs(cores, 0x40'0000), executed(cores);
    std::vector<OfCore> made;
    for (auto& own : walks) own = {new_walk(), new_walk(), new_walk()};
    auto core = static_cast<std::uint32_t>(below(cores));
    const std::uint64_t first_alone = below(2) == 0 ? 0 : below(static_cast<std::uint64_t>(count));
    while (made.size() < static_cast<std::size_t>(count)) {
        if (made.size() >= first_alone && below(4) == 0)
            core = static_cast<std::uint32_t>(below(cores));
        executed[core] += below(12) == 0 ? below(40) : below(4);  // also of one instruction
        machine::Reference reference;
        const std::uint64_t what = below(16);
        reference.bytes = static_cast<std::uint32_t>(1 << below(5));
        reference.executed = executed[core];
        if (what < 3) {
            std::uint64_t& pc = pcs[core];
            pc = below(6) == 0 ? 0x40'0000 + below(spread * 2) : pc + below(12);
            reference.kind = Kind::kFetch;
            reference.bytes = static_cast<std::uint32_t>(1 + below(15));
            reference.address = reference.pc = pc;
            if (below(8) == 0) reference.address = kBase + below(spread);  // of what is data, too
            made.push_back({core, reference});
            continue;
        }
        if (what < 10) {
            Walk& walk = walks[core][below(3)];
            if (walk.left-- == 0) walk = new_walk();
            reference.address = walk.at;
            reference.pc = walk.pc;
            walk.at += static_cast<std::uint64_t>(walk.stride);
        } else if (what < 13) {  // hot
            reference.address = kBase + below(machine.line * 4) / 8 * 8;
            reference.pc = 0x50'0000 + below(8) * 16;
        } else if (what < 15) {
            reference.address = kBase + below(spread);
            reference.pc = 0x60'0000 + below(256);
        } else {  // pages apart
            const std::uint64_t page = machine.page != 0 ? machine.page
                                       : below(2) == 0   ? 4096
                                       : below(8) != 0   ? 2 << 20
                                                         : 1 << 30;
            reference.address = kBase + below(40) * page - below(64);
            reference.pc = 0x70'0000;
        }
        if (below(64) == 0) reference.bytes = machine.line * 3;
        if (below(24) == 0) {
            reference.operation = static_cast<machine::LineOperation>(1 + below(3));
            reference.level = static_cast<std::uint8_t>(1 + below(3));
            reference.pc = 0x80'0000;
            made.push_back({core, reference});
            continue;
        }
        const std::uint64_t kind = below(8);
        reference.kind = kind < 2 ? Kind::kWrite : Kind::kRead;
        reference.writes = kind < 3;
        made.push_back({core, reference});
    }
    return made;
}

// In the first GiB ranges of 2M, behind it of 1G: no page is divided.
std::vector<Change> changes(Random& random, int count) {
    using machine::Memory;
    constexpr std::uint64_t kBase = 0x10'0000'0000, kUnit = 2 << 20, kHuge = 1 << 30;
    std::vector<Change> made;
    for (std::size_t before = 0; before < static_cast<std::size_t>(count);
         before += random() % 100) {
        const auto memory = static_cast<Memory>(random() % 5);
        if (memory == Memory::k1G || random() % 3 == 0)
            made.push_back(
                {before, kBase + (1 + random() % 39) * kHuge, (1 + random() % 20) * kHuge, memory});
        else if (random() % 6 == 0)
            made.push_back({before, 0, std::uint64_t{1} << 47, memory});
        else
            made.push_back({before, kBase - kUnit + random() % 24 * kUnit,
                            (1 + random() % 32) * kUnit, memory});
    }
    return made;
}

namespace {

bool is_operation(const OfCore& one) {
    return one.reference.operation != machine::LineOperation::kNone;
}

// References of one core that no others come between.
struct Part {
    std::span<const OfCore> references;
    std::uint64_t* counts_of_all;

    std::size_t size() const { return references.size(); }
    bool is_reference(std::size_t) const { return true; }
    machine::Reference reference(std::size_t record) const { return references[record].reference; }
    std::uint64_t* counts(std::size_t) const { return counts_of_all; }
};

}  // namespace

std::uint64_t* Simulation::run(std::span<const OfCore> part) {
    const std::uint32_t core = part[0].core;
    steps_.clear(part.size());
    const bool operates = std::any_of(part.begin(), part.end(), is_operation);
    const bool has_caches =
        first_caches_ && first_caches_->begin(core, part.size(), operates, steps_);
    for (machine::Steps::Given& given : steps_.given) hierarchy_.take(given.core, given.caches);
    if (first_caches_ && !has_caches) {
        run_all(part);
        return counts_.data();
    }
    if (!has_caches) front_.begin(core, part.size(), operates);
    for (std::uint32_t i = 0; i < part.size(); ++i)
        if (is_operation(part[i]))
            steps_.need(i);
        else if (has_caches)
            first_caches_->refer(part[i].reference, i, steps_);
        else
            front_.add(part[i].reference, i);
    if (!has_caches) front_.finish(steps_);
    machine::run_part(hierarchy_, core, steps_, Part{part, counts_.data()});
    return counts_.data();
}

void Simulation::run_all(std::span<const OfCore> part) {
    const auto counts = [this] { return counts_.data(); };
    for (const OfCore& one : part)
        if (is_operation(one))
            hierarchy_.operate(one.core, one.reference, counts());
        else if (!hierarchy_.refer_quickly(one.core, one.reference, {}, counts))
            hierarchy_.refer(one.core, one.reference, {}, counts());
}

void Simulation::forget(std::uint32_t core) {
    front_.forget(core);
    if (first_caches_) first_caches_->forget(core);
    hierarchy_.forget(core);
}

namespace {

// Which references the driver records for the machine, of threads that have a core each and take
// turns.
class Recorded {
  public:
    explicit Recorded(const Machine& machine) : line_(machine.line) {
        const machine::NeededRecords needed = machine::needed_records(machine);
        spec_.fetch = {machine.line, needed.fetch_sets};
        spec_.data = {machine.line, needed.data_sets};
        if (needed.data_sets != 0) spec_.data.kind = assay::trace::Filter::kFirstWrites;
    }

    bool is(const OfCore& one) {
        if (core_ != one.core) filters_.emplace(spec_);
        core_ = one.core;
        const machine::Reference& reference = one.reference;
        if (is_operation(one)) {
            if (reference.operation != machine::LineOperation::kPrefetch) filters_.emplace(spec_);
            return true;
        }
        if (reference.kind != Kind::kFetch)
            return filters_->data.passes(reference.address, reference.bytes, reference.writes);
        const std::uint64_t last = (reference.address + reference.bytes - 1) / line_;
        return !filters_->fetch.is_there() ||
               filters_->fetch.misses(reference.address, 0,
                                      static_cast<unsigned>(last - reference.address / line_));
    }
    // Another thread begins on the core, or pages have changed.
    void forget() { core_.reset(); }

  private:
    struct Filters {
        explicit Filters(const assay::trace::Spec& spec)
            : fetch(spec.fetch, 1, assay::replay::kNoLine), data(spec) {}
        assay::replay::LruCache fetch;
        assay::replay::DataFilter data;
    };

    std::uint64_t line_;
    assay::trace::Spec spec_{};
    std::optional<std::uint32_t> core_;
    std::optional<Filters> filters_;  // of the core
};

}  // namespace

std::string difference(const Machine& machine, const std::vector<OfCore>& references,
                       const std::vector<Change>& changes) {
    const machine::Columns columns(machine);
    Simulation one_by_one(machine, columns), in_parts(machine, columns),
        in_advance(machine, columns, true);
    model::Model plain(machine, columns);
    std::vector<std::uint64_t> of_plain(columns.size());
    machine::PageSizes sizes(machine.transparent);
    bool translate_anew = false;
    const std::uint32_t cores = cores_of(machine);
    auto change = changes.begin();
    Recorded recorded(machine);
    std::vector<OfCore> part;
    for (std::size_t i = 0; i < references.size(); ++i) {
        const OfCore& one = references[i];
        for (; change != changes.end() && change->before <= i; ++change) {
            sizes.set(change->start, change->bytes, change->memory);
            translate_anew = true;
            recorded.forget();
            plain.set_memory(change->start, change->bytes, change->memory);
        }
        if (machine.cores == 0 && i % 512 == 511) {
            one_by_one.forget(one.core);
            in_parts.forget(one.core);
            in_advance.forget(one.core);
            recorded.forget();
            plain.forget(one.core);
            translate_anew = true;
        }
        if (std::exchange(translate_anew, false))
            for (std::uint32_t core = 0; core < cores; ++core) {
                one_by_one.translate_by(core, sizes);
                in_parts.translate_by(core, sizes);
                in_advance.translate_by(core, sizes);
            }
        if (one.reference.operation != machine::LineOperation::kNone)
            plain.operate(one.core, one.reference, of_plain.data());
        else
            plain.refer(one.core, one.reference, of_plain.data());
        const auto compared = [&](const char* how, const std::uint64_t* counts) {
            std::string found;
            for (std::uint32_t column = 0; column < columns.size(); ++column)
                if (counts[column] != of_plain[column])
                    found += std::string(" ") + columns.events()[column].name + " is " +
                             std::to_string(counts[column]) + ", by the model " +
                             std::to_string(of_plain[column]);
            if (found.empty()) return found;
            return "reference " + std::to_string(i) + " of core " + std::to_string(one.core) +
                   " to " + std::to_string(one.reference.address) + how + ":" + found;
        };
        const bool is_recorded = recorded.is(one);
        if (is_recorded) part.push_back(one);
        std::string found =
            compared("", is_recorded ? one_by_one.run({&one, 1}) : one_by_one.counts());
        const std::size_t next = i + 1;
        const bool ends = next == references.size() || references[next].core != one.core ||
                          (machine.cores == 0 && next % 512 == 511) || next % 97 == 0 ||
                          (change != changes.end() && change->before <= next);
        if (found.empty() && ends && !part.empty()) {
            found = compared(", in a part", in_parts.run(part));
            if (found.empty()) found = compared(", in advance", in_advance.run(part));
            part.clear();
        }
        if (!found.empty()) return found;
    }
    return "";
}

std::string difference(const Machine& machine, std::uint64_t seed, int count) {
    Random random(seed);
    return difference(machine, references(random, machine, count));
}

Counts::Counts(const Machine& machine, const std::vector<OfCore>& references,
               const std::vector<Change>& changes)
    : columns_(machine), counts_(columns_.size()) {
    Simulation simulation(machine, columns_);
    machine::PageSizes sizes(machine.transparent);
    auto change = changes.begin();
    for (std::size_t i = 0; i < references.size(); ++i) {
        for (; change != changes.end() && change->before <= i; ++change) {
            sizes.set(change->start, change->bytes, change->memory);
            simulation.translate_by(0, sizes);
        }
        const std::uint64_t* const counts = simulation.run({&references[i], 1});
        counts_.assign(counts, counts + columns_.size());
    }
}

std::uint64_t Counts::operator[](const std::string& name) const {
    for (std::size_t i = 0; i < counts_.size(); ++i)
        if (columns_.events()[i].name == name) return counts_[i];
    throw std::out_of_range("no column " + name);
}

}  // namespace streams
