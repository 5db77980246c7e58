#include "plugins/cache/kernel.h"

#include <immintrin.h>

namespace cache {
namespace {

struct Ways {
    // Makes `line` the most recent of the set and returns whether it was present: eight ways at
    // a time, all tags up to the one that hits move back by one way, without a branch.
    static bool touch(std::uint64_t* tags, std::uint32_t ways, std::uint64_t line) {
        const __m512i wanted = _mm512_set1_epi64(static_cast<long long>(line));
        __m512i before = wanted;
        for (std::uint32_t i = 0; i < ways; i += 8) {
            const std::uint32_t used = ways - i >= 8 ? 0xFF : (1u << (ways - i)) - 1;
            const __m512i old = _mm512_load_si512(tags + i);
            const std::uint32_t hit = _mm512_cmpeq_epi64_mask(old, wanted) & used;
            // Up to and including the lowest bit of `hit`, or all if there is none.
            const std::uint32_t moved = (hit ^ (hit - 1)) & used;
            const __m512i shifted = _mm512_alignr_epi64(old, before, 7);
            _mm512_store_si512(tags + i,
                               _mm512_mask_mov_epi64(old, static_cast<__mmask8>(moved), shifted));
            if (hit != 0) return true;
            before = old;
        }
        return false;
    }
};

}  // namespace

void simulate_avx512(const Tables& tables, const trace_record_t* records, std::size_t count) {
    simulate<Ways>(tables, records, count);
}

}  // namespace cache
