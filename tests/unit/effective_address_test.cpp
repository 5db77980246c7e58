// The parts of the effective-address profiler.
#include "plugins/effective_address/report.h"
#include "plugins/effective_address/tracker.h"

#include <doctest/doctest.h>
#include <array>
#include <map>
#include <random>
#include <set>
#include <utility>

namespace effective_address_test {

namespace {

using namespace effective_address;

constexpr std::uint32_t kThreadA = 1, kThreadB = 2;

// An instruction that reads 8 bytes.
constexpr trace_site_t kSite{0, 8, TRACE_SITE_READ, 0};
constexpr trace_instr_t kInstr{.pc = 0x1000, .length = 4, .flags = TRACE_INSTR_LOAD};

std::vector<trace_record_t> records_of(const std::vector<std::uint64_t>& addresses) {
    std::vector<trace_record_t> records;
    records.reserve(addresses.size());
    for (const std::uint64_t address : addresses) records.push_back({address, 0, 0});
    return records;
}

// What a tracker says of one instruction, given the addresses that it refers to.
class OneOperand {
  public:
    explicit OneOperand(const std::vector<std::uint64_t>& addresses, trace_site_t site = kSite) {
        tracker.learn({&site, 1}, &kInstr);
        tracker.process(0, true, records_of(addresses));
        tracker.finish();
    }
    const Operand& operator*() const { return tracker.operand(1); }
    const Operand* operator->() const { return &tracker.operand(1); }

  private:
    Tracker tracker;
};

std::vector<std::uint64_t> walk(std::uint64_t from, std::uint64_t stride, std::size_t count) {
    std::vector<std::uint64_t> addresses;
    for (std::size_t i = 0; i < count; ++i) addresses.push_back(from + i * stride);
    return addresses;
}

TEST_CASE("frequent items: exact up to the capacity, then with the bound that is stated") {
    constexpr std::uint32_t kCapacity = 32;
    FrequentItems few;
    for (std::uint64_t value = 0; value < kCapacity; ++value) few.add(value, value + 1, kCapacity);
    CHECK(few.exact());
    CHECK(few.top(2) == std::vector<Item>{{31, 32}, {30, 31}});

    std::mt19937_64 random(1);
    FrequentItems many;
    std::map<std::uint64_t, std::uint64_t> truth;
    for (int i = 0; i < 200'000; ++i) {
        const std::uint64_t value = random() % 3 == 0 ? 7 : random() % 5000;
        many.add(value, 1, kCapacity);
        ++truth[value];
    }
    CHECK(!many.exact());
    CHECK(many.total() == 200'000);
    CHECK(many.error() <= many.total() * 2 / kCapacity);
    const std::vector<Item> top = many.top(kCapacity);
    CHECK(top[0].value == 7);
    for (const Item& item : top) {
        CHECK(item.count <= truth[item.value]);
        CHECK(item.count + many.error() >= truth[item.value]);
    }
}

TEST_CASE("footprint: exact for few pages, within a few per cent for many") {
    Footprint::Budget budget;
    Footprint small;
    std::set<std::uint64_t> lines, pages;
    std::mt19937_64 random(2);
    for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t line = random() % (std::uint64_t{Footprint::kMostPages} * 64);
        small.add(line, budget);
        lines.insert(line);
        pages.insert(line / 64);
    }
    CHECK(small.exact());
    CHECK(small.lines() == lines.size());
    CHECK(small.pages() == pages.size());

    Footprint large;
    constexpr std::uint64_t kPages = 100'000;
    large.add_range(5, kPages * 64 - 1, budget);
    large.add_range(5, kPages * 64 - 1, budget);
    CHECK(!large.exact());
    CHECK(static_cast<double>(large.pages()) == doctest::Approx(kPages).epsilon(0.05));
    CHECK(static_cast<double>(large.lines()) == doctest::Approx(kPages * 64).epsilon(0.05));
}

TEST_CASE("footprint: a range counts each of its lines, and no budget makes it an estimate") {
    Footprint::Budget budget;
    Footprint range;
    range.add_range(63, 64, budget);
    CHECK((range.lines() == 2 && range.pages() == 2));
    range.add_range(130, 190, budget);
    CHECK((range.lines() == 63 && range.pages() == 3));

    Footprint::Budget none{0};
    Footprint poor;
    for (std::uint64_t page = 0; page < 50; ++page) poor.add(page * 64, none);
    CHECK(!poor.exact());
    CHECK((poor.pages() >= 49 && poor.pages() <= 51));
}

TEST_CASE("operand: one stride, wherever buffers end") {
    const OneOperand constant(walk(0x5000, 0, 30'000));
    CHECK(constant->pattern().constant == 29'999);
    CHECK(describe_strides(*constant) == "constant 0");
    CHECK(constant->addresses(2) == std::vector<Item>{{0x5000, 30'000}});

    const OneOperand forward(walk(0x10000, 16, 30'000));
    CHECK(forward->pattern().constant == 29'999);
    CHECK(forward->footprint().lines() == 7'500);
    CHECK(forward->addresses(1).empty());  // none stands out

    const OneOperand back(walk(0x900000, std::uint64_t(-8), 1000));
    CHECK(describe_strides(*back) == "constant -8");
    CHECK(back->footprint().lines() == 126);
}

TEST_CASE("operand: few strides") {
    std::vector<std::uint64_t> addresses;
    for (std::uint64_t row = 0; row < 50; ++row)
        for (std::uint64_t i = 0; i < 4; ++i) addresses.push_back(0x100000 + row * 4096 + i * 8);
    const OneOperand rows(addresses);
    CHECK(rows->pattern().constant == 150);
    CHECK(rows->pattern().few == 49);
    CHECK(rows->strides(4) == std::vector<Item>{{8, 150}, {4072, 49}});
    CHECK(rows->footprint().pages() == 50);
}

// `rows` of so few cells that no run is long: `strides` different ones from row to row, in turn.
std::vector<std::uint64_t> short_rows(std::uint64_t rows, std::uint64_t cells,
                                      std::uint64_t strides) {
    std::vector<std::uint64_t> addresses;
    std::uint64_t at = 0x100000;
    for (std::uint64_t row = 0; row < rows; ++row) {
        for (std::uint64_t i = 0; i < cells; ++i) addresses.push_back(at + i * 8);
        at = addresses.back() + 104 + 8 * (row % strides);
    }
    return addresses;
}

TEST_CASE("operand: few strides are counted exactly, however short the runs") {
    const OneOperand one(short_rows(4000, 4, 1));
    CHECK(one->kind() == (Operand::kIrregular | Operand::kFewStrides));
    CHECK(one->strides(4) == std::vector<Item>{{8, 12'000}, {104, 3999}});
    CHECK(describe_strides(*one) == "few: 8 75.0%, 104 25.0%");

    const OneOperand most(short_rows(15'001, 2, 15));
    CHECK(most->strides_exact());
    const std::vector<Item> strides = most->strides(16);
    REQUIRE(strides.size() == 16);
    CHECK(strides[0] == Item{8, 15'001});
    for (std::size_t i = 1; i < 16; ++i) CHECK(strides[i] == Item{96 + 8 * i, 1000});

    // Few addresses, of which one is repeated.
    std::vector<std::uint64_t> few;
    for (std::size_t i = 0; i < 10'000; ++i) few.push_back(0x7000 + (i % 3 == 0 ? 0 : 8));
    const OneOperand places(few);
    CHECK(places->kind() == (Operand::kFew | Operand::kFewStrides));
    CHECK(places->strides(4) == std::vector<Item>{{0, 3333}, {8, 3333}, {std::uint64_t(-8), 3333}});
    CHECK(places->addresses(2) == std::vector<Item>{{0x7008, 6666}, {0x7000, 3334}});
}

TEST_CASE("operand: strides are sampled once there are more than 16 of them") {
    const OneOperand many(short_rows(100'000, 4, 17));
    CHECK(!many->strides_exact());
    CHECK(many->kind() == Operand::kIrregular);
    const std::vector<Item> strides = many->strides(1);
    REQUIRE(strides.size() == 1);
    CHECK(strides[0].value == 8);
    CHECK(static_cast<double>(strides[0].count) == doctest::Approx(300'000).epsilon(0.1));
}

TEST_CASE("operand: irregular addresses are counted one by one while they are few") {
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> addresses;
    std::map<std::uint64_t, std::uint64_t> truth;
    for (int i = 0; i < 100'000; ++i) {
        addresses.push_back(0x7000 + 8 * (random() % 100));
        ++truth[addresses.back()];
    }
    const OneOperand few(addresses);
    CHECK(few->kind() == Operand::kFew);
    CHECK(few->addresses_exact());
    CHECK(few->footprint().lines() == 13);
    const std::vector<Item> top = few->addresses(100);
    REQUIRE(top.size() == 100);
    for (const Item& item : top) CHECK(item.count == truth[item.value]);
}

TEST_CASE("operand: many irregular addresses are sampled, and their footprint is exact") {
    std::mt19937_64 random(4);
    std::vector<std::uint64_t> addresses;
    std::set<std::uint64_t> lines;
    for (int i = 0; i < 400'000; ++i) {
        const bool hot = random() % 4 == 0;
        addresses.push_back(hot ? 0x7000 : 0x100000 + 8 * (random() % 100'000));
        lines.insert(addresses.back() / kLineBytes);
    }
    const OneOperand many(addresses);
    CHECK(many->kind() == Operand::kIrregular);
    CHECK(many->references() == 400'000);
    CHECK(many->footprint().lines() == lines.size());
    const std::vector<Item> top = many->addresses(8);
    REQUIRE(top.size() == 1);
    CHECK(top[0].value == 0x7000);
    CHECK(static_cast<double>(top[0].count) == doctest::Approx(100'000).epsilon(0.1));
    CHECK(describe_strides(*many).starts_with("irregular"));
}

TEST_CASE("operand: alignment, in runs and alone") {
    const OneOperand crossing(walk(0x5000 + 60, 64, 64));
    CHECK(crossing->alignment().misaligned == 64);
    CHECK(crossing->alignment().line_crossing == 64);
    CHECK(crossing->alignment().page_crossing == 1);
    CHECK(crossing->footprint().lines() == 65);

    const OneOperand same(walk(0x5000 + 4095, 0, 10));
    CHECK(same->alignment().page_crossing == 10);

    std::mt19937_64 random(5);
    std::vector<std::uint64_t> addresses;
    std::uint64_t misaligned = 0, lines = 0;
    for (int i = 0; i < 50'000; ++i) {
        addresses.push_back(0x100000 + random() % 100'000);
        misaligned += addresses.back() % 8 != 0;
        lines += addresses.back() % 64 > 56;
    }
    const OneOperand mixed(addresses);
    CHECK(mixed->alignment().misaligned == misaligned);
    CHECK(mixed->alignment().line_crossing == lines);
    // 10 bytes have no natural alignment.
    CHECK(OneOperand(addresses, {0, 10, TRACE_SITE_READ, 0})->alignment().misaligned == 0);
}

TEST_CASE("tracker: an instruction in two blocks is one, and threads have strides of their own") {
    Tracker tracker;
    const trace_instr_t instrs[2] = {kInstr, kInstr};  // the same pc
    const trace_site_t sites[2] = {{0, 8, TRACE_SITE_READ, 0}, {1, 8, TRACE_SITE_READ, 0}};
    tracker.learn(sites, instrs);
    std::vector<trace_record_t> a, b;
    for (std::uint32_t i = 0; i < 100; ++i) {
        a.push_back({0x1000 + i * 8, i == 0 ? 0U : 1U, 0});
        b.push_back({0x9000 + i * 8, 1, 0});
    }
    const std::span<const trace_record_t> records_a(a), records_b(b);
    for (std::size_t at = 0; at < 100; at += 25) {
        tracker.process(0, false, records_a.subspan(at, 25));
        tracker.process(1, false, records_b.subspan(at, 25));
    }
    tracker.finish();
    REQUIRE(tracker.operands().size() == 1);
    CHECK(tracker.operand(1).references() == 200);
    CHECK(tracker.operand(1).pattern().constant == 198);
}

// What a driver makes of the records of one thread, by trace_capture_runs(). It records every
// reference of some, as one that has found the operand irregular does.
class LeavingOut {
  public:
    explicit LeavingOut(bool some_each) : some_each_(some_each) {}

    void add(trace_record_t record) {
        const bool continues = record.value == last_ + stride_;
        stride_ = record.value - std::exchange(last_, record.value);
        if (continues && !(some_each_ && random_() % 8 == 0)) {
            ++left_out_;
            site_ = record.site;
            return;
        }
        record.aux = std::exchange(left_out_, 0);
        records.push_back(record);
    }
    void end() {
        if (left_out_ != 0) records.push_back({last_, site_, left_out_ - 1});
        left_out_ = 0;
    }

    std::vector<trace_record_t> records;

  private:
    bool some_each_;
    std::minstd_rand random_;
    std::uint64_t last_ = 0, stride_ = 0;
    std::uint32_t left_out_ = 0, site_ = 0;
};

void check_same(const Tracker& whole, const Tracker& part) {
    const Operand &a = whole.operand(1), &b = part.operand(1);
    CHECK(a.references() == b.references());
    CHECK(a.footprint().lines() == b.footprint().lines());
    CHECK(a.footprint().pages() == b.footprint().pages());
    CHECK(a.alignment().misaligned == b.alignment().misaligned);
    CHECK(a.alignment().line_crossing == b.alignment().line_crossing);
    CHECK(a.alignment().page_crossing == b.alignment().page_crossing);
    CHECK(a.kind() == b.kind());
    CHECK(a.strides_exact() == b.strides_exact());
    CHECK(a.strides(16) == b.strides(16));
    CHECK(a.addresses_exact() == b.addresses_exact());
    CHECK(a.addresses(128) == b.addresses(128));
}

TEST_CASE("tracker: what is left out of runs is as if it had been recorded") {
    std::mt19937_64 random(6);
    for (int round = 0; round < 120; ++round) {
        // Walks of random lengths, or so many short ones that they are taken for irregular; of two
        // threads, in buffers of any length.
        const std::uint64_t longest = round % 4 == 0 ? 2 : 1 + random() % (round % 4 * 60);
        const int walks = longest == 2 ? 100 : 10;
        const std::uint64_t places = round % 3 == 0 ? 64 : 4096;
        Tracker whole, part;
        for (Tracker* tracker : {&whole, &part}) tracker->learn({&kSite, 1}, &kInstr);
        std::array<LeavingOut, 2> drivers{LeavingOut(round % 2), LeavingOut(false)};
        const bool alone = round % 5 == 0;
        for (int buffer = 0; buffer < 12; ++buffer) {
            const std::uint32_t thread = alone ? 0 : buffer % 2;
            LeavingOut& driver = drivers[thread];
            std::vector<trace_record_t> records;
            for (int walk = 0; walk < walks; ++walk) {
                const std::uint64_t from = 0x10000 + random() % places * 8 + (round % 7 == 0);
                const std::uint64_t stride = random() % 4 == 0 ? 0 : 8 * (random() % 64) - 128;
                for (std::uint64_t i = random() % longest + 1; i > 0; --i)
                    records.push_back({from + i * stride, 0, 0});
            }
            for (const trace_record_t& record : records) driver.add(record);
            if (random() % 3 == 0) driver.end();  // another thread is created
            whole.process(thread, alone, records);
            part.process(thread, alone, std::exchange(driver.records, {}));
        }
        for (const std::uint32_t thread : {0U, 1U}) {
            drivers[thread].end();
            part.process(thread, alone, drivers[thread].records);
            if (thread == 1) part.end(thread, 100);
        }
        whole.finish();
        part.finish();
        check_same(whole, part);
        const auto touches = whole.sharing().touches(), same = part.sharing().touches();
        REQUIRE(touches.size() == same.size());
        for (std::size_t i = 0; i < touches.size(); ++i) {
            CHECK(touches[i].line == same[i].line);
            CHECK(touches[i].bytes == same[i].bytes);
            CHECK(touches[i].count == same[i].count);
            CHECK(touches[i].since == same[i].since);
        }
    }
}

TEST_CASE("tracker: samples of irregular operands are the same whatever is left out") {
    std::mt19937_64 random(7);
    for (int round = 0; round < 40; ++round) {
        // Of many places, so that addresses are sampled; of a few strides or of any.
        const std::uint64_t strides = round % 2 == 0 ? 3 : 1000;
        Tracker whole, part;
        for (Tracker* tracker : {&whole, &part}) tracker->learn({&kSite, 1}, &kInstr);
        std::array<LeavingOut, 2> drivers{LeavingOut(round % 4 == 0), LeavingOut(false)};
        for (int buffer = 0; buffer < 8; ++buffer) {
            const std::uint32_t thread = buffer % 2;
            std::vector<trace_record_t> records;
            std::uint64_t at = 0x100000;
            while (records.size() < 5000) {
                const std::uint64_t stride = 8 * (random() % strides);
                if (random() % 4 == 0) at = 0x100000 + 8 * (random() % 100'000);
                const std::uint64_t length = random() % 50 == 0 ? 200 : 1 + random() % 3;
                for (std::uint64_t i = 0; i < length; ++i) records.push_back({at += stride, 0, 0});
            }
            for (const trace_record_t& record : records) drivers[thread].add(record);
            whole.process(thread, false, records);
            part.process(thread, false, std::exchange(drivers[thread].records, {}));
        }
        for (const std::uint32_t thread : {0U, 1U}) {
            drivers[thread].end();
            part.process(thread, false, drivers[thread].records);
        }
        whole.finish();
        part.finish();
        CHECK(!whole.operand(1).addresses_exact());
        CHECK(whole.operand(1).kind() != Operand::kRuns);
        check_same(whole, part);
    }
}

TEST_CASE("tracker: what a thread did while it was alone is not shared") {
    Tracker tracker;
    tracker.learn({&kSite, 1}, &kInstr);
    tracker.process(0, true, records_of(walk(0x5000, 0, 10)));
    tracker.process(0, false, records_of(walk(0x5000, 0, 3)));
    tracker.finish();
    CHECK(tracker.operand(1).references() == 13);
    const std::vector<Touch> touches = tracker.sharing().touches();
    REQUIRE(touches.size() == 1);
    CHECK(touches[0].count == 3);
}

TEST_CASE("tracker: few strides in short runs are the same whatever is left out") {
    const std::vector<trace_record_t> records = records_of(short_rows(6000, 4, 3));
    for (const bool some_each : {false, true}) {
        Tracker whole, part;
        for (Tracker* tracker : {&whole, &part}) tracker->learn({&kSite, 1}, &kInstr);
        // The second thread begins when the operand is no longer taken in runs.
        for (const std::uint32_t thread : {0U, 1U}) {
            LeavingOut driver(some_each);
            for (const trace_record_t& record : records) driver.add(record);
            driver.end();
            whole.process(thread, false, records);
            part.process(thread, false, driver.records);
        }
        whole.finish();
        part.finish();
        CHECK(whole.operand(1).strides(4) ==
              std::vector<Item>{{8, 36'000}, {104, 4000}, {112, 4000}, {120, 3998}});
        CHECK(whole.operand(1).pattern().few == 11'998);
        check_same(whole, part);
    }
}

TEST_CASE(
    "tracker: a second reference at twice the first one's address goes on, as a driver sees it") {
    Tracker tracker;
    tracker.learn({&kSite, 1}, &kInstr);
    const trace_record_t records[] = {{0x400000, 0, 0}, {0x900000, 0, 2}};
    tracker.process(0, true, records);  // 4, 8, c, then 9
    tracker.finish();
    CHECK(tracker.operand(1).references() == 4);
    CHECK(tracker.operand(1).strides(4) ==
          std::vector<Item>{{0x400000, 2}, {std::uint64_t(-0x300000), 1}});
    CHECK(tracker.operand(1).footprint().lines() == 4);
}

SharingResult evaluated(Sharing& sharing, std::vector<Touch>& touches,
                        const ThreadEnds& ends = {}) {
    touches = sharing.touches();
    return evaluate(
        touches, sharing.scale(), 4, [](std::uint32_t operand) { return operand != 3; }, ends);
}

TEST_CASE("sharing: falsely, truly, of pages, and not at all") {
    const auto use = [](Sharing& sharing, std::uint32_t operand, std::uint32_t thread,
                        std::uint64_t address, std::uint64_t count) {
        sharing.add({address, 0, count}, operand, 8, thread);
    };
    Sharing sharing;
    use(sharing, 1, kThreadA, 0x1000, 5);  // writes other bytes of the line than
    use(sharing, 2, kThreadB, 0x1008, 7);
    use(sharing, 1, kThreadA, 0x2000, 11);  // writes what the other one reads
    use(sharing, 3, kThreadB, 0x2000, 13);
    use(sharing, 3, kThreadA, 0x3000, 17);  // both read
    use(sharing, 3, kThreadB, 0x3008, 19);
    use(sharing, 1, kThreadA, 0x4000, 23);  // other lines of a page
    use(sharing, 2, kThreadB, 0x4040, 29);
    std::vector<Touch> touches;
    const SharingResult found = evaluated(sharing, touches);
    CHECK((found.by_operand[1].falsely == 5 && found.by_operand[2].falsely == 7));
    CHECK((found.by_operand[1].truly == 11 && found.by_operand[3].truly == 13));
    CHECK(found.by_operand[1].pages == 5 + 11 + 23);
    CHECK((found.lines_shared_falsely == 1 && found.lines_shared_truly == 1));
    CHECK(found.pages_shared == 3);
    REQUIRE(found.lines.size() == 1);
    CHECK(found.lines[0].references == 12);
    CHECK(found.lines[0].touches.size() == 2);
}

TEST_CASE("sharing: the lines that can move most often come first") {
    Sharing sharing;
    sharing.add({0x1000, 0, 1}, 1, 8, kThreadA);
    sharing.add({0x1008, 0, 1'000'000}, 3, 8, kThreadB);  // read while A is there
    sharing.add({0x2000, 0, 300}, 1, 8, kThreadA);
    sharing.add({0x2008, 0, 200}, 2, 8, kThreadB);
    sharing.add({0x3000, 0, 5}, 1, 8, kThreadA);
    sharing.add({0x3008, 0, 5}, 2, 8, kThreadB);
    std::vector<Touch> touches;
    const SharingResult found = evaluated(sharing, touches);
    REQUIRE(found.lines.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(found.lines[i].touches.front().line == std::array{0x2000, 0x3000, 0x1000}[i] / 64);
        CHECK(found.lines[i].transfers == std::array{400, 9, 2}[i]);
    }
    CHECK(found.lines[2].references == 1'000'001);
}

TEST_CASE("sharing: what is only read behind the end of the thread that wrote it is not shared") {
    const ThreadEnds ends{{kThreadA, 50}};  // by then there are the sites 0 to 49
    for (const std::uint32_t reads_since : {49U, 50U}) {
        for (const std::uint64_t place : {0x1000U, 0x1008U}) {
            Sharing sharing;
            sharing.add({0x1000, 0, 10}, 1, 8, kThreadA, 3);
            sharing.add({place, 0, 20}, 3, 8, kThreadB, 60);
            sharing.add({place, 0, 30}, 3, 8, kThreadB, reads_since);
            std::vector<Touch> touches;
            const SharingResult found = evaluated(sharing, touches, ends);
            const Shared expected = reads_since == 50 ? Shared{}
                                    : place == 0x1000 ? Shared{0, 50, 50}
                                                      : Shared{50, 0, 50};
            CHECK(found.by_operand[3].falsely == expected.falsely);
            CHECK(found.by_operand[3].truly == expected.truly);
            CHECK(found.lines.size() == (expected.falsely != 0 ? 1 : 0));
        }
    }
    // It is written, too, or read by one that has ended itself.
    Sharing sharing;
    sharing.add({0x1000, 0, 10}, 1, 8, kThreadA, 3);
    sharing.add({0x1008, 0, 20}, 2, 8, kThreadB, 60);
    sharing.add({0x2000, 0, 7}, 3, 8, kThreadA, 3);
    sharing.add({0x2008, 0, 8}, 2, 8, kThreadB, 60);
    std::vector<Touch> touches;
    CHECK(evaluated(sharing, touches, ends).lines.size() == 2);
}

TEST_CASE("tracker: when a reference was made is known from the code that has been executed") {
    const trace_site_t sites[] = {kSite, {0, 8, TRACE_SITE_READ, 1}};
    Tracker tracker;
    tracker.learn(sites, &kInstr);
    tracker.process(1, false, records_of(walk(0x5000, 0, 10)));
    tracker.process(0, false, records_of(walk(0x6000, 0, 5)));  // goes on behind what follows
    const trace_record_t later[] = {{0x7000, 1, 0}, {0x6000, 0, 0}, {0x8000, 0, 0}};
    tracker.process(0, false, later);
    tracker.end(1, 1);
    tracker.finish();
    CHECK(tracker.ends().at(1) == 1);
    for (const Touch& touch : tracker.sharing().touches())
        CHECK(touch.since == (touch.line >= 0x7000 / 64 ? 1 : 0));
}

TEST_CASE("sharing: a reference across two lines touches both, a run each of its lines") {
    Sharing sharing;
    sharing.add({0x1000 + 60, 0, 1}, 1, 8, kThreadA);
    sharing.add({0x2000 + 3 * 64, 64, 4}, 1, 8, kThreadA);
    const std::vector<Touch> touches = sharing.touches();
    REQUIRE(touches.size() == 6);
    CHECK(touches[0].bytes == std::uint64_t{0xf} << 60);
    CHECK(touches[1].bytes == 0xf);
    CHECK(touches[5].line == 0x2000 / 64 + 3);
}

TEST_CASE("sharing: with more lines than there is room for, estimates from some pages") {
    Sharing sharing(4096);
    constexpr std::uint64_t kPages = 20'000;
    for (std::uint64_t page = 0; page < kPages; ++page) {
        sharing.add({page * 4096, 0, 3}, 1, 8, kThreadA);
        sharing.add({page * 4096 + 8, 0, 5}, 2, 8, kThreadB);
    }
    std::vector<Touch> touches;
    const SharingResult found = evaluated(sharing, touches);
    CHECK(sharing.scale() > 1);
    CHECK(touches.size() <= 4096);
    CHECK(static_cast<double>(found.by_operand[1].falsely) ==
          doctest::Approx(3 * kPages).epsilon(0.15));
    CHECK(static_cast<double>(found.lines_shared_falsely) == doctest::Approx(kPages).epsilon(0.15));
}

}  // namespace

}  // namespace effective_address_test
