#include "plugins/cache/kernel.h"

#include <immintrin.h>

namespace cache {
namespace {

struct Ways {
    // Makes `line` the most recent of the set and returns true if it was present. Handles eight
    // ways at a time: the tags other than `line` close up and move back by one way, without a
    // branch.
    static bool touch(std::uint64_t* tags, std::uint32_t ways, std::uint64_t line) {
        const __m512i wanted = _mm512_set1_epi64(static_cast<long long>(line));
        __m512i before = wanted;
        for (std::uint32_t i = 0; i < ways; i += 8) {
            const auto used = static_cast<__mmask8>(ways - i >= 8 ? 0xFF : (1u << (ways - i)) - 1);
            const __m512i old = _mm512_load_si512(tags + i);
            const __mmask8 others = _mm512_mask_cmpneq_epi64_mask(used, old, wanted);
            const __m512i kept = _mm512_maskz_compress_epi64(others, old);
            _mm512_store_si512(tags + i, _mm512_maskz_alignr_epi64(used, kept, before, 7));
            if (others != used) return true;
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
