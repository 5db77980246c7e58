#include "plugins/classic/value_kernel.h"

#include <immintrin.h>

namespace classic {
namespace {

struct Lanes {
    static unsigned equal(const std::uint64_t* values, std::uint64_t value) {
        const __m256i wanted = _mm256_set1_epi64x(static_cast<long long>(value));
        const auto half = [&](const std::uint64_t* four) {
            const __m256i loaded = _mm256_load_si256(reinterpret_cast<const __m256i*>(four));
            return static_cast<unsigned>(
                _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(loaded, wanted))));
        };
        return half(values) | half(values + 4) << 4;
    }
    static unsigned zero(const std::uint32_t* counts) {
        const __m256i loaded = _mm256_load_si256(reinterpret_cast<const __m256i*>(counts));
        return static_cast<unsigned>(_mm256_movemask_ps(
            _mm256_castsi256_ps(_mm256_cmpeq_epi32(loaded, _mm256_setzero_si256()))));
    }
};

}  // namespace

void count_avx2(ValueTables& tables, const trace_record_t* records, std::size_t n) {
    Kernel<Lanes>::run(tables, records, n);
}

}  // namespace classic
