#include "plugins/cache/simulator.h"

#include <sys/mman.h>
#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>
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
#if defined(__x86_64__)
    if (set == InstructionSet::kAvx512) return simulate_avx512;
    if (set == InstructionSet::kAvx2) return simulate_avx2;
#endif
    return set == InstructionSet::kBaseline ? simulate_baseline : nullptr;
}

}  // namespace

bool supported(InstructionSet set) {
#if defined(__x86_64__)
    if (set == InstructionSet::kAvx512) return __builtin_cpu_supports("avx512f");
    if (set == InstructionSet::kAvx2) return __builtin_cpu_supports("avx2");
#endif
    return set == InstructionSet::kBaseline;
}

InstructionSet best_instruction_set() {
    for (const InstructionSet set : {InstructionSet::kAvx512, InstructionSet::kAvx2})
        if (supported(set)) return set;
    return InstructionSet::kBaseline;
}

namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;

// True for the last levels of most machines. A reference then seldom misses the processor's
// translation buffers. Smaller levels would waste a large page, and larger ones many of them.
bool has_large_pages(std::size_t bytes) {
    return bytes >= kLargePage / 4 && bytes <= 8 * kLargePage;
}

}  // namespace

// Fresh pages are zero, the initial value of tags, and cost nothing until they are touched. A
// simulated LL can therefore be as large as a server's.
OwnLevel::OwnLevel(const Geometry& geometry)
    : level_{.tags = nullptr,
             .set_mask = geometry.sets() - 1,
             .line_shift = static_cast<std::uint32_t>(std::countr_zero(geometry.line)),
             .ways = geometry.ways,
             .stride = stride(geometry.ways)} {
    const bool large = has_large_pages(bytes(level_));
    const std::size_t whole = (bytes(level_) + kLargePage - 1) & ~(kLargePage - 1);
    mapped_bytes_ = large ? whole + kLargePage : bytes(level_);
    memory_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    void* first = memory_;
    std::size_t room = mapped_bytes_;
    if (large && std::align(kLargePage, whole, first, room) != nullptr)
        madvise(first, whole, MADV_HUGEPAGE);
    level_.tags = static_cast<std::uint64_t*>(first);
}

OwnLevel::~OwnLevel() {
    munmap(memory_, mapped_bytes_);
}

// Creates the first thread's caches at once, so that a lack of memory shows before the program
// starts.
Simulator::Simulator(const Geometries& geometries, InstructionSet set)
    : geometries_(geometries),
      ll_(geometries.ll),
      kernel_(kernel(set)),
      largest_reference_(static_cast<std::uint16_t>(
          std::min({geometries.i1.line, geometries.d1.line, geometries.ll.line}))) {
    level1_.try_emplace(0, geometries);
}

SiteCounts& SiteCounts::operator+=(const SiteCounts& other) {
    l1_misses += other.l1_misses;
    ll_misses += other.ll_misses;
    references += other.references;
    ended_early += other.ended_early;
    return *this;
}

void Counters::add(SiteCode code) {
    codes_.push_back(code);
    tallies_.emplace_back();
    if (code.target() != SiteCode::kCount) return;
    tallies_.back().l1_misses = static_cast<std::uint32_t>(variable_.size());
    variable_.emplace_back();
}

SiteCounts Counters::counts(std::size_t index) const {
    const Tally& tally = tallies_[index];
    if (codes_[index].target() == SiteCode::kCount) {
        const VariableCounts& counts = variable_[tally.l1_misses];
        return {.references = counts.references, .ended_early = counts.ended_early};
    }
    const auto carried = [&](std::size_t place) {
        const auto found = carries_.find(place);
        return found == carries_.end() ? 0 : found->second << 32;
    };
    return {.l1_misses = carried(2 * index) + tally.l1_misses,
            .ll_misses = carried(2 * index + 1) + tally.ll_misses};
}

void Counters::carry(void* counters, const std::uint32_t* tally) {
    auto& self = *static_cast<Counters*>(counters);
    ++self.carries_[static_cast<std::size_t>(tally - &self.tallies_.front().l1_misses)];
}

void Counters::put_into(Tables& tables) {
    tables.codes = codes_.data();
    tables.tallies = tallies_.data();
    tables.variable = variable_.data();
    tables.carry = carry;
    tables.owner = this;
}

// The layout is that of the tables that are read.
void Counters::put_unread_into(Tables& tables) {
    for (std::size_t i = unread_tallies_.size(); i < tallies_.size(); ++i)
        unread_tallies_.push_back(codes_[i].target() == SiteCode::kCount ? tallies_[i] : Tally{});
    unread_variable_.resize(variable_.size());
    tables.codes = codes_.data();
    tables.tallies = unread_tallies_.data();
    tables.variable = unread_variable_.data();
    tables.carry = [](void*, const std::uint32_t*) {};
}

void Simulator::learn(const trace_site_t* sites, std::size_t count) {
    for (std::size_t i = by_site_.size(); i < count; ++i) {
        const SiteCode::Target kind = target(sites[i]);
        by_site_.add({kind, std::clamp<std::uint16_t>(sites[i].bytes, 1, largest_reference_)});
        is_counted_.push_back(kind != SiteCode::kCount || sites[i].kind == TRACE_SITE_COUNT);
    }
}

SiteCounts Simulator::counts(std::size_t site) const {
    SiteCounts sum;
    each_context(site, [&](std::uint64_t, const SiteCounts& counts) { sum += counts; });
    return sum;
}

void Simulator::process(std::uint32_t thread, const trace_record_t* records, std::size_t count) {
    Tables tables;
    by_site_.put_into(tables);
    simulate(tables, thread, records, count);
}

// Works in portions, so that records and their counts are still in the processor's cache when they
// are simulated.
void Simulator::process(std::uint32_t thread, std::span<const trace_record_t> records,
                        std::span<const std::uint32_t> contexts) {
    constexpr std::size_t kPortion = 256;
    records_by_row_.resize(kPortion);
    while (!records.empty()) {
        const std::size_t count = std::min(kPortion, records.size());
        const std::size_t left = number(records.first(count), contexts.first(count));
        Tables tables;
        by_row_.put_into(tables);
        simulate(tables, thread, records_by_row_.data(), left);
        records = records.subspan(count);
        contexts = contexts.subspan(count);
    }
}

// Copies the counted records to records_by_row_, with rows instead of sites. Returns their number.
std::size_t Simulator::number(std::span<const trace_record_t> records,
                              std::span<const std::uint32_t> contexts) {
    for (std::size_t i = 0; i < records.size(); ++i)
        if (is_counted_[records[i].site]) rows_.prefetch(contexts[i], records[i].site);
    std::size_t count = 0;
    for (std::size_t i = 0; i < records.size(); ++i) {
        const std::uint32_t site = records[i].site;
        if (!is_counted_[site]) continue;
        const std::uint32_t row = rows_.of(contexts[i], site);
        if (row == by_row_.size())
            by_row_.add(by_site_.code(site));
        else
            by_row_.prefetch(row);
        records_by_row_[count] = records[i];
        records_by_row_[count++].site = row;
    }
    return count;
}

void Simulator::warm_up(std::uint32_t thread, const trace_record_t* records, std::size_t count) {
    Tables tables;
    by_site_.put_unread_into(tables);
    simulate(tables, thread, records, count);
}

void Simulator::simulate(Tables& tables, std::uint32_t thread, const trace_record_t* records,
                         std::size_t count) {
    const Level1& own = level1_.try_emplace(thread, geometries_).first->second;
    tables.level1[SiteCode::kInstruction] = own.instruction.level();
    tables.level1[SiteCode::kData] = own.data.level();
    std::copy_n(missed_, std::size(missed_), tables.missed);
    tables.ll = ll_.level();
    kernel_(tables, records, count);
}

}  // namespace cache
