#include "plugins/cache/kernel.h"

namespace cache {
namespace {

struct Ways {
    // Makes `line` the most recent of the set and returns true if it was present.
    static bool touch(std::uint64_t* tags, std::uint32_t ways, std::uint64_t line) {
        std::uint64_t carried = line;
        for (std::uint32_t i = 0; i < ways; ++i) {
            const std::uint64_t tag = tags[i];
            tags[i] = carried;
            if (tag == line) return true;
            carried = tag;
        }
        return false;
    }
};

}  // namespace

void simulate_baseline(const Tables& tables, const trace_record_t* records, std::size_t count) {
    simulate<Ways>(tables, records, count);
}

}  // namespace cache
