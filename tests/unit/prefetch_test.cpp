// The prefetch profiler: strides of misses, and misses that a prefetch avoids.
#include "plugins/prefetch/misses.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <list>
#include <random>

namespace prefetch_test {

using namespace prefetch;

namespace {

constexpr cache::Geometry kSmall{1024, 4, 64};  // 4 sets

// Two instructions that read 4 bytes each, at 0x1000 and 0x1004.
struct Program {
    Program() : misses(kSmall) {
        trace_instr_t first{}, second{};
        first.pc = 0x1000, second.pc = 0x1004;
        first.flags = second.flags = TRACE_INSTR_LOAD;
        instrs = {first, second};
        sites = {{0, 4, TRACE_SITE_READ, 0}, {1, 4, TRACE_SITE_READ, 0}};
        misses.learn(sites, instrs);
    }
    void read(std::uint32_t site, std::uint64_t address) { records.push_back({address, site, 0}); }
    // Call it once.
    const Operand& first() {
        misses.process(0, records, true);
        return misses.operands().front();
    }

    Misses misses;
    std::vector<trace_instr_t> instrs;
    std::vector<trace_site_t> sites;
    std::vector<trace_record_t> records;
};

// The misses of the first instruction if it prefetches `stride` * `ahead` bytes ahead; 0: it does
// not.
std::uint64_t misses_with(const std::vector<trace_record_t>& records, std::int64_t stride,
                          std::uint64_t ahead) {
    std::vector<std::list<std::uint64_t>> sets(kSmall.sets());
    const auto misses = [&](std::uint64_t address) {
        const std::uint64_t line = address / kSmall.line;
        std::list<std::uint64_t>& set = sets[line % sets.size()];
        const auto at = std::find(set.begin(), set.end(), line);
        const bool missing = at == set.end();
        if (!missing) set.erase(at);
        set.push_front(line);
        if (set.size() > kSmall.ways) set.pop_back();
        return missing;
    };
    std::uint64_t count = 0;
    for (const trace_record_t& record : records) {
        if (record.site == 0 && ahead != 0)
            misses(record.value + ahead * static_cast<std::uint64_t>(stride));
        if (misses(record.value) && record.site == 0) ++count;
    }
    return count;
}

}  // namespace

TEST_CASE("prefetch: a random walk has no stride, and nothing avoids its misses") {
    Program program;
    std::mt19937 random(1);
    for (int i = 0; i < 1000; ++i) program.read(0, random() * std::uint64_t{64});
    const Operand& operand = program.first();
    CHECK(operand.misses() > 990);
    CHECK(operand.best().misses == 0);
}

TEST_CASE("prefetch: the first miss of a run counts as soon as its stride is known") {
    Program program;
    for (const std::uint64_t address :
         {0x10000, 0x10100, 0x10104, 0x10108, 0x20000, 0x20040, 0x20080})
        program.read(0, address);
    // The strides are 256, 4, 4, far, 64, 64.
    const Operand& operand = program.first();
    const Stride best = operand.best();
    CHECK(operand.misses() == 5);
    CHECK(best.stride == 64);
    CHECK(best.misses == 2);
    CHECK(best.saved == std::array<std::uint64_t, kDistances>{2, 1});
}

TEST_CASE("prefetch: more strides than are kept") {
    Program program;
    std::uint64_t at = 0;
    for (std::uint64_t stride = 64; stride < 64 * 40; stride += 64)
        for (int i = 0; i < 3; ++i) program.read(0, at += stride);
    for (int i = 0; i < 50; ++i) program.read(0, at += 4096);
    const Stride best = program.first().best();
    CHECK(best.stride == 4096);
    CHECK(best.misses == 50);
}

TEST_CASE("prefetch: the avoided misses are those of a program that prefetches") {
    std::mt19937 random(2);
    for (int round = 0; round < 300; ++round) {
        Program program;
        const std::int64_t stride = static_cast<std::int64_t>(random() % 12 + 1) * 64;
        const bool alone = round % 2 == 0;
        std::uint64_t at = 1 << 20;
        for (int run = 0; run < 20; ++run) {
            at += (std::uint64_t{1} << 20) + random() % 64 * 64;
            const unsigned length = 3 + random() % 90;
            for (unsigned i = 0; i < length; ++i) {
                program.read(0, at += static_cast<std::uint64_t>(stride));
                if (!alone) program.read(1, random() % 24 * 64);
            }
        }
        const Operand& operand = program.first();
        const Stride best = operand.best();
        CHECK(best.stride == stride);
        const std::uint64_t all = misses_with(program.records, 0, 0);
        CHECK(operand.misses() == all);
        for (unsigned i = 0; i < kDistances; ++i)
            CHECK(best.saved[i] == all - misses_with(program.records, stride, 1U << i));
    }
}

}  // namespace prefetch_test
