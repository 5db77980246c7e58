#include "framework/driver/native/translate/miss_sampler.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace assay::native {
namespace {

constexpr std::size_t kSampledPart = 64;  // one record of so many
constexpr unsigned kFewMisses = 128;      // sampled ones; fewer are not worth a translation
// A mispredicted branch costs some 20 cycles, a check without a branch some 3 more than one with.
constexpr std::uint64_t kOften = 8;  // one execution of so many
// A record more costs the collector half as much, which has more to do than the driver.
constexpr std::uint64_t kOftenNew = 2;  // with Spec::runs: a new run at one reference of so many

}  // namespace

// All sites of an operand leave references out or none does, so that they are looked at as one.
std::uint32_t MissSampler::counted_as(std::uint32_t site) const {
    return trace_.spec().runs ? trace_.run_of_site(site) : site;
}

std::span<const std::uint32_t> MissSampler::sample(std::span<const trace_record_t> buffer) {
    found_.clear();
    const std::size_t most =
        std::max<std::size_t>(trace_.next_site(), trace_.run_count() + std::size_t{1});
    if (misses_.size() < most) misses_.resize(most);
    if (trace_.spec().runs) references_.resize(misses_.size());
    for (const trace_record_t& record : buffer.first(buffer.size() / kSampledPart)) {
        const std::uint32_t which = counted_as(record.site);
        std::uint16_t& misses = misses_[which];
        if (misses == std::numeric_limits<std::uint16_t>::max()) continue;
        ++misses;
        if (trace_.spec().runs) references_[which] += record.aux + 1U;
        if (misses >= kFewMisses && std::has_single_bit(misses) && misses_often(record.site))
            find_all(record.site);
    }
    return found_;
}

void MissSampler::find_all(std::uint32_t site) {
    if (!trace_.spec().runs) return found_.push_back(site);
    const std::uint32_t run = trace_.run_of_site(site);
    for (std::uint32_t other = 0; other < trace_.next_site(); ++other)
        if (trace_.run_of_site(other) == run) found_.push_back(other);
}

bool MissSampler::misses_often(std::uint32_t site) const {
    const std::uint32_t which = counted_as(site);
    if (which >= misses_.size() || misses_[which] < kFewMisses) return false;
    if (trace_.spec().runs) return misses_[which] * kOftenNew > references_[which];
    return misses_[which] * kSampledPart * kOften > trace_.executions(site);
}

}  // namespace assay::native
