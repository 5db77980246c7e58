// Machine files, and where threads run.
#include "plugins/machine/machine_file.h"
#include "plugins/machine/thread_placement.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace machine_file_test {

namespace {

using machine::Machine;

Machine parsed(const std::string& text) {
    return machine::parse_machine(text, "folder/m.yaml");
}

// What is said of the text, or "".
std::string refused(const std::string& text) {
    try {
        parsed(text);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "";
}

// Of a cache, on line 2, that has this key on line 3.
std::string refused_of_cache(const std::string& key) {
    return refused("caches:\n  D1: {size: 32K, ways: 8,\n    " + key + "}\n");
}

bool says(const std::string& message, int line, const std::string& what) {
    INFO(message);
    const bool right = message.starts_with("folder/m.yaml:" + std::to_string(line) + ": ") &&
                       message.find(what) != message.npos;
    CHECK(right);
    return right;
}

TEST_CASE("changes of fields") {
    const std::string text =
        "caches:\n  D1: {size: 32K, ways: 8, prefetch: stride}\ntlbs:\n  T: {entries: 64}\n";
    const auto changed = [&](const std::vector<machine::Change>& changes) {
        return machine::parse_machine(text, "m.yaml", changes);
    };
    const Machine machine = changed({{"D1.ways", "4"},
                                     {"D1.replacement", "{policy: random, seed: 7}"},
                                     {"D1.prefetch.degree", "3"},
                                     {"T.entries", "128"},
                                     {"memory", "99"},
                                     {"cores", "2"}});
    CHECK(machine.caches[0].ways == 4);
    CHECK(machine.caches[0].size == 32768);
    CHECK(machine.caches[0].replacement.policy == "random");
    CHECK(machine.caches[0].replacement.seed == 7);
    CHECK(machine.caches[0].prefetch[0].kind == "stride");
    CHECK(machine.caches[0].prefetch[0].degree == 3);
    CHECK(machine.tlbs[0].entries == 128);
    CHECK(machine.memory_latency == 99);
    CHECK(machine.cores == 2);
    CHECK(changed({{"D1.ways", "4"}, {"D1.ways", "2"}}).caches[0].ways == 2);

    const auto message = [&](const std::string& key, const std::string& value) {
        try {
            changed({{key, value}});
        } catch (const std::runtime_error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(message("D2.ways", "4") == "--set=D2.ways=4: the machine has no \"D2\"; use D1 or T");
    CHECK(message("D1.way", "4") == "m.yaml with --set: unknown key \"way\"; did you mean ways?");
    CHECK(message("D1.ways", "x").starts_with("m.yaml with --set: ways: \"x\""));
    CHECK(message("D1.replacement.seed", "1") ==
          "--set=D1.replacement.seed=1: D1 has no replacement with parameters");
    CHECK(message("D1.size", "{").starts_with("--set=D1.size={: "));
    CHECK(message("D1.size", "3000").starts_with("m.yaml"));
}

TEST_CASE("a whole machine file") {
    const Machine machine = parsed(R"(machine: two cores
cores: 4
clusters: 2
threads: [0, 2, 1]
line: 128
page: 2M
coherence: moesi
sharers: directory
sharing: no
memory: 200
walk: 30
caches:
  LL: {level: 3, of: machine, size: 8M, ways: 16, writes: back, latency: 60, replacement: drrip}
  L2: {level: 2, of: cluster, size: 1M, ways: 16, inclusion: inclusive, hash: xor, classify: yes}
  D1: {level: 1, holds: data, of: core, size: 64K, ways: 8, writes: through, allocate: no, late: 20,
       prefetch: [next-line, {kind: stream, degree: 2, distance: 4}]}
  I1: {level: 1, holds: instructions, of: core, size: 32K, ways: 8,
       replacement: {policy: random, seed: 7}}
tlbs:
  STLB: {level: 2, entries: 1536, ways: 12, latency: 7}
  DTLB: {holds: data, entries: 64}
)");
    CHECK(machine.name == "two cores");
    CHECK(machine.cores == 4);
    CHECK(machine.cores_of_cluster() == 2);
    CHECK(machine.placement == machine::Placement::kList);
    CHECK(machine.core_of_thread == std::vector<std::uint32_t>{0, 2, 1});
    CHECK(machine.line == 128);
    CHECK(machine.page == 2 << 20);
    CHECK(machine.protocol == machine::Protocol::kMoesi);
    CHECK(machine.directory);
    CHECK_FALSE(machine.sharing);
    CHECK(machine.memory_latency == 200);
    CHECK(machine.walk_latency == 30);
    REQUIRE(machine.caches.size() == 4);
    // By level, those of instructions first.
    const machine::Cache &i1 = machine.caches[0], &d1 = machine.caches[1], &l2 = machine.caches[2],
                         &ll = machine.caches[3];
    CHECK(i1.name == "I1");
    CHECK(i1.replacement.policy == "random");
    CHECK(i1.replacement.seed == 7);
    CHECK(i1.of == machine::Of::kCore);
    CHECK(d1.name == "D1");
    CHECK(d1.holds == machine::Holds::kData);
    CHECK(d1.size == 65536);
    CHECK(d1.counts_writes);
    CHECK_FALSE(d1.write_back);
    CHECK_FALSE(d1.write_allocate);
    CHECK(d1.late == 20);
    REQUIRE(d1.prefetch.size() == 2);
    CHECK(d1.prefetch[0].kind == "next-line");
    CHECK(d1.prefetch[0].degree == 1);
    CHECK(d1.prefetch[0].distance == 1);
    CHECK(d1.prefetch[1].kind == "stream");
    CHECK(d1.prefetch[1].degree == 2);
    CHECK(d1.prefetch[1].distance == 4);
    CHECK(l2.of == machine::Of::kCluster);
    CHECK(l2.inclusion == machine::Inclusion::kInclusive);
    CHECK(l2.hash == machine::Hash::kXor);
    CHECK(l2.classify);
    CHECK_FALSE(l2.counts_writes);
    CHECK(ll.level == 3);
    CHECK(ll.ways == 16);
    CHECK(ll.latency == 60);
    CHECK(ll.replacement.policy == "drrip");
    REQUIRE(machine.tlbs.size() == 2);
    CHECK(machine.tlbs[0].name == "DTLB");
    CHECK(machine.tlbs[0].ways == 64);  // fully associative
    CHECK(machine.tlbs[1].sets() == 128);
    CHECK(machine.tlbs[1].latency == 7);
}

TEST_CASE("memory that no cache holds") {
    const std::string caches = "caches: {D1: {size: 32K, ways: 8}}\n";
    const Machine machine =
        parsed(caches + "uncached:\n  - {from: 0x20000000, size: 64K}\n  - {size: 16, from: 0}\n");
    for (const std::uint64_t address : {0x20000000U, 0x2000ffffU, 0U, 15U})
        CHECK(machine.is_uncached(address));
    for (const std::uint64_t address : {0x1fffffffU, 0x20010000U, 16U})
        CHECK_FALSE(machine.is_uncached(address));
    CHECK_FALSE(parsed(caches).is_uncached(0));
    CHECK(says(refused("uncached: {from: 0, size: 1K}\n"), 1, "write a list"));
    CHECK(says(refused("uncached:\n  - {from: 0}\n"), 2, "needs a size"));
    CHECK(says(refused("uncached:\n  - {from: here, size: 1K}\n"), 2, "is not an address"));
    CHECK(says(refused("uncached:\n  - {to: 1, size: 1K}\n"), 2, "unknown key"));
}

TEST_CASE("what a machine file leaves out") {
    const Machine machine = parsed("caches:\n  D1: {size: 32K, ways: 8}\n");
    CHECK(machine.cores == 0);
    CHECK(machine.clusters == 1);
    CHECK(machine.placement == machine::Placement::kAsTheyCome);
    CHECK(machine.line == 64);
    CHECK(machine.page == 4096);
    CHECK(machine.protocol == machine::Protocol::kNone);
    CHECK_FALSE(machine.directory);
    CHECK(machine.sharing);
    const machine::Cache& cache = machine.caches.at(0);
    CHECK(cache.level == 1);
    CHECK(cache.holds == machine::Holds::kBoth);
    CHECK(cache.of == machine::Of::kMachine);
    CHECK(cache.hash == machine::Hash::kModulus);
    CHECK(cache.inclusion == machine::Inclusion::kNone);
    CHECK(cache.write_back);
    CHECK(cache.write_allocate);
    CHECK_FALSE(cache.counts_writes);
    CHECK(cache.replacement.policy == "lru");
    CHECK(cache.prefetch.empty());
    CHECK(cache.late == 0);
    CHECK_FALSE(cache.classify);
    // Libraries are beside the file.
    const Machine own = parsed("caches:\n  D1: {size: 32K, ways: 8, replacement: ./mine.so}\n");
    CHECK(own.caches.at(0).replacement.policy == "folder/./mine.so");
    CHECK_NOTHROW(machine::read_machine("generic"));
}

TEST_CASE("mistakes in a machine file are named with their lines") {
    const std::string fine = "caches:\n  D1: {size: 32K, ways: 8}\n";
    says(refused("machine: a\ncors: 2\n" + fine), 2, "unknown key \"cors\"; did you mean cores?");
    says(refused(fine + "sizes: 2\nx: 1\n"), 3, "unknown key \"sizes\"");
    says(refused("cores: 65\n" + fine), 1, "cores: \"65\"; use 1 to 64");
    says(refused("cores: two\n" + fine), 1, "cores: \"two\"; use 1 to 64");
    says(refused("cores: [1]\n" + fine), 1, "cores needs one plain value");
    says(refused("line: 48\n" + fine), 1, "line: use a power of two from 16 to 4096");
    says(refused("page: 2K\n" + fine), 1, "page: use a power of two from 4K to 1G");
    says(refused("page: much\n" + fine), 1, "page: \"much\" is not a size");
    says(refused("page: 0\n" + fine), 1, "page: use a power of two from 4K to 1G, or mapped");
    says(refused("transparent: madvise\n" + fine), 1, "transparent needs page: mapped");
    says(refused("page: mapped\ntransparent: sometimes\n" + fine), 2,
         "use always, madvise or never");
    says(refused("page: mapped\ntransparant: always\n" + fine), 2, "did you mean transparent?");
    says(refused("cores: 2\ncoherence: mosi\n" + fine), 2,
         "coherence: \"mosi\"; use none, mesi or moesi");
    says(refused("cores: 2\nthreads: []\n" + fine), 2, "threads: the list is empty");
    says(refused("cores: 2\nthreads: [0, 64]\n" + fine), 2, "threads: \"64\"; use 0 to 63");
    says(refused("cores: 2\nthreads: [0, 2]\n" + fine), 1, "threads: the machine has no core 2");
    says(refused("threads: [0]\n" + fine), 1, "a list of threads needs a number of cores");
    says(refused("coherence: mesi\n" + fine), 1, "coherence needs a number of cores");
    says(refused("cores: 3\nclusters: 2\n" + fine), 1, "3 cores cannot be divided into 2 clusters");
    says(refused("clusters: 2\n" + fine), 1, "clusters need a number of cores");
    says(refused("machine: a\n"), 1, "a machine needs caches or translation buffers");
    says(refused("machine\n"), 1, "a machine: write one \"key: value\" per line");
    says(refused("caches:\n  D1: [\n"), 3, "");
    says(refused("caches:\n  1D: {size: 32K, ways: 8}\n"), 2, "\"1D\" is not a name");
    says(refused(fine + "tlbs:\n  D1: {entries: 4}\n"), 4,
         "two caches or buffers have the name D1");
}

TEST_CASE("mistakes in a cache or translation buffer are named with their lines") {
    says(refused_of_cache("seize: 1"), 3, "unknown key \"seize\"; did you mean size?");
    says(refused_of_cache("level: 9"), 3, "level: \"9\"; use 1 to 8");
    says(refused_of_cache("holds: all"), 3, "use instructions, data or both");
    says(refused_of_cache("of: thread"), 3, "use core, cluster or machine");
    says(refused_of_cache("hash: md5"), 3, "use modulus or xor");
    says(refused_of_cache("inclusion: some"), 3, "use none, inclusive or exclusive");
    says(refused_of_cache("writes: around"), 3, "use back or through");
    says(refused_of_cache("allocate: maybe"), 3, "use no or yes");
    says(refused_of_cache("replacement: lur"), 3, "replacement: \"lur\"; use lru, fifo");
    says(refused_of_cache("replacement: {policy: lru, sed: 1}"), 3, "did you mean seed?");
    says(refused_of_cache("prefetch: next"), 3, "prefetch: \"next\"; use next-line, stride");
    says(refused_of_cache("prefetch: {kind: stream, degree: 65}"), 3, "degree: \"65\"");
    says(refused_of_cache("prefetch: {degree: 2}"), 3, "prefetch needs a kind");
    says(refused_of_cache("inclusion: exclusive"), 2, "no cache is above it");
    const auto refused_cache = [](const std::string& keys) {
        return refused("caches:\n  D1: {" + keys + "}\n");
    };
    says(refused_cache("ways: 8"), 2, "D1 needs a size");
    says(refused_cache("size: 32K"), 2, "D1 needs ways");
    says(refused_cache("size: 32K, ways: 7"), 2, "D1: ");
    says(refused_cache("size: 48K, ways: 3, replacement: plru"), 2, "plru needs a power of two");
    says(refused_cache("size: 576, ways: 3, hash: xor"), 2, "xor needs a power of two of sets");
    const auto refused_pair = [](const std::string& upper, const std::string& lower) {
        return refused("caches:\n  A: {size: 32K, ways: 8, " + upper +
                       "}\n  B: {size: 32K, ways: 8, " + lower + "}\n");
    };
    says(refused_pair("level: 1", "level: 1"), 2, "A and B have the same level");
    says(refused_pair("level: 1", "level: 2, holds: data"), 2, "B must hold instructions and data");
    says(refused_pair("level: 1, of: machine", "level: 2, of: core"), 2,
         "B is shared by fewer cores than A");
    says(refused_pair("level: 1", "level: 2, inclusion: exclusive, writes: through"), 3,
         "an exclusive cache cannot write through");
    const auto refused_tlb = [](const std::string& keys) {
        return refused("caches:\n  D1: {size: 32K, ways: 8}\ntlbs:\n  T: {" + keys + "}\n");
    };
    says(refused_tlb("ways: 4"), 4, "T needs entries");
    says(refused_tlb("entries: 6, ways: 4"), 4, "must be a multiple of its ways");
    says(refused_tlb("entries: 4, replacement: srrip"), 4, "use lru, fifo, plru");
    says(refused_tlb("entires: 4"), 4, "did you mean entries?");
    says(refused_tlb("entries: 4, page: 4K"), 4, "did you mean pages?");
    says(refused_tlb("entries: 4, pages: [4K, 3M]"), 4, "pages: use a power of two from 4K to 1G");
    says(refused_tlb("entries: 4, pages: []"), 4, "pages: the list is empty");
    says(refused_tlb("entries: 4, pages: [4K]}\n  U: {entries: 4, pages: [2M, 4K]"), 4,
         "T and U have the same level and hold the same");
}

TEST_CASE("threads are placed on cores") {
    Machine machine;
    machine.cores = 2;
    {
        machine::ThreadPlacement placement(machine);
        CHECK(placement.core_of(0) == 0);
        CHECK(placement.core_of(1) == 1);
        CHECK(placement.core_of(2) == 0);
        CHECK(placement.core_of(3) == 1);
        placement.end(1);
        placement.end(3);
        placement.end(9);  // has never been
        CHECK(placement.core_of(4) == 1);
        CHECK(placement.core_of(5) == 1);
        CHECK(placement.core_of(6) == 0);
        CHECK(placement.core_of(2) == 0);  // stays
    }
    machine.placement = machine::Placement::kRoundRobin;
    {
        machine::ThreadPlacement placement(machine);
        placement.core_of(0);
        placement.end(0);
        CHECK(placement.core_of(1) == 1);
        CHECK(placement.core_of(2) == 0);
    }
    machine.placement = machine::Placement::kList;
    machine.core_of_thread = {1, 1, 0};
    {
        machine::ThreadPlacement placement(machine);
        CHECK(placement.core_of(0) == 1);
        CHECK(placement.core_of(1) == 1);
        CHECK(placement.core_of(2) == 0);
        CHECK(placement.core_of(3) == 1);
    }
    machine = Machine{};
    machine::ThreadPlacement of_threads(machine);
    CHECK(of_threads.core_of(17) == 17);
}

}  // namespace

}  // namespace machine_file_test
