#include "plugins/classic/value_kernel.h"

namespace classic {
namespace {

struct Lanes {
    template <typename Number>
    static unsigned find(const Number* numbers, Number wanted) {
        unsigned found = 0;
        for (unsigned i = 0; i < kWays; ++i) found |= unsigned{numbers[i] == wanted} << i;
        return found;
    }
    static unsigned equal(const std::uint64_t* values, std::uint64_t value) {
        return find(values, value);
    }
    static unsigned zero(const std::uint32_t* counts) { return find(counts, std::uint32_t{0}); }
};

}  // namespace

void count_baseline(ValueTables& tables, const trace_record_t* records, std::size_t n) {
    Kernel<Lanes>::run(tables, records, n);
}

}  // namespace classic
