// What addresses are of, from a made-up allocation log.
#include "framework/collector/trace/memory_objects.h"

#include <doctest/doctest.h>
#include <unistd.h>
#include <deque>
#include <string>
#include <vector>

namespace memory_objects_test {

using namespace assay;
using collector::DataObject;
using collector::MemoryObjects;
using trace::MemoryUse;

namespace {

constexpr std::uint64_t kHeap = 0x10000000, kStack = 0x7000000, kOther = 0x20000000;

class Program {
  public:
    Program() {
        add(MemoryUse::kMapped, 0, kStack, 0x100000);
        add(MemoryUse::kBreak, 0, kHeap, 0x100000);
        add(MemoryUse::kStack, 0, kStack + 0xf0000, 0);
    }

    // Returns how many entries there are then.
    std::uint64_t add(MemoryUse use, std::uint32_t thread, std::uint64_t address,
                      std::uint64_t bytes, std::uint64_t before = 0) {
        const trace::AllocationEntry entry{address, bytes, before, count_ * 100, thread, use};
        CHECK(pwrite(segment.fd(), &entry, sizeof entry,
                     static_cast<off_t>(trace::kAllocationsOffset + count_ * sizeof entry)) ==
              sizeof entry);
        objects.available(++count_);
        return count_;
    }
    void mark(std::uint32_t thread, trace::AllocationMark mark, std::uint64_t value,
              std::uint32_t context = 0) {
        objects.mark(thread, {value, 0, mark}, context, count_);
    }
    // What a thread does that allocates in that context.
    void allocate(std::uint32_t thread, std::uint32_t context, std::uint64_t address,
                  std::uint64_t bytes) {
        mark(thread, trace::kBegins, 0, context);
        mark(thread, trace::kHas, add(MemoryUse::kAllocated, thread, address, bytes));
    }
    void free(std::uint32_t thread, std::uint64_t address) {
        mark(thread, trace::kHas, add(MemoryUse::kFreed, thread, address, 0));
    }
    const DataObject& at(std::uint64_t address, std::uint32_t thread = 0) {
        const std::uint32_t object = objects.find(thread, address).object;
        return objects.objects()[objects.final_number(object)];
    }
    std::uint32_t context_at(std::uint64_t address, std::uint32_t thread = 0) {
        const DataObject& object = at(address, thread);
        return object.kind == DataObject::Kind::kHeap ? object.context : 0;
    }

    collector::Segment segment;
    std::deque<std::string> paths;
    MemoryObjects objects{segment, paths};

  private:
    std::uint64_t count_ = 0;
};

}  // namespace

TEST_CASE("memory objects: blocks from their allocation to their end") {
    Program program;
    CHECK(program.at(kHeap + 100).kind == DataObject::Kind::kBreak);
    program.allocate(0, 5, kHeap + 64, 100);
    CHECK(program.context_at(kHeap + 63) == 0);
    CHECK(program.context_at(kHeap + 64) == 5);
    CHECK(program.context_at(kHeap + 163) == 5);
    CHECK(program.context_at(kHeap + 164) == 0);
    program.allocate(0, 6, kHeap + 256, 8);
    program.free(0, kHeap + 64);
    CHECK(program.at(kHeap + 100).kind == DataObject::Kind::kBreak);
    CHECK(program.context_at(kHeap + 256) == 6);
    CHECK(program.at(kStack + 0x80000).kind == DataObject::Kind::kStack);
    CHECK(program.at(kOther).kind == DataObject::Kind::kUnknown);
}

TEST_CASE("memory objects: all blocks of one context are one object") {
    Program program;
    for (unsigned i = 0; i < 4; ++i) program.allocate(0, 5, kHeap + i * 64, 48);
    program.free(0, kHeap);
    program.allocate(0, 5, kHeap, 48);
    const DataObject& object = program.at(kHeap + 64);
    CHECK(object.blocks == 5);
    CHECK(object.bytes == 240);
    CHECK(object.size == 48);
    CHECK(object.peak == 192);
    program.allocate(0, 5, kHeap + 0x1000, 8);
    CHECK(program.at(kHeap).size == 0);
}

TEST_CASE("memory objects: what was found holds until the version changes") {
    Program program;
    program.allocate(0, 5, kHeap + 64, 100);
    const collector::FoundObject block = program.objects.find(0, kHeap + 70);
    CHECK(block.start == kHeap + 64);
    CHECK(block.end == kHeap + 164);
    const collector::FoundObject around = program.objects.find(0, kHeap + 200);
    CHECK(around.start == kHeap + 164);
    program.allocate(0, 6, kHeap + 256, 8);
    CHECK(*block.version == block.valid_version);
    CHECK(*around.version != around.valid_version);
    program.free(0, kHeap + 64);
    CHECK(*block.version != block.valid_version);
}

TEST_CASE("memory objects: blocks that are cut out of another one") {
    Program program;
    program.allocate(0, 5, kHeap, 4096);
    program.allocate(0, 6, kHeap, 64);
    program.allocate(0, 6, kHeap + 64, 64);
    CHECK(program.context_at(kHeap + 10) == 6);
    CHECK(program.context_at(kHeap + 127) == 6);
    CHECK(program.context_at(kHeap + 128) == 5);
    program.free(0, kHeap);
    CHECK(program.context_at(kHeap + 10) == 5);
    CHECK(program.context_at(kHeap + 64) == 6);
    program.free(0, kHeap);
    CHECK(program.context_at(kHeap + 64) == 0);
    // Nobody has told that it was given back.
    program.allocate(0, 7, kHeap, 64);
    program.allocate(0, 8, kHeap + 32, 64);
    CHECK(program.context_at(kHeap + 10) == 0);
    CHECK(program.context_at(kHeap + 90) == 8);
}

TEST_CASE("memory objects: moved blocks, and other memory") {
    Program program;
    program.allocate(0, 5, kHeap, 64);
    program.mark(0, trace::kBegins, 0, 6);
    program.mark(0, trace::kHas, program.add(MemoryUse::kMoved, 0, kHeap + 4096, 128, kHeap));
    CHECK(program.context_at(kHeap) == 0);
    CHECK(program.context_at(kHeap + 4096 + 127) == 6);
    program.mark(0, trace::kHas, program.add(MemoryUse::kMapped, 0, kOther, 8192), 9);
    CHECK(program.at(kOther + 8191).kind == DataObject::Kind::kMapping);
    CHECK(program.at(kOther).context == 9);
    program.mark(0, trace::kHas, program.add(MemoryUse::kRemapped, 0, kOther * 2, 16384, kOther));
    CHECK(program.at(kOther).kind == DataObject::Kind::kUnknown);
    CHECK(program.at(kOther * 2 + 16383).context == 9);
    program.mark(0, trace::kHas, program.add(MemoryUse::kUnmapped, 0, kOther * 2 + 4096, 4096));
    CHECK(program.at(kOther * 2).context == 9);
    CHECK(program.at(kOther * 2 + 4096).kind == DataObject::Kind::kUnknown);
    CHECK(program.at(kOther * 2 + 8192).context == 9);
}

TEST_CASE("memory objects: blocks of a thread whose records are read later") {
    Program program;
    program.mark(1, trace::kHas, program.add(MemoryUse::kStack, 1, kStack + 0x1000, 0));
    const std::uint64_t allocated = program.add(MemoryUse::kAllocated, 0, kHeap + 64, 100);
    // The second thread uses it before anybody has read where it was allocated.
    const std::uint32_t before = program.objects.find(1, kHeap + 70).object;
    program.mark(0, trace::kBegins, 0, 5);
    program.mark(0, trace::kHas, allocated);
    CHECK(program.context_at(kHeap + 70, 1) == 5);
    CHECK(program.objects.objects()[program.objects.final_number(before)].context == 5);
    // The first gives it back, and gets its memory anew; the second has not seen that.
    program.mark(1, trace::kSees, allocated);
    program.free(0, kHeap + 64);
    program.allocate(0, 6, kHeap + 64, 100);
    CHECK(program.context_at(kHeap + 70) == 6);
    CHECK(program.context_at(kHeap + 70, 1) == 5);
    program.mark(1, trace::kSees, allocated + 2);
    CHECK(program.context_at(kHeap + 70, 1) == 6);
}

TEST_CASE("memory objects: a thread that is far behind finds what it has allocated itself") {
    constexpr std::uint64_t kBlocks = 500;
    Program program;
    program.mark(1, trace::kHas, program.add(MemoryUse::kStack, 1, kStack + 0x1000, 0));
    // The records of the first thread are read last.
    std::vector<std::uint64_t> allocated;
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
        allocated.push_back(program.add(MemoryUse::kAllocated, 0, kHeap + i % 3 * 16, 4096 - i));
        program.add(MemoryUse::kFreed, 0, kHeap + i % 3 * 16, 0);
    }
    program.allocate(1, 9, kHeap + 0x8000, 64);  // the second thread has seen all of that
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
        program.mark(0, trace::kBegins, 0, static_cast<std::uint32_t>(100 + i));
        program.mark(0, trace::kHas, allocated[i]);
        CHECK(program.context_at(kHeap + i % 3 * 16) == 100 + i);
        CHECK(program.context_at(kHeap + 2000) == 100 + i);
        program.mark(0, trace::kHas, allocated[i] + 1);
        CHECK(program.context_at(kHeap + 2000) == 0);
    }
}

TEST_CASE("memory objects: threads that have ended take no memory") {
    constexpr std::uint32_t kThreads = 10'000;
    Program program;
    program.allocate(0, 5, kHeap, 64);
    std::size_t objects = 0;
    for (std::uint32_t thread = 1; thread < kThreads; ++thread) {
        program.mark(thread, trace::kHas,
                     program.add(MemoryUse::kStack, thread, kStack + 0x1000, 0));
        for (unsigned i = 0; i < 3; ++i) {
            program.allocate(thread, 6, kHeap + 0x1000, 128);
            program.free(thread, kHeap + 0x1000);
        }
        program.objects.end_thread(thread);
        if (thread == kThreads / 2) objects = program.objects.objects().size();
    }
    CHECK(program.objects.objects().size() == objects);
    CHECK(program.objects.threads() == 1);
    CHECK(program.context_at(kHeap) == 5);
}

TEST_CASE("times of records: a long run has as many moments as a short one") {
    collector::RecordTimes times;
    constexpr std::uint64_t kRecords = 3'000'000, kEach = 5000;
    for (std::uint64_t record = 0; record < kRecords; ++record) times.note(record, record * kEach);
    CHECK(times.moments() <= collector::RecordTimes::kMost);
    CHECK(times.last() == (kRecords - 1) * kEach);
    for (const std::uint64_t record : {1'000ULL, 1'000'000ULL, 2'999'000ULL}) {
        const std::uint64_t off = times.of(record) > record * kEach
                                      ? times.of(record) - record * kEach
                                      : record * kEach - times.of(record);
        CHECK(off <= kRecords * kEach / 10'000);
    }
}

TEST_CASE("memory objects: a damaged log is no harm") {
    Program program;
    program.mark(0, trace::kHas, 1'000'000'000);
    program.mark(0, trace::kHas, program.add(MemoryUse::kAllocated, 0, UINT64_MAX - 1, 100));
    program.mark(0, trace::kHas, program.add(MemoryUse::kFile, 0, kOther, 100, UINT64_MAX));
    program.mark(0, trace::kHas, program.add(static_cast<MemoryUse>(77), 0, kOther, 100));
    program.mark(0, trace::kHas, program.add(MemoryUse::kThreadPointer, 0, 3, 0));
    program.mark(0, trace::kHas, program.add(MemoryUse::kUnmapped, 0, 0, UINT64_MAX));
    CHECK(program.at(kHeap).kind == DataObject::Kind::kUnknown);
}

}  // namespace memory_objects_test
