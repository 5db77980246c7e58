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
    static bool count(ValueSet& set, std::uint64_t value, bool may_lower) {
        return Kernel<Lanes>::count_in(set, value, find(set.values, value),
                                       find(set.counts, std::uint32_t{0}), may_lower);
    }
};

}  // namespace

void count_baseline(ValueTables& tables, const trace_record_t* records, std::size_t n) {
    Kernel<Lanes>::run(tables, records, n);
}

}  // namespace classic
