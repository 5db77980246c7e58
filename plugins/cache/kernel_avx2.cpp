#include "plugins/cache/kernel.h"

#include <immintrin.h>

namespace cache {
namespace {

// A vector mask whose lanes are all ones where `bits` is set.
inline __m256i lanes(std::uint32_t bits) {
    const __m256i each = _mm256_setr_epi64x(1, 2, 4, 8);
    return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits), each), each);
}

struct Ways {
    // See kernel_avx512.cpp; this handles four ways at a time.
    static bool touch(std::uint64_t* tags, std::uint32_t ways, std::uint64_t line) {
        const __m256i wanted = _mm256_set1_epi64x(static_cast<long long>(line));
        __m256i before = wanted;
        for (std::uint32_t i = 0; i < ways; i += 4) {
            const std::uint32_t used = ways - i >= 4 ? 0xF : (1u << (ways - i)) - 1;
            auto* const place = reinterpret_cast<__m256i*>(tags + i);
            const __m256i old = _mm256_load_si256(place);
            const __m256i equal = _mm256_cmpeq_epi64(old, wanted);
            const auto bits =
                static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(equal)));
            const std::uint32_t hit = bits & used;
            const std::uint32_t moved = (hit ^ (hit - 1)) & used;
            // Lane 3 of `before`, then lanes 0, 1 and 2 of `old`.
            const __m256i shifted = _mm256_permute4x64_epi64(_mm256_blend_epi32(old, before, 0xC0),
                                                             _MM_SHUFFLE(2, 1, 0, 3));
            _mm256_store_si256(place, _mm256_blendv_epi8(old, shifted, lanes(moved)));
            if (hit != 0) return true;
            before = old;
        }
        return false;
    }
};

}  // namespace

void simulate_avx2(const Tables& tables, const trace_record_t* records, std::size_t count) {
    simulate<Ways>(tables, records, count);
}

}  // namespace cache
