#include "framework/driver/native/capture/miss_sampler.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace assay::native {
namespace {

constexpr std::size_t kSampledPart = 64;  // one record of so many
constexpr unsigned kFewMisses = 128;      // sampled ones; fewer are not worth a translation
// A mispredicted branch costs some 20 cycles, a check without a branch some 3 more than one with.
constexpr std::uint64_t kOften = 8;  // one execution of so many

}  // namespace

std::span<const std::uint32_t> MissSampler::sample(std::span<const trace_record_t> buffer) {
    found_.clear();
    if (misses_.size() < trace_.next_site()) misses_.resize(trace_.next_site());
    for (const trace_record_t& record : buffer.first(buffer.size() / kSampledPart)) {
        std::uint16_t& misses = misses_[record.site];
        if (misses == std::numeric_limits<std::uint16_t>::max()) continue;
        ++misses;
        if (misses >= kFewMisses && std::has_single_bit(misses) && misses_often(record.site))
            found_.push_back(record.site);
    }
    return found_;
}

bool MissSampler::misses_often(std::uint32_t site) const {
    if (site >= misses_.size() || misses_[site] < kFewMisses) return false;
    return misses_[site] * kSampledPart * kOften > trace_.executions(site);
}

}  // namespace assay::native
