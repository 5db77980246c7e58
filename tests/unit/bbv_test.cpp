// Intervals in the collector, and what the bbv profiler makes of them.
#include "framework/collector/profilers/trace_parser.h"
#include "framework/collector/trace/interval_reader.h"
#include "framework/events/file.h"
#include "plugins/bbv/thread_vectors.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <malloc.h>
#include <array>
#include <string>

namespace bbv_test {

using namespace assay::collector;

namespace {

// Blocks of three and four instructions, and a second translation of the first.
constexpr std::array<trace_block_t, 3> kBlocks{{{0x1000, 0, 3}, {0x2000, 3, 4}, {0x1000, 7, 3}}};
constexpr std::array<trace_site_t, 3> kSites{{{0, 0, TRACE_SITE_BLOCK_COUNT, 0},
                                              {0, 0, TRACE_SITE_BLOCK_CORRECTION, 0},
                                              {0, 0, TRACE_SITE_INTERVAL, 0}}};
constexpr std::uint32_t kCount = 0, kCorrection = 1, kEnd = 2;
const CodeTables kCode{kBlocks, {}, kSites};

using Executed = std::vector<std::pair<std::uint32_t, std::uint64_t>>;

Executed blocks_of(const Interval& interval) {
    Executed blocks;
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < interval.row.block_count; ++i) {
        blocks.emplace_back(interval.row.blocks[i].block, interval.row.blocks[i].instructions);
        sum += interval.row.blocks[i].instructions;
    }
    CHECK(sum == interval.row.instructions);
    return blocks;
}

std::uint64_t negative(std::uint64_t number) {
    return 0 - number;
}

}  // namespace

TEST_CASE("an interval is what counters have grown by since the last one") {
    IntervalReader reader;
    const std::vector<trace_record_t> records{
        {2, kCount, 1}, {5, kCount, 0}, {0, kEnd, 0}, {7, kCount, 0}, {0, kEnd, 0}};
    const auto intervals = reader.take(0, 0, records, kCode);
    REQUIRE(intervals.size() == 2);
    CHECK(blocks_of(intervals[0]) == Executed{{0, 15}, {1, 8}});  // in the order of translation
    CHECK(blocks_of(intervals[1]) == Executed{{0, 6}});
    CHECK(intervals[1].row.complete == 1);
}

// A signal handler that runs for a whole interval between the two parts of a block.
TEST_CASE("what a block has been given in advance it owes until it is executed") {
    IntervalReader reader;
    const std::vector<trace_record_t> records{
        {2, kCorrection, 1}, {0, kEnd, 0}, {negative(2), kCorrection, 1},
        {4, kCount, 0},      {0, kEnd, 0}, {1, kCount, 1},
        {0, kEnd, 0}};
    const auto intervals = reader.take(0, 0, records, kCode);
    REQUIRE(intervals.size() == 3);
    CHECK(blocks_of(intervals[0]) == Executed{{1, 2}});
    CHECK(blocks_of(intervals[1]) == Executed{{0, 12}});
    CHECK(blocks_of(intervals[2]) == Executed{{1, 2}});
}

TEST_CASE("an interval that ends within a block leaves the rest to the next, in any translation") {
    IntervalReader reader;
    const std::vector<trace_record_t> records{
        {5, kCount, 0}, {2, kCorrection, 0}, {0, kEnd, 0}, {negative(2), kCorrection, 0}};
    auto intervals = reader.take(0, 0, records, kCode);
    REQUIRE(intervals.size() == 1);
    CHECK(blocks_of(intervals[0]) == Executed{{0, 17}});
    const std::vector<trace_record_t> more{{1, kCount, 2}, {0, kEnd, 0}};
    intervals = reader.take(0, 0, more, kCode);
    REQUIRE(intervals.size() == 1);
    CHECK(blocks_of(intervals[0]) == Executed{{0, 1}});
}

TEST_CASE("threads that use a slot one after the other have intervals of their own") {
    IntervalReader reader;
    const std::vector<trace_record_t> first{{5, kCount, 0}};
    const std::vector<trace_record_t> second{{6, kCount, 0}, {0, kEnd, 0}};
    CHECK(reader.take(1, 3, first, kCode).empty());
    const auto intervals = reader.take(2, 3, second, kCode);
    REQUIRE(intervals.size() == 1);
    CHECK(blocks_of(intervals[0]) == Executed{{0, 3}});
    CHECK(intervals[0].row.thread == 2);

    const std::array<std::uint64_t, 3> counters{8, 1, 0};
    reader.take_rest(2, 3, counters, kCode);
    const auto rests = reader.rests();
    REQUIRE(rests.size() == 2);
    CHECK(blocks_of(rests[0]) == Executed{{0, 15}});
    CHECK(rests[0].row.thread == 1);
    CHECK(blocks_of(rests[1]) == Executed{{0, 6}, {1, 4}});
    CHECK(rests[1].row.complete == 0);
}

TEST_CASE("threads that have ended take no memory for blocks that they have not executed") {
    std::vector<trace_block_t> blocks;
    for (std::uint32_t i = 0; i < 20'000; ++i) blocks.push_back({i, i, 1});
    const CodeTables code{blocks, {}, kSites};
    IntervalReader reader;
    const auto used = [] {
        const struct mallinfo2 now = mallinfo2();
        return now.uordblks + now.hblkhd;
    };
    const std::size_t before = used();
    constexpr std::uint32_t kThreads = 500, kLast = 19'999;
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
        const std::vector<trace_record_t> records{{thread + 1, kCount, kLast}};
        CHECK(reader.take(thread, 0, records, code).empty());
    }
    CHECK(used() < before + std::size_t{8} * 1024 * 1024);
    const std::vector<trace_record_t> more{{kThreads + 3, kCount, kLast}};
    CHECK(reader.take(5, 0, more, code).empty());  // in any order
    const auto rests = reader.rests();
    REQUIRE(rests.size() == kThreads);
    CHECK(blocks_of(rests[4]) == Executed{{kLast, 1}});
    CHECK(blocks_of(rests[5]) == Executed{{kLast, 4}});
}

TEST_CASE("records of blocks that are not there are passed over") {
    IntervalReader reader;
    const std::vector<trace_record_t> records{
        {5, kCount, 3}, {5, kCorrection, ~0U}, {1, kCount, 1}, {0, kEnd, 0}};
    const auto intervals = reader.take(0, 0, records, kCode);
    REQUIRE(intervals.size() == 1);
    CHECK(blocks_of(intervals[0]) == Executed{{1, 4}});
}

TEST_CASE("blocks are numbered as they are first seen, and listed by address") {
    bbv::BlockNumbers numbers;
    CHECK(numbers.number(1, kBlocks) == 1);
    CHECK(numbers.number(2, kBlocks) == 2);
    CHECK(numbers.number(0, kBlocks) == 2);
    CHECK(numbers.number(1, kBlocks) == 1);
    REQUIRE(numbers.by_address().size() == 2);
    CHECK(numbers.by_address()[0].pc == 0x1000);
    CHECK(numbers.by_address()[0].number == 2);
}

TEST_CASE("a line has an interval's blocks by address, each once") {
    bbv::BlockNumbers numbers;
    bbv::VectorLine line;
    const auto write = [&](const std::vector<trace_interval_block_t>& parts) {
        return std::string(line.write(parts, numbers, kBlocks));
    };
    CHECK(write({{4, 1, 0}}) == "T:1:4   \n");
    CHECK(write({{3, 0, 0}, {8, 1, 0}, {6, 2, 0}}) == "T:2:9   :1:8   \n");
    CHECK(write({{1ULL << 40, 2, 0}}) == "T:2:1099511627776   \n");
}

TEST_CASE("files of threads keep the ending of compressed files") {
    CHECK(bbv::with_suffix("bb.out", "2") == "bb.out.2");
    CHECK(bbv::with_suffix("bb.gz", "2") == "bb.2.gz");
    CHECK(bbv::with_suffix("bb.zst", "12") == "bb.12.zst");
}

TEST_CASE("files that are closed and gone on with are read as one") {
    const TemporaryFolder folder;
    for (const char* name : {"plain", "packed.gz", "packed.zst"}) {
        CAPTURE(name);
        const std::string path = folder.file(name);
        for (const bool append : {false, true}) {
            const auto file = bbv::open_output(path, append);
            REQUIRE(file != nullptr);
            CHECK(file->write(append ? "" : "one "));
            CHECK(file->write(append ? "three" : "two "));
            CHECK(file->close());
        }
        std::string read;
        assay::events::read_file(path, [&](std::string_view block) { read += block; });
        CHECK(read == "one two three");
    }
    CHECK(bbv::open_output(folder.file("missing/x"), false) == nullptr);
}

}  // namespace bbv_test
