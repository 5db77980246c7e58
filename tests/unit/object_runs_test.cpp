// Which references to objects the driver leaves out (driver/shared/object_runs.h).
#include "framework/driver/shared/object_runs.h"

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <cstdint>
#include <vector>

namespace {

using assay::driver::object_extent;
using assay::driver::ObjectRuns;
using assay::trace::kEndsObjectRun;
using assay::trace::MemoryUse;
using assay::trace::ObjectRun;

constexpr std::uint64_t kRegionStart = 0x7000'0000'0000, kRegionBytes = 0x10000,
                        kOtherRegion = 0x7100'0000'0000;
constexpr std::int64_t kCountdownBegin = INT64_MAX;

// A process with one group of references, at site 7.
class ObjectRunsProcess {
  public:
    ObjectRunsProcess() {
        constexpr std::uint64_t kSlotBytes = assay::trace::kRunsOffset + 4096;
        slot_ = mmap(nullptr, kSlotBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(slot_ != MAP_FAILED);
        assay::trace::Spec spec{};
        spec.captures = assay::trace::kCaptureReferences | assay::trace::kCaptureBlockCounts;
        spec.data = {.line_bytes = 64, .sets = 64, .kind = {}, .ways = 8};
        spec.objects = assay::trace::Spec::kObjectsOnly;
        runs.begin(spec, static_cast<assay::trace::ThreadSlot*>(slot_));
        REQUIRE(runs.active());
        run_ = runs.run_of(kSite);
    }
    ~ObjectRunsProcess() { munmap(slot_, assay::trace::kRunsOffset + 4096); }
    ObjectRunsProcess(const ObjectRunsProcess&) = delete;
    ObjectRunsProcess& operator=(const ObjectRunsProcess&) = delete;

    void change(MemoryUse use, std::uint64_t address, std::uint64_t bytes,
                std::uint64_t before = 0) {
        runs.change({address, bytes, before, 0, 0, use}, append_);
    }
    void stop() { runs.stop(append_); }
    // Like translated code. Returns true if there is a record.
    bool refer(std::uint64_t address, std::uint32_t extent = object_extent(0, 0, false)) {
        ObjectRun& run = runs.regions()->runs[run_];
        const bool constant = extent & assay::driver::kHasConstants;
        if (constant ? run.bytes != 0 : address - run.start < run.bytes) {
            ++run.left_out;
            run.clock = static_cast<std::uint64_t>(kCountdownBegin - ++time_);
            return false;
        }
        std::vector<trace_record_t> two(2);
        const auto begin = reinterpret_cast<std::uint64_t>(two.data());
        assay_object_reference(runs.regions(), address, begin, kSite, run_, extent);
        two.resize((*runs.regions()->cursor - begin) / sizeof(trace_record_t));
        records.insert(records.end(), two.begin(), two.end());
        return true;
    }
    // The references that the last record says were left out; 0 if it is no end of a run.
    std::uint32_t left_out() const {
        const std::uint32_t aux = records.empty() ? 0 : records.back().aux;
        return aux & kEndsObjectRun ? aux & ~kEndsObjectRun : 0;
    }

    static constexpr std::uint32_t kSite = 7;
    ObjectRuns runs;
    std::vector<trace_record_t> records;

  private:
    ObjectRuns::Append append_ = [this](const trace_record_t& record) {
        records.push_back(record);
    };
    void* slot_ = nullptr;
    std::uint32_t run_ = 0;
    std::int64_t time_ = 0;
};

}  // namespace

TEST_CASE("references to a large block are left out until it is given back") {
    for (const bool moved : {false, true}) {
        ObjectRunsProcess process;
        process.change(MemoryUse::kAllocated, kRegionStart, kRegionBytes);
        CHECK(process.refer(kRegionStart));
        CHECK(!process.refer(kRegionStart + kRegionBytes - 1));
        CHECK(!process.refer(kRegionStart + 8));
        if (moved)
            process.change(MemoryUse::kMoved, kOtherRegion, kRegionBytes, kRegionStart);
        else
            process.change(MemoryUse::kFreed, kRegionStart, 0);
        REQUIRE(process.records.size() == 2);
        CHECK(process.records[0].value == kRegionStart);
        CHECK(process.records[0].site == process.kSite);
        CHECK(process.records[0].aux == 0);
        CHECK(process.left_out() == 2);
        CHECK(process.records[1].site == process.kSite);
        CHECK(process.records[1].value == 2);  // the time of the last one
        CHECK(process.refer(kRegionStart));
        CHECK(process.refer(kRegionStart));
        CHECK(process.refer(kOtherRegion) == true);
        CHECK(process.refer(kOtherRegion + 1) != moved);
    }
}

TEST_CASE("a reference to another block ends a run") {
    ObjectRunsProcess process;
    process.change(MemoryUse::kAllocated, kRegionStart, kRegionBytes);
    process.change(MemoryUse::kAllocated, kRegionStart + kRegionBytes, kRegionBytes);
    process.refer(kRegionStart);
    CHECK(!process.refer(kRegionStart + 1));
    CHECK(process.refer(kRegionStart + kRegionBytes));
    REQUIRE(process.records.size() == 3);
    CHECK(process.records[1].aux == (kEndsObjectRun | 1));
    CHECK(process.records[2].value == kRegionStart + kRegionBytes);
    CHECK(!process.refer(kRegionStart + kRegionBytes + 1));
    CHECK(process.refer(kRegionStart));
}

TEST_CASE("references to small blocks are recorded") {
    ObjectRunsProcess process;
    process.change(MemoryUse::kAllocated, kRegionStart, 1000);
    for (int i = 0; i < 3; ++i) CHECK(process.refer(kRegionStart));
}

TEST_CASE("all references of a group must be in the block") {
    ObjectRunsProcess process;
    process.change(MemoryUse::kAllocated, kRegionStart, kRegionBytes);
    const std::uint32_t extent = object_extent(16, 24, false);  // 16 below, 8 above
    CHECK(process.refer(kRegionStart + 8, extent));
    CHECK(process.refer(kRegionStart + 16, extent));
    CHECK(!process.refer(kRegionStart + 16, extent));
    CHECK(!process.refer(kRegionStart + kRegionBytes - 9, extent));
    CHECK(process.refer(kRegionStart + kRegionBytes - 8, extent));
    CHECK(process.refer(kRegionStart + 15, extent));
}

TEST_CASE("a block that is cut out of a large one ends its runs") {
    ObjectRunsProcess process;
    process.change(MemoryUse::kAllocated, kRegionStart, kRegionBytes);
    process.refer(kRegionStart);
    CHECK(!process.refer(kRegionStart));
    process.change(MemoryUse::kAllocated, kRegionStart + 64, 16);
    CHECK(process.left_out() == 1);
    for (int i = 0; i < 2; ++i) CHECK(process.refer(kRegionStart));
}

// Blocks inside a block end with it, even if both begin at the same address.
TEST_CASE("the end of an outer block ends the runs of inner ones") {
    ObjectRunsProcess process;
    process.change(MemoryUse::kAllocated, kRegionStart, 4 * kRegionBytes);
    process.change(MemoryUse::kAllocated, kRegionStart, kRegionBytes);
    process.change(MemoryUse::kAllocated, kRegionStart + 2 * kRegionBytes, kRegionBytes);
    process.change(MemoryUse::kFreed, kRegionStart, 0);
    process.refer(kRegionStart + 2 * kRegionBytes);
    process.change(MemoryUse::kFreed, kRegionStart, 0);
    for (int i = 0; i < 2; ++i) CHECK(process.refer(kRegionStart + 2 * kRegionBytes));
}

TEST_CASE("references to a mapping without blocks are left out") {
    ObjectRunsProcess process;
    process.change(MemoryUse::kMapped, kRegionStart, kRegionBytes);
    process.refer(kRegionStart);
    CHECK(!process.refer(kRegionStart + 1));
    SUBCASE("until it has one") {
        process.change(MemoryUse::kAllocated, kRegionStart + 128, 16);
    }
    SUBCASE("until a part is unmapped") {
        process.change(MemoryUse::kUnmapped, kRegionStart + kRegionBytes / 2, 4096);
    }
    SUBCASE("until it moves") {
        process.change(MemoryUse::kRemapped, kOtherRegion, 2 * kRegionBytes, kRegionStart);
        CHECK(process.left_out() == 1);
        process.refer(kOtherRegion);
        CHECK(process.refer(kOtherRegion));
    }
    SUBCASE("until it is a stack") {
        process.change(MemoryUse::kStack, kRegionStart + kRegionBytes, 0);
    }
    SUBCASE("until it has thread-local variables") {
        process.change(MemoryUse::kThreadPointer, kRegionStart + 256, 0);
    }
    for (int i = 0; i < 2; ++i) CHECK(process.refer(kRegionStart));
}

TEST_CASE("blocks that are still known make a new mapping unsuitable") {
    for (const std::uint64_t bytes : {std::uint64_t{16}, kRegionBytes}) {
        ObjectRunsProcess process;
        process.change(MemoryUse::kAllocated, kRegionStart + 4096, bytes);
        process.change(MemoryUse::kUnmapped, kRegionStart, 4 * kRegionBytes);
        process.change(MemoryUse::kMapped, kRegionStart, 4 * kRegionBytes);
        for (int i = 0; i < 2; ++i) CHECK(process.refer(kRegionStart));
    }
}

TEST_CASE("variables of files are for constant addresses only") {
    ObjectRunsProcess process;
    const std::uint32_t constant = object_extent(0, 0, true);
    process.change(MemoryUse::kFile, kRegionStart, 4 * kRegionBytes);
    process.change(MemoryUse::kMapped, kRegionStart + kRegionBytes,
                   kRegionBytes);  // of the file: .bss
    for (int i = 0; i < 2; ++i) CHECK(process.refer(kRegionStart + kRegionBytes));
    CHECK(process.refer(kRegionStart + kRegionBytes, constant));
    CHECK(!process.refer(kRegionStart + kRegionBytes, constant));
    SUBCASE("until they become a block") {
        process.change(MemoryUse::kAllocated, kRegionStart + kRegionBytes, 64);
        CHECK(process.left_out() == 1);
        process.change(MemoryUse::kFreed, kRegionStart + kRegionBytes, 0);
        for (int i = 0; i < 2; ++i) CHECK(process.refer(kRegionStart + kRegionBytes, constant));
    }
    SUBCASE("until the next part of the file is mapped") {
        process.change(MemoryUse::kFile, kRegionStart, kRegionBytes);
        CHECK(process.refer(kRegionStart + kRegionBytes, constant));
        CHECK(!process.refer(kRegionStart + kRegionBytes, constant));
    }
    SUBCASE("until the file is unmapped") {
        process.change(MemoryUse::kUnmapped, kRegionStart, 4 * kRegionBytes);
        process.change(MemoryUse::kMapped, kRegionStart, kRegionBytes);
        for (int i = 0; i < 2; ++i) CHECK(process.refer(kRegionStart + kRegionBytes, constant));
        process.refer(kRegionStart);
        CHECK(!process.refer(kRegionStart));
    }
}

TEST_CASE("nothing is left out when there are more threads") {
    ObjectRunsProcess process;
    process.change(MemoryUse::kAllocated, kRegionStart, kRegionBytes);
    process.refer(kRegionStart);
    CHECK(!process.refer(kRegionStart));
    process.stop();
    CHECK(process.left_out() == 1);
    CHECK(!process.runs.active());
    process.change(MemoryUse::kAllocated, kOtherRegion, kRegionBytes);
    for (const std::uint64_t address : {kRegionStart, kOtherRegion})
        for (int i = 0; i < 2; ++i) CHECK(process.refer(address));
}

TEST_CASE("a group that has been given up records all references") {
    ObjectRunsProcess process;
    process.change(MemoryUse::kAllocated, kRegionStart, kRegionBytes);
    process.refer(kRegionStart);
    CHECK(!process.refer(kRegionStart));
    CHECK(!process.runs.has_given_up(process.kSite));
    process.runs.give_up(process.kSite);
    CHECK(process.runs.has_given_up(process.kSite));
    const std::vector<trace_record_t> ended = process.runs.take_ended();
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].aux == (kEndsObjectRun | 1));
    CHECK(process.runs.take_ended().empty());
    for (int i = 0; i < 2; ++i) CHECK(process.refer(kRegionStart));
    // The same in the child of a fork, which begins with new memory for runs.
    process.runs.regions()->runs[0] = {};
    process.runs.begin_image();
    for (int i = 0; i < 2; ++i) CHECK(process.refer(kRegionStart));
}
