#include "plugins/classic/value_kernel.h"

#include <immintrin.h>

namespace classic {
namespace {

struct Lanes {
    // Does not branch on whether the value has a counter, because that is hard to predict. Writes
    // whole vectors where the next call reads vectors: a load cannot take its parts from several
    // stores that have not reached the cache (Intel 64 and IA-32 Optimization Reference Manual,
    // "Store Forwarding").
    static bool count(ValueSet& set, std::uint64_t value, bool may_lower) {
        const __m512i wanted = _mm512_set1_epi64(static_cast<long long>(value));
        const __m512i values = _mm512_load_si512(set.values);
        const auto at = reinterpret_cast<__m256i*>(set.counts);
        const __m256i counts = _mm256_load_si256(at);
        const unsigned same = _mm512_cmpeq_epi64_mask(values, wanted);
        const unsigned free = _mm256_testn_epi32_mask(counts, counts);
        const unsigned found = same | free << kWays;
        if (found == 0) return Kernel<Lanes>::lower(set, may_lower);
        const unsigned chosen = found & (0 - found);
        const auto is_new = static_cast<__mmask8>(chosen >> kWays);
        const auto way = static_cast<__mmask8>(chosen | is_new);
        const __m256i most = _mm256_set1_epi32(-1);
        if (_mm256_mask_cmpeq_epi32_mask(way, counts, most) != 0) [[unlikely]]
            return false;
        _mm512_store_si512(set.values, _mm512_mask_mov_epi64(values, way, wanted));
        _mm256_store_si256(at, _mm256_mask_sub_epi32(counts, way, counts, most));
        _mm512_mask_store_epi64(set.since, is_new,
                                _mm512_set1_epi64(static_cast<long long>(set.lowered)));
        return true;
    }
};

}  // namespace

void count_avx512(ValueTables& tables, const trace_record_t* records, std::size_t n) {
    Kernel<Lanes>::run(tables, records, n);
}

}  // namespace classic
