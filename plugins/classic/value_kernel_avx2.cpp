#include "plugins/classic/value_kernel.h"

#include <immintrin.h>

namespace classic {
namespace {

struct Lanes {
    static bool count(ValueSet& set, std::uint64_t value, bool may_lower) {
        const __m256i wanted = _mm256_set1_epi64x(static_cast<long long>(value));
        const auto half = [&](const std::uint64_t* four) {
            const __m256i loaded = _mm256_load_si256(reinterpret_cast<const __m256i*>(four));
            return static_cast<unsigned>(
                _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(loaded, wanted))));
        };
        const __m256i counts = _mm256_load_si256(reinterpret_cast<const __m256i*>(set.counts));
        const auto free = static_cast<unsigned>(_mm256_movemask_ps(
            _mm256_castsi256_ps(_mm256_cmpeq_epi32(counts, _mm256_setzero_si256()))));
        return Kernel<Lanes>::count_in(set, value, half(set.values) | half(set.values + 4) << 4,
                                       free, may_lower);
    }
};

}  // namespace

void count_avx2(ValueTables& tables, const trace_record_t* records, std::size_t n) {
    Kernel<Lanes>::run(tables, records, n);
}

}  // namespace classic
