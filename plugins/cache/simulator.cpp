#include "plugins/cache/simulator.h"

#include <sys/mman.h>
#include <algorithm>
#include <bit>
#include <iterator>
#include <new>

namespace cache {
namespace {

std::uint32_t stride(std::uint32_t ways) {
    return (ways + kTagsPerBlock - 1) / kTagsPerBlock * kTagsPerBlock;
}

std::size_t bytes(const Level& level) {
    return (level.set_mask + 1) * level.stride * sizeof(std::uint64_t);
}

SiteCode::Target target(const trace_site_t& site) {
    switch (site.kind) {
        case TRACE_SITE_FETCH:
            return SiteCode::kInstruction;
        case TRACE_SITE_READ:
        case TRACE_SITE_WRITE:
        case TRACE_SITE_MODIFY:
            return SiteCode::kData;
        default:
            return SiteCode::kCount;
    }
}

Kernel kernel(InstructionSet set) {
    switch (set) {
        case InstructionSet::kAvx512:
            return simulate_avx512;
        case InstructionSet::kAvx2:
            return simulate_avx2;
        default:
            return simulate_baseline;
    }
}

}  // namespace

bool supported(InstructionSet set) {
    switch (set) {
        case InstructionSet::kAvx512:
            return __builtin_cpu_supports("avx512f");
        case InstructionSet::kAvx2:
            return __builtin_cpu_supports("avx2");
        default:
            return true;
    }
}

InstructionSet best_instruction_set() {
    for (const InstructionSet set : {InstructionSet::kAvx512, InstructionSet::kAvx2})
        if (supported(set)) return set;
    return InstructionSet::kBaseline;
}

// Fresh pages are zero, which is how tags start, and cost nothing until touched: a simulated LL
// can be as large as a server's.
OwnLevel::OwnLevel(const Geometry& geometry)
    : level_{.tags = nullptr,
             .set_mask = geometry.sets() - 1,
             .line_shift = static_cast<std::uint32_t>(std::countr_zero(geometry.line)),
             .ways = geometry.ways,
             .stride = stride(geometry.ways)} {
    void* const memory = mmap(nullptr, bytes(level_), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    level_.tags = static_cast<std::uint64_t*>(memory);
}

OwnLevel::~OwnLevel() {
    munmap(level_.tags, bytes(level_));
}

// The first thread's caches are made at once: if they are too large for the memory, it is known
// before the program starts.
Simulator::Simulator(const Geometries& geometries, InstructionSet set)
    : geometries_(geometries),
      ll_(geometries.ll),
      kernel_(kernel(set)),
      largest_reference_(static_cast<std::uint16_t>(
          std::min({geometries.i1.line, geometries.d1.line, geometries.ll.line}))) {
    level1_.try_emplace(0, geometries);
}

void Simulator::learn(const trace_site_t* sites, std::size_t count) {
    tallies_.resize(std::max(tallies_.size(), count));
    for (std::size_t i = codes_.size(); i < count; ++i) {
        codes_.emplace_back(target(sites[i]),
                            std::clamp<std::uint16_t>(sites[i].bytes, 1, largest_reference_));
        if (codes_.back().target() != SiteCode::kCount) continue;
        tallies_[i].l1_misses = static_cast<std::uint32_t>(variable_.size());
        variable_.emplace_back();
    }
}

SiteCounts Simulator::counts(std::size_t site) const {
    const Tally& tally = tallies_[site];
    if (codes_[site].target() == SiteCode::kCount) {
        const VariableCounts& counts = variable_[tally.l1_misses];
        return {.references = counts.references, .ended_early = counts.ended_early};
    }
    const auto carried = [&](std::size_t place) {
        const auto found = carries_.find(place);
        return found == carries_.end() ? 0 : found->second << 32;
    };
    return {.l1_misses = carried(2 * site) + tally.l1_misses,
            .ll_misses = carried(2 * site + 1) + tally.ll_misses};
}

void Simulator::carry(void* simulator, const std::uint32_t* tally) {
    auto& self = *static_cast<Simulator*>(simulator);
    ++self.carries_[static_cast<std::size_t>(tally - &self.tallies_.front().l1_misses)];
}

void Simulator::process(std::uint32_t thread, const trace_record_t* records, std::size_t count) {
    Tables tables{.tallies = tallies_.data(), .variable = variable_.data(), .carry = carry};
    simulate(tables, thread, records, count);
}

void Simulator::warm_up(std::uint32_t thread, const trace_record_t* records, std::size_t count) {
    for (std::size_t i = unread_tallies_.size(); i < tallies_.size(); ++i)
        unread_tallies_.push_back(codes_[i].target() == SiteCode::kCount ? tallies_[i] : Tally{});
    unread_variable_.resize(variable_.size());
    Tables tables{.tallies = unread_tallies_.data(),
                  .variable = unread_variable_.data(),
                  .carry = [](void*, const std::uint32_t*) {}};
    simulate(tables, thread, records, count);
}

void Simulator::simulate(Tables& tables, std::uint32_t thread, const trace_record_t* records,
                         std::size_t count) {
    const Level1& own = level1_.try_emplace(thread, geometries_).first->second;
    tables.codes = codes_.data();
    tables.owner = this;
    tables.level1[SiteCode::kInstruction] = own.instruction.level();
    tables.level1[SiteCode::kData] = own.data.level();
    std::copy_n(missed_, std::size(missed_), tables.missed);
    tables.ll = ll_.level();
    kernel_(tables, records, count);
}

}  // namespace cache
