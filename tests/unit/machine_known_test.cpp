// Machines and streams for which the counts are known.
#include "machine_streams.h"

#include <doctest/doctest.h>

namespace machine_known_test {

namespace {

using machine::Cache;
using machine::Holds;
using machine::Inclusion;
using machine::Machine;
using machine::Of;
using streams::Counts;
using streams::OfCore;

constexpr std::uint64_t kBase = 0x4000'0000;

Machine of(std::vector<Cache> caches, std::uint32_t cores = 1) {
    Machine machine;
    machine.cores = cores;
    machine.caches = std::move(caches);
    return machine;
}

// One after the other, `rounds` times.
std::vector<OfCore> loop(std::uint64_t many, std::uint64_t bytes_apart, int rounds) {
    std::vector<OfCore> made;
    for (int round = 0; round < rounds; ++round)
        for (std::uint64_t i = 0; i < many; ++i)
            made.push_back(streams::read(0, kBase + i * bytes_apart));
    return made;
}

TEST_CASE("a loop over more than a level holds misses it always") {
    const Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 8, 2),
                                streams::cache("L2", 2, Holds::kBoth, Of::kCore, 16, 4),
                                streams::cache("LL", 3, Holds::kBoth, Of::kMachine, 32, 8)});
    const auto misses = [&](std::uint64_t lines) {
        const Counts counts(machine, loop(lines, 64, 10));
        return std::vector<std::uint64_t>{counts["D1mr"], counts["D2mr"], counts["DLmr"]};
    };
    CHECK(misses(16) == std::vector<std::uint64_t>{16, 16, 16});
    CHECK(misses(32) == std::vector<std::uint64_t>{320, 32, 32});
    CHECK(misses(128) == std::vector<std::uint64_t>{1280, 1280, 128});
    CHECK(misses(512) == std::vector<std::uint64_t>{5120, 5120, 5120});
}

TEST_CASE("an exclusive cache and the one above it hold the sum of both") {
    Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 1, 16),
                          streams::cache("L2", 2, Holds::kBoth, Of::kCore, 1, 16)});
    machine.caches[1].inclusion = Inclusion::kExclusive;
    CHECK(Counts(machine, loop(32, 64, 10))["D2mr"] == 32);
    CHECK(Counts(machine, loop(33, 64, 10))["D2mr"] == 330);
    machine.caches[1].inclusion = Inclusion::kInclusive;
    CHECK(Counts(machine, loop(16, 64, 10))["D2mr"] == 16);
    CHECK(Counts(machine, loop(32, 64, 10))["D2mr"] == 320);
}

TEST_CASE("two cores that write one line take it from each other") {
    Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 4, 2),
                          streams::cache("LL", 2, Holds::kBoth, Of::kMachine, 16, 4)},
                         2);
    const auto counts = [&](std::uint64_t apart) {
        std::vector<OfCore> made;
        for (int i = 0; i < 100; ++i)
            for (const std::uint32_t core : {0u, 1u})
                made.push_back(streams::write(core, kBase + core * apart));
        return Counts(machine, made);
    };
    for (const machine::Protocol protocol : {machine::Protocol::kMesi, machine::Protocol::kMoesi}) {
        machine.protocol = protocol;
        for (const bool directory : {false, true}) {
            machine.directory = directory;
            const Counts same = counts(0), other = counts(8), apart = counts(64);
            CHECK(same["D1mw"] == 200);
            CHECK(same["Transfers"] == 199);
            CHECK(same["InvRecv"] == 199);
            CHECK(same["InvSent"] == (directory ? 199 : 200));
            CHECK(same["Upgrades"] == 0);
            CHECK(same["D1wb"] == 0);
            // The first write of each core is no loss.
            CHECK(same["TrueSharing"] == 198);
            CHECK(same["FalseSharing"] == 0);
            CHECK(other["TrueSharing"] == 0);
            CHECK(other["FalseSharing"] == 198);
            CHECK(other["Transfers"] == 199);
            CHECK(apart["D1mw"] == 2);
            CHECK(apart["Transfers"] == 0);
            CHECK(apart["InvRecv"] == 0);
        }
    }
}

TEST_CASE("with MESI what is read from another core is written back, with MOESI it is not") {
    Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 4, 2),
                          streams::cache("LL", 2, Holds::kBoth, Of::kMachine, 16, 4)},
                         2);
    std::vector<OfCore> made;
    for (int i = 0; i < 100; ++i) {
        made.push_back(streams::write(0, kBase));
        made.push_back(streams::read(1, kBase));
    }
    for (const bool moesi : {false, true}) {
        machine.protocol = moesi ? machine::Protocol::kMoesi : machine::Protocol::kMesi;
        const Counts counts(machine, made);
        CHECK(counts["D1mr"] == 100);
        CHECK(counts["D1mw"] == 1);
        CHECK(counts["Transfers"] == 100);
        CHECK(counts["Upgrades"] == 99);
        CHECK(counts["TrueSharing"] == 99);
        CHECK(counts["D1wb"] == (moesi ? 0 : 100));
    }
}

TEST_CASE("the core's cache that has a line dirty writes it back at another core's read") {
    Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 4, 2),
                          streams::cache("L2", 2, Holds::kBoth, Of::kCore, 8, 2),
                          streams::cache("LL", 3, Holds::kBoth, Of::kMachine, 16, 4)},
                         2);
    machine.protocol = machine::Protocol::kMesi;
    const Counts counts(machine, {streams::write(0, kBase), streams::read(1, kBase)});
    CHECK(counts["D1wb"] == 1);
    CHECK(counts["L2wb"] == 0);
}

TEST_CASE("a line is modified until all copies of the core's are gone") {
    Cache l2 = streams::cache("L2", 2, Holds::kBoth, Of::kCore, 4, 1);
    l2.prefetch = {{"next-line", 1, 1}};
    Machine machine = of({streams::cache("I1", 1, Holds::kInstructions, Of::kCore, 1, 4),
                          streams::cache("D1", 1, Holds::kData, Of::kCore, 1, 4), l2,
                          streams::cache("LL", 3, Holds::kBoth, Of::kMachine, 16, 4)},
                         3);
    const auto others = {9, 10, 13, 14};  // leave the set of L2 that line 4 is in alone
    std::vector<OfCore> made;
    const auto read = [&](std::uint32_t core, std::uint64_t line) {
        made.push_back(streams::read(core, kBase + line * 64));
    };
    made.push_back(streams::write(0, kBase + 4 * 64));
    for (const int line : others) read(0, line);
    // Clean in D1, dirty in L2, which loses it and has it prefetched again.
    for (const int line : {4, 8, 4, 3}) read(0, line);
    for (const int line : others) read(0, line);
    // Who has a line modified supplies it; with MOESI again and again.
    for (const std::uint32_t other : {1, 2}) read(other, 4);
    for (const auto protocol : {machine::Protocol::kMesi, machine::Protocol::kMoesi}) {
        machine.protocol = protocol;
        CHECK(streams::difference(machine, made) == "");
    }
    CHECK(Counts(machine, made)["Transfers"] == 2);
}

TEST_CASE("next-line leaves of a walk its first miss") {
    Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 16, 4)});
    CHECK(Counts(machine, loop(1000, 64, 1))["D1mr"] == 1000);
    machine.caches[0].prefetch = {{"next-line", 1, 1}};
    const Counts counts(machine, loop(1000, 64, 1));
    CHECK(counts["D1mr"] == 1);
    CHECK(counts["D1pf"] == 1000);
    CHECK(counts["D1pfu"] == 999);
    // Every second line of a walk over every other: all that is asked for is in vain.
    CHECK(Counts(machine, loop(1000, 128, 1))["D1mr"] == 1000);
    machine.caches[0].prefetch = {{"stride", 1, 1}};
    CHECK(Counts(machine, loop(1000, 128, 1))["D1mr"] == 4);
}

TEST_CASE("a prefetched line is late up to so many instructions behind") {
    Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 16, 4)});
    machine.caches[0].prefetch = {{"next-line", 1, 1}};
    for (const std::uint32_t late : {1u, 2u}) {
        machine.caches[0].late = late;
        // References in between do not matter, only instructions.
        const Counts next(machine, {streams::read_at(1, 0, kBase), streams::read_at(2, 0, kBase),
                                    streams::read_at(2, 0, kBase), streams::read_at(2, 0, kBase),
                                    streams::read_at(2, 0, kBase + 64)});
        CHECK(next["D1pfl"] == 1);
        const Counts second(machine,
                            {streams::read_at(1, 0, kBase), streams::read_at(3, 0, kBase + 64)});
        CHECK(second["D1pfl"] == (late == 2 ? 1 : 0));
        // A walk, each step of which begins the prefetch for the next.
        std::vector<OfCore> walk;
        for (std::uint64_t i = 0; i < 100; ++i)
            walk.push_back(streams::read_at(2 * i, 0, kBase + 64 * i));
        CHECK(Counts(machine, walk)["D1pfu"] == 99);
        CHECK(Counts(machine, walk)["D1pfl"] == (late == 2 ? 99 : 0));
    }
}

TEST_CASE("a prefetched line is late for the core that has prefetched it") {
    Machine machine = of({streams::cache("LL", 1, Holds::kBoth, Of::kMachine, 16, 4)}, 2);
    machine.caches[0].prefetch = {{"next-line", 1, 1}};
    machine.caches[0].late = 10;
    for (const std::uint32_t core : {0u, 1u}) {
        const Counts counts(machine, {streams::read_at(100, 0, kBase),
                                      streams::read_at(core == 0 ? 105 : 2, core, kBase + 64)});
        CHECK(counts["LLpfu"] == 1);
        CHECK(counts["LLpfl"] == (core == 0 ? 1 : 0));
    }
}

// Only a prefetch that brings the line to a cache with data ends the loss of the line.
TEST_CASE("a prefetch from an instruction cache hides no sharing") {
    Machine machine = of({streams::cache("I1", 1, Holds::kInstructions, Of::kCore, 2, 1),
                          streams::cache("D1", 1, Holds::kData, Of::kCore, 2, 1),
                          streams::cache("I2", 2, Holds::kInstructions, Of::kCore, 2, 4),
                          streams::cache("L3", 3, Holds::kBoth, Of::kCore, 2, 8)},
                         3);
    machine.protocol = machine::Protocol::kMesi;
    machine.caches[0].prefetch = {{"next-line", 1, 1}};
    const auto fetch = [](std::uint64_t address) {
        return OfCore{
            1, {.kind = machine::Kind::kFetch, .bytes = 4, .address = address, .pc = address}};
    };
    // After the read of core 2, a prefetch may bring the line again.
    const std::vector<OfCore> references = {fetch(kBase),
                                            streams::write(0, kBase + 64),
                                            streams::read(2, kBase + 64),
                                            fetch(kBase + 128),
                                            fetch(kBase),
                                            streams::read(1, kBase + 72)};
    CHECK(Counts(machine, references)["I2mr"] == 2);
    CHECK(Counts(machine, references)["FalseSharing"] == 1);
    CHECK(streams::difference(machine, references) == "");
}

TEST_CASE("large pages end misses of translation buffers") {
    Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 16, 4)});
    machine::Tlb tlb;
    tlb.name = "DTLB";
    tlb.holds = Holds::kData;
    tlb.entries = tlb.ways = 16;
    machine.tlbs = {tlb};
    CHECK(Counts(machine, loop(256, 4096, 10))["DTLBm"] == 2560);
    CHECK(Counts(machine, loop(16, 4096, 10))["Walks"] == 16);
    machine.page = 2 << 20;
    CHECK(Counts(machine, loop(256, 4096, 10))["DTLBm"] == 1);
}

machine::Tlb buffer(const char* name, std::uint32_t level, std::uint32_t entries,
                    std::vector<std::uint64_t> pages) {
    machine::Tlb made;
    made.name = name;
    made.level = level;
    made.holds = Holds::kData;
    made.entries = made.ways = entries;
    made.pages = std::move(pages);
    return made;
}

constexpr std::uint64_t k4K = 4 << 10, k2M = 2 << 20, k1G = 1 << 30;

// 8 MiB, of which the last 4 have pages of 2M: 1,024 and 2 pages.
TEST_CASE("each page is looked up in the buffers of its size") {
    using machine::Memory;
    Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 16, 4)});
    machine.page = 0;
    machine.tlbs = {buffer("D4K", 1, 64, {k4K}), buffer("D2M", 1, 32, {k2M}),
                    buffer("S", 2, 1536, {k4K, k2M})};
    constexpr std::uint64_t kHalf = 4 << 20;
    const auto count = [&](Memory memory) {
        return Counts(machine, loop(2048, 4096, 3), {{0, kBase + kHalf, kHalf, memory}});
    };
    for (const Memory memory : {Memory::kAdvised, Memory::k2M}) {
        const Counts counts = count(memory);
        CHECK(counts["D4Km"] == 3 * 1024);  // 64 entries for 1,024 pages in turn
        CHECK(counts["D2Mm"] == 2);
        CHECK(counts["Sm"] == 1024 + 2);
        CHECK(counts["Walks"] == 1024 + 2);
    }
    CHECK(count(Memory::kPrivate)["D4Km"] == 3 * 2048);
    CHECK(count(Memory::kPrivate)["Walks"] == 3 * 2048);  // 1,536 entries for 2,048 pages in turn
    machine.transparent = machine::Transparent::kAlways;
    CHECK(count(Memory::kPrivate)["D2Mm"] == 2);
    machine.transparent = machine::Transparent::kNever;
    CHECK(count(Memory::kAdvised)["D2Mm"] == 0);
    CHECK(count(Memory::k2M)["D2Mm"] == 2);
}

TEST_CASE("a page that no buffer holds is several of the next smaller size") {
    Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 16, 4)});
    machine.page = 0;
    machine.tlbs = {buffer("D", 1, 64, {k4K, k2M})};
    const std::vector<streams::Change> huge = {{0, kBase, 4 * k1G, machine::Memory::k1G}};
    CHECK(Counts(machine, loop(20, k2M, 5), huge)["Walks"] == 20);
    machine.tlbs.push_back(buffer("D1G", 1, 4, {k1G}));
    CHECK(Counts(machine, loop(20, k2M, 5), huge)["Walks"] == 1);
}

TEST_CASE("memory that becomes small has other pages") {
    Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 16, 4)});
    machine.page = 0;
    machine.tlbs = {buffer("D", 1, 4, {})};
    const std::vector<streams::Change> changes = {{0, kBase, k2M, machine::Memory::kAdvised},
                                                  {50, kBase, k2M, machine::Memory::kOther}};
    CHECK(Counts(machine, loop(50, 4096, 2), changes)["Dm"] == 1 + 50);
}

// Where one is behind the other, what a fetch finds there is nothing for the first.
TEST_CASE("a buffer of instructions above one of both is asked for its own") {
    Machine machine = of({streams::cache("L1", 1, Holds::kBoth, Of::kCore, 16, 4)});
    machine::Tlb first, second;
    first.name = "ITLB";
    first.holds = Holds::kInstructions;
    first.entries = first.ways = 4;
    second.name = "STLB";
    second.level = 2;
    second.entries = second.ways = 8;
    machine.tlbs = {first, second};
    const Counts counts(
        machine, {streams::read(0, kBase), {0, {machine::Kind::kFetch, false, 4, kBase, 0}}});
    CHECK(counts["ITLBm"] == 1);
    CHECK(counts["STLBm"] == 1);
    CHECK(counts["Walks"] == 1);
}

TEST_CASE("BRRIP keeps a part of what LRU loses all of, SRRIP what is used again") {
    Machine machine = of({streams::cache("D1", 1, Holds::kData, Of::kCore, 1, 8)});
    const auto misses = [&](const char* policy, const std::vector<OfCore>& references) {
        machine.caches[0].replacement.policy = policy;
        return Counts(machine, references)["D1mr"];
    };
    const std::vector<OfCore> thrash = loop(12, 64, 200);
    CHECK(misses("lru", thrash) == 2400);
    CHECK(misses("fifo", thrash) == 2400);
    CHECK(misses("brrip", thrash) < 1400);
    // examples/replacement: four lines twice, then eight others.
    std::vector<OfCore> scan;
    for (std::uint64_t round = 0; round < 100; ++round) {
        for (std::uint64_t i = 0; i < 8; ++i) scan.push_back(streams::read(0, kBase + i % 4 * 64));
        for (std::uint64_t i = 0; i < 8; ++i)
            scan.push_back(streams::read(0, kBase + 4096 + (round * 8 + i) * 64));
    }
    CHECK(misses("lru", scan) == 1200);
    CHECK(misses("srrip", scan) == 804);
}

}  // namespace

}  // namespace machine_known_test
