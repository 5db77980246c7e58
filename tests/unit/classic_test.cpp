// Counting values in bounded memory, and how values are printed.
#include "framework/collector/results/counts.h"
#include "plugins/classic/value_table.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <map>
#include <random>

namespace classic_test {

using namespace classic;

namespace {

using Exact = std::map<std::uint64_t, std::uint64_t>;

// A stream of values at one site.
struct Stream {
    std::vector<trace_record_t> records;
    Exact exact;

    void add(std::uint64_t value) {
        records.push_back({value, 0, 0});
        ++exact[value];
    }
    Summary counted(ValueKernel kernel) const {
        ValueTables tables;
        ValueTable table;
        table.role = Role::kCounted;
        tables.add(table, 0);
        tables.by_instr.resize(1);
        kernel(tables, records.data(), records.size());
        return tables.summary(0);
    }
};

// What a summary promises.
template <typename List>
void check_bounds(const List& values, std::uint64_t error, const Exact& exact) {
    Exact seen;
    for (const auto& each : values) seen[each.value] = each.count;
    bool good = seen.size() == values.size();
    for (const auto& [value, count] : exact) {
        const auto found = seen.find(value);
        const std::uint64_t listed = found == seen.end() ? 0 : found->second;
        good &= listed <= count && count <= listed + error;
    }
    for (const auto& [value, count] : seen) good &= exact.contains(value);
    CHECK(good);
}

std::vector<ValueKernel> kernels() {
    std::vector<ValueKernel> all{count_baseline};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) all.push_back(count_avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        all.push_back(count_avx512);
#endif
    return all;
}

trace_instr_t instruction(std::uint16_t opcode, std::initializer_list<unsigned> bytes) {
    trace_instr_t instr{};
    instr.opcode = opcode;
    for (const unsigned byte : bytes) instr.bytes[instr.length++] = static_cast<std::uint8_t>(byte);
    return instr;
}

}  // namespace

TEST_CASE("classic: up to eight values are counted exactly") {
    Stream stream;
    std::mt19937_64 random(1);
    for (int i = 0; i < 10'000; ++i) stream.add(random() % 8 * 0x1000);
    for (const ValueKernel kernel : kernels()) {
        const Summary summary = stream.counted(kernel);
        CHECK(summary.total == 10'000);
        CHECK(summary.zeros == stream.exact[0]);
        CHECK(summary.error == 0);
        CHECK(summary.rest() == 0);
        REQUIRE(summary.values.size() == 8);
        for (const Counted& each : summary.values) CHECK(each.count == stream.exact[each.value]);
    }
}

TEST_CASE("classic: a value of 90 % is counted exactly among any others") {
    Stream stream;
    for (std::uint64_t i = 0; i < 10'000; ++i) stream.add(i % 10 == 3 ? i : 7);
    for (const ValueKernel kernel : kernels()) {
        const Summary summary = stream.counted(kernel);
        CHECK(summary.values.front().value == 7);
        CHECK(summary.values.front().count == 9'000);
        CHECK(summary.repeated == 8'000 - 1);
        check_bounds(summary.values, summary.error, stream.exact);
    }
}

TEST_CASE("classic: the error is what it says") {
    std::mt19937_64 random(2);
    for (const unsigned kinds : {9U, 60U, 100U, 5'000U, 1'000'000U}) {
        Stream stream;
        while (stream.records.size() < 50'000) {
            // The lower the more frequent, some of them in runs.
            const std::uint64_t value = random() % (random() % kinds + 1);
            for (std::uint64_t run = random() % 4 == 0 ? random() % 30 : 1; run > 0; --run)
                stream.add(value);
        }
        for (const ValueKernel kernel : kernels()) {
            Summary summary = stream.counted(kernel);
            CHECK(summary.total == stream.records.size());
            CHECK(summary.zeros == stream.exact[0]);
            CHECK(summary.error < stream.records.size() / 9);
            CHECK(summary.error == stream.counted(count_baseline).error);
            CHECK(std::equal(summary.values.begin(), summary.values.end(),
                             stream.counted(count_baseline).values.begin(),
                             [](const Counted& x, const Counted& y) {
                                 return x.value == y.value && x.count == y.count;
                             }));
            check_bounds(summary.values, summary.error, stream.exact);
            summary.shorten(10);
            check_bounds(summary.values, summary.error, stream.exact);
        }
        assay::collector::TopValues top;
        for (const trace_record_t& record : stream.records) top.add(record.value, 1);
        const assay::events::Hotlist list = top.list();
        CHECK(defect(list) == nullptr);
        CHECK(list.total == stream.records.size());
        CHECK(list.error <= stream.records.size() / assay::collector::TopValues::kTracked);
        check_bounds(list.values, list.error, stream.exact);
    }
}

TEST_CASE("classic: an instruction in several basic blocks has lost what each of them has") {
    std::mt19937_64 random(3);
    Stream stream;
    for (std::uint32_t i = 0; i < 50'000; ++i) {
        stream.add(random() % (random() % 300 + 1));
        stream.records.back().site = i % 3 == 0 ? 1 : 0;
    }
    ValueTables tables;
    for (int block = 0; block < 2; ++block) {
        ValueTable table;
        table.role = Role::kCounted;
        tables.add(table, 0x1000);
    }
    tables.by_instr.resize(1);
    tables.count(stream.records.data(), stream.records.size());
    const Summary summary = tables.summary(0);
    CHECK(summary.total == 50'000);
    CHECK(summary.error > 0);
    check_bounds(summary.values, summary.error, stream.exact);
}

// A multiple of what kHashMultiplier is the inverse of, modulo 2^64, has that factor as its hash.
TEST_CASE("classic: values that all have the same set") {
    std::uint64_t inverse = 1;
    for (int i = 0; i < 6; ++i) inverse *= 2 - kHashMultiplier * inverse;
    REQUIRE(inverse * kHashMultiplier == 1);
    for (const std::uint64_t set : {0, 5}) {
        const auto value = [&](std::uint64_t i) { return (set << kHashShift | i) * inverse; };
        Stream stream;
        for (int round = 0; round < 100; ++round)
            for (std::uint64_t i = 1; i <= kWays; ++i) stream.add(value(i));
        for (std::uint64_t i = 0; i < 3; ++i) stream.add(value(kWays + 1 + i));
        for (const ValueKernel kernel : kernels()) {
            const Summary summary = stream.counted(kernel);
            CHECK(summary.total == kWays * 100 + 3);
            CHECK(summary.error == 3);
            REQUIRE(summary.values.size() == kWays);
            for (const Counted& each : summary.values) CHECK(each.count == 100);
            check_bounds(summary.values, summary.error, stream.exact);
        }
    }
}

TEST_CASE("classic: a store is silent if none of its parts changes anything") {
    for (const ValueKernel kernel : kernels()) {
        ValueTables tables;
        for (const Role role : {Role::kStored, Role::kOverwritten})
            for (std::uint8_t part = 0; part < 4; ++part) {
                ValueTable table;
                table.role = role;
                table.part = part;
                table.parts = 4;
                tables.add(table, 0x1000);
            }
        tables.by_instr.resize(1);
        const auto store = [&](const std::vector<std::uint64_t>& halves) {
            std::vector<trace_record_t> records;
            for (std::uint32_t i = 0; i < halves.size(); ++i) records.push_back({halves[i], i, 0});
            kernel(tables, records.data(), records.size());
        };
        store({1, 2, 3, 4, 1, 2, 3, 4});
        CHECK(tables.by_instr[0].stores == 1);
        CHECK(tables.by_instr[0].silent == 1);
        for (unsigned changed = 0; changed < 4; ++changed) {
            std::vector<std::uint64_t> halves{1, 2, 3, 4, 1, 2, 3, 4};
            halves[4 + changed] = 9;
            store(halves);
        }
        CHECK(tables.by_instr[0].stores == 5);
        CHECK(tables.by_instr[0].silent == 1);
        store({9, 9, 9, 9, 9, 9, 9, 9});
        CHECK(tables.by_instr[0].silent == 2);
        CHECK(tables.of_all_instrs.stores == 6);
        // Only the low 8 bytes of what is stored are counted as a value.
        const Summary summary = tables.summary(0);
        CHECK(summary.total == 6);
        CHECK(summary.top() == 5);
        CHECK(tables.first_sites.size() == 1);
    }
}

TEST_CASE("classic: totals during a run are those of all summaries so far") {
    ValueTables tables;
    for (const std::uint64_t pc : {0x1000, 0x1001, 0x1000, 0x1000}) {
        ValueTable table;
        table.role = tables.by_site.size() == 3 ? Role::kOverwritten : Role::kCounted;
        tables.add(table, pc);
    }
    tables.by_instr.resize(1);
    RunningTotals running;
    std::mt19937_64 random(7);
    Exact first, second;  // sites 0 and 2 are of one instruction
    std::uint64_t zeros = 0;
    std::vector<trace_record_t> all;
    for (int round = 0; round < 20; ++round) {
        std::vector<trace_record_t> records;
        for (int i = 0; i < 50; ++i) {
            const auto site = static_cast<std::uint32_t>(round % 3 == 0 ? 1 : random() % 3);
            const std::uint64_t value = random() % 5;
            records.push_back({value, site, 0});
            ++(site == 1 ? second : first)[value];
            zeros += value == 0;
        }
        tables.count(records.data(), records.size());
        running.touch(tables, records.data(), records.size());
        all.insert(all.end(), records.begin(), records.end());
        if (round % 2 != 0) continue;
        const auto top = [](const Exact& values) {
            std::uint64_t most = 0;
            for (const auto& [value, count] : values) most = std::max(most, count);
            return most;
        };
        const Totals totals = running.of(tables);
        CHECK(totals.values == 50U * (round + 1));
        CHECK(totals.zeros == zeros);
        CHECK(totals.top == top(first) + top(second));
        RunningTotals anew;
        anew.touch(tables, all.data(), all.size());
        CHECK(anew.of(tables).repeated == totals.repeated);
    }
}

TEST_CASE("classic: counts beyond 32 bits are kept") {
    ValueTables tables;
    tables.by_site.resize(1);
    tables.by_instr.resize(1);
    tables.count_slowly(0, 5);
    tables.count_slowly(0, 6);
    std::uint32_t& full = tables.by_site[0].sets[0].counts[0];
    for (int i = 0; i < 3; ++i) {
        full = kMostCount;
        tables.count_slowly(0, 5);
    }
    CHECK(full == 1);
    const Summary summary = tables.summary(0);
    REQUIRE(summary.values.size() == 2);
    CHECK(summary.values[0].count == 3 * std::uint64_t{kMostCount} + 1);
    CHECK(summary.values[1].count == 1);
    tables.by_site[0].free();
}

TEST_CASE("classic: stores that change nothing") {
    ValueTables tables;
    for (const Role role : {Role::kStored, Role::kOverwritten}) {
        ValueTable table;
        table.role = role;
        tables.by_site.push_back(table);
    }
    tables.by_instr.resize(1);
    for (std::uint64_t i = 0; i < 10; ++i) {
        const trace_record_t records[] = {{i / 2, 0, 0}, {i, 1, 0}};
        tables.count(records, 2);
    }
    CHECK(tables.by_instr[0].stores == 10);
    CHECK(tables.by_instr[0].silent == 1);
    CHECK(tables.of_all_instrs.stores == 10);
    CHECK(tables.of_all_instrs.silent == 1);
}

TEST_CASE("classic: values are printed as what they are") {
    const auto movsd = instruction(TRACE_OPCODE(1, 0x10), {0xf2, 0x0f, 0x10, 0x00});
    const auto movss = instruction(TRACE_OPCODE(1, 0x10), {0xf3, 0x0f, 0x10, 0x00});
    const auto vaddpd = instruction(TRACE_OPCODE(0x11, 0x58), {0xc5, 0xfd, 0x58, 0xc1});
    const auto fma = instruction(TRACE_OPCODE(0x12, 0xb9), {0xc4, 0xe2, 0xf1, 0xb9, 0xc2});
    const auto fld = instruction(TRACE_OPCODE(0, 0xd9), {0xd9, 0x00});
    const auto fnstsw = instruction(TRACE_OPCODE(0, 0xdf), {0xdf, 0xe0});
    const auto fldcw = instruction(TRACE_OPCODE(0, 0xd9), {0xd9, 0x28});
    const auto cvtsi2sd = instruction(TRACE_OPCODE(1, 0x2a), {0xf2, 0x0f, 0x2a, 0xc0});
    const auto mov = instruction(TRACE_OPCODE(0, 0x8b), {0x48, 0x8b, 0x00});
    CHECK(reading_of(movsd, Operand::kLoaded) == Reading::kDouble);
    CHECK(reading_of(movss, Operand::kLoaded) == Reading::kSingle);
    CHECK(reading_of(vaddpd, Operand::kResult) == Reading::kDouble);
    CHECK(reading_of(fma, Operand::kResult) == Reading::kDouble);
    CHECK(reading_of(fld, Operand::kLoaded) == Reading::kSingle);
    CHECK(reading_of(fldcw, Operand::kLoaded) == Reading::kInteger);
    CHECK(reading_of(fld, Operand::kResult) == Reading::kDouble);
    CHECK(reading_of(fnstsw, Operand::kResult) == Reading::kInteger);
    CHECK(reading_of(cvtsi2sd, Operand::kResult) == Reading::kDouble);
    CHECK(reading_of(cvtsi2sd, Operand::kFirstSource) == Reading::kInteger);
    CHECK(reading_of(mov, Operand::kLoaded) == Reading::kInteger);
    CHECK(format(Reading::kDouble, 0x3ff0000000000000) == "1.0");
    CHECK(format(Reading::kDouble, 0x3fb999999999999a) == "0.1");
    CHECK(format(Reading::kDouble, 0x7ff8000000000000) == "nan");
    CHECK(format(Reading::kSingle, 0x40500000) == "3.25");
    CHECK(format(Reading::kInteger, 42) == "42");
    CHECK(format(Reading::kInteger, ~std::uint64_t{0}) == "-1");
    CHECK(format(Reading::kInteger, 0x7fffdeadbeef) == "0x7fffdeadbeef");
}

}  // namespace classic_test
