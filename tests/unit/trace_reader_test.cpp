// The reader of the trace segment, with threads.
#include "framework/collector/trace/trace_reader.h"

#include "assay/client.h"
#include "framework/support/error.h"
#include "tests/unit/fake_trace.h"

#include <doctest/doctest.h>
#include <map>
#include <thread>

namespace trace_reader_test {

using namespace assay;
using namespace assay::collector;

namespace {

constexpr std::uint32_t kRead = 1, kOtherRead = 3;  // sites of two instructions
constexpr std::uint64_t kPart = 8192;               // records that are passed on at once

// A segment with one block of three instructions, its writer and its reader.
class Setup {
  public:
    Setup() : driver(segment_.fd()) { driver.block(0x401000, 3); }

    // `count` records with values that continue those of the thread that uses the slot.
    void records(std::uint32_t slot, std::uint64_t count) {
        std::uint64_t& next = written_[driver.slot(slot).thread];
        for (; count > 0; --count) driver.record(slot, next++, kRead);
    }
    void buffers(std::uint32_t slot, std::uint32_t count) {
        records(slot, std::uint64_t{count} * trace::kRecordsPerBuffer);
    }
    const std::map<std::uint32_t, std::uint64_t>& written() const { return written_; }

    // At the place where the thread that uses the slot is.
    void say(std::uint32_t slot, std::uint64_t operation, std::uint64_t address,
             std::uint64_t bytes, std::string_view text) {
        const trace::ThreadSlot& of = driver.slot(slot);
        const std::uint64_t at = of.cursor - of.buffer_start;
        const trace::MarkerEvent event{
            operation, {address, bytes}, of.thread,
            slot,      of.produced,      static_cast<std::uint32_t>(at / sizeof(trace_record_t))};
        driver.log(trace::EventType::kMarker, &event, sizeof event, text);
    }

    // As the reader passes it on. Values that do not continue those of the thread are not counted.
    std::map<std::uint32_t, std::uint64_t> read;
    std::vector<std::uint32_t> order;  // of the threads, one for what follows one another
    std::vector<std::size_t> parts;    // how many records each has
    trace_record_t last{};
    struct Said {
        std::uint32_t thread;
        std::uint64_t record, records, operation, address, bytes;
        std::string name, owner;
        bool operator==(const Said&) const = default;
    };
    std::vector<Said> said;

  private:
    void take(TraceReader::Source source, std::span<const trace_record_t> records,
              std::span<const trace_marker_t> markers) {
        const std::uint32_t thread = source.thread;
        if (order.empty() || order.back() != thread) order.push_back(thread);
        parts.push_back(records.size());
        for (const trace_marker_t& marker : markers)
            said.push_back({thread, marker.record, records.size(), marker.operation, marker.address,
                            marker.bytes, marker.name, marker.owner});
        std::uint64_t& next = read[thread];
        for (const trace_record_t& record : records)
            if (record.value == next) ++next;
        if (!records.empty()) last = records.back();
    }

    Segment segment_;
    std::map<std::uint32_t, std::uint64_t> written_;

  public:
    FakeTrace driver;
    TraceReader reader{
        segment_,
        [this](TraceReader::Source source, std::span<const trace_record_t> records,
               std::span<const trace_marker_t> markers) { take(source, records, markers); }};
};

// Of a buffer and five records, of which each `together` are of one instruction and then of
// another.
std::vector<std::size_t> parts_of_buffer(const trace::Spec& spec, std::uint64_t together) {
    Setup setup;
    setup.driver.control().spec = spec;
    setup.driver.open_slot(8, 0);
    constexpr std::uint64_t kCount = trace::kRecordsPerBuffer + 5;
    for (std::uint64_t i = 0; i < kCount; ++i)
        setup.driver.record(0, i, i / together % 2 == 0 ? kRead : kOtherRead);
    setup.reader.consume_rest();
    CHECK(setup.read[0] == kCount);
    return setup.parts;
}

// Of threads that complete them one after the other.
void check_order_of_buffers(const trace::Spec& spec) {
    Setup setup;
    setup.driver.control().spec = spec;
    std::vector<std::uint32_t> turns;
    std::atomic<bool> ended = false;
    std::thread driver([&] {
        for (const std::uint32_t thread : {0U, 1U, 2U})
            setup.driver.open_slot(2U << thread, thread);
        for (std::uint32_t turn = 0; turn < 2000; ++turn) {
            const std::uint32_t slot = (turn + turn / 9) % 3;
            if (!turns.empty() && turns.back() != slot) setup.driver.end_buffer(turns.back());
            if (turns.empty() || turns.back() != slot) turns.push_back(slot);
            setup.records(slot, 1 + turn % 50 * 1000);
        }
        ended = true;
    });
    while (!ended) setup.reader.consume();
    driver.join();
    setup.reader.consume_rest();
    CHECK(setup.read == setup.written());
    CHECK(setup.order == turns);
}

}  // namespace

TEST_CASE("records arrive in order, under the number of their thread") {
    Setup setup;
    std::atomic<bool> ended = false;
    std::thread driver([&] {
        setup.driver.open_slot(trace::kBufferCount, 0);
        setup.records(0, 400'000);
        setup.driver.open_slot(4, 1);
        setup.driver.open_slot(1, 2);
        for (int part = 0; part < 50; ++part)
            for (const std::uint32_t slot : {0U, 1U, 2U}) setup.records(slot, 20'000);
        ended = true;
    });
    while (!ended) setup.reader.consume();
    driver.join();
    setup.reader.consume_rest();
    CHECK(setup.written().size() == 3);
    CHECK(setup.read == setup.written());
    CHECK(setup.reader.records() == 3'400'000);
}

TEST_CASE("threads that use one slot after the other are told apart") {
    Setup setup;
    setup.driver.open_slot(8, 0);
    setup.records(0, trace::kRecordsPerBuffer + 1000);
    setup.driver.reuse_slot(0, 1);  // which makes no record
    setup.driver.reuse_slot(0, 2);
    setup.records(0, 1);
    setup.driver.reuse_slot(0, 3);
    setup.buffers(0, 2);
    setup.driver.reuse_slot(0, 4);
    setup.records(0, 10);
    CHECK(setup.reader.consume());
    CHECK(setup.order == std::vector<std::uint32_t>{0, 2, 3});
    setup.reader.consume_rest();
    CHECK(setup.order.back() == 4);
    CHECK(setup.read == setup.written());
}

TEST_CASE("with a schedule, buffers arrive in the order in which they were completed") {
    check_order_of_buffers({.slice = 1000});
}

TEST_CASE("where mappings are captured, buffers arrive in the order in which they were completed") {
    check_order_of_buffers({.captures = trace::kCaptureMappings});
}

TEST_CASE("what is told of pages has an address and bytes") {
    Setup setup;
    setup.driver.open_slot(8, 0);
    setup.records(0, 3);
    setup.say(0, TRACE_MARKER_PAGES_ADVISED, 0x200000, 0x400000, "");
    setup.say(0, TRACE_MARKER_PAGES_SEEN, 7, 9, "");
    setup.reader.consume_rest();
    REQUIRE(setup.said.size() == 2);
    CHECK(setup.said[0] ==
          Setup::Said{0, 3, 3, TRACE_MARKER_PAGES_ADVISED, 0x200000, 0x400000, "", ""});
    CHECK(setup.said[1] == Setup::Said{0, 3, 3, TRACE_MARKER_PAGES_SEEN, 7, 0, "", ""});
}

TEST_CASE("with a schedule, a buffer that is not in the order is damage") {
    Setup setup;
    setup.driver.control().spec.slice = 1000;
    setup.driver.open_slot(8, 0);
    setup.buffers(0, 2);
    setup.driver.slot(0).place_in_order[0] = 7;
    CHECK_FALSE(setup.reader.consume());
    CHECK_THROWS_WITH_AS(setup.reader.consume_rest(),
                         doctest::Contains("the trace is damaged (buffer 0 is missing)"), Error);
    CHECK(setup.reader.discard());
}

TEST_CASE("no thread waits for another's whole ring") {
    Setup setup;
    setup.driver.open_slot(trace::kBufferCount, 0);
    setup.driver.open_slot(trace::kBufferCount, 1);
    setup.buffers(0, trace::kBufferCount - 1);
    setup.buffers(1, 2);
    CHECK(setup.reader.consume());
    CHECK(std::vector(setup.order.begin(), setup.order.begin() + 5) ==
          std::vector<std::uint32_t>{0, 1, 0, 1, 0});
    setup.reader.consume_rest();
    CHECK(setup.read == setup.written());
}

TEST_CASE("a buffer that a killed driver was completing belongs to who filled it") {
    Setup setup;
    setup.driver.open_slot(2, 5);
    setup.records(0, 300);
    trace::ThreadSlot& slot = setup.driver.slot(0);
    slot.owner[0] = 5;
    slot.filled[0] = 300;
    slot.cursor = slot.buffer_start + trace::kBufferBytes;
    slot.thread = 6;
    setup.reader.consume_rest();
    CHECK(setup.read == setup.written());
}

TEST_CASE("damaged slots are refused, and their buffers can still be given back") {
    for (const std::uint32_t buffer_count : {0U, 3U, 2 * trace::kBufferCount}) {
        CAPTURE(buffer_count);
        Setup setup;
        setup.driver.open_slot(trace::kBufferCount, 0);
        setup.driver.open_slot(2, 1);
        setup.buffers(0, 3);
        setup.buffers(1, 1);
        setup.driver.slot(1).buffer_count = buffer_count;
        CHECK_THROWS_WITH_AS(setup.reader.consume(), doctest::Contains("damaged (a ring of "),
                             Error);
        CHECK(setup.reader.discard());
        CHECK(setup.driver.slot(0).consumed == 3);
        CHECK(setup.driver.slot(1).consumed == 1);
        CHECK_FALSE(setup.reader.discard());
    }
}

TEST_CASE("what was written over a slot in use is not believed") {
    Setup setup;
    setup.driver.open_slot(2, 0);
    setup.buffers(0, 1);
    CHECK(setup.reader.consume());
    setup.driver.slot(0).produced = 4;
    setup.driver.slot(0).buffer_count = trace::kBufferCount;  // the reader knows better
    CHECK_THROWS_WITH_AS(setup.reader.consume(), doctest::Contains("3 complete buffers"), Error);
}

TEST_CASE("slots are not taken away, nor are there more than the segment has") {
    for (const std::uint32_t count : {0U, trace::kMaxThreads + 1}) {
        CAPTURE(count);
        Setup setup;
        setup.driver.open_slot(2, 0);
        setup.buffers(0, 1);
        CHECK(setup.reader.consume());
        setup.buffers(0, 1);
        setup.driver.control().thread_count = count;
        CHECK_THROWS_WITH_AS(setup.reader.consume(), doctest::Contains("thread slots"), Error);
        setup.driver.control().thread_count = 0;
        CHECK(setup.reader.discard());
        CHECK(setup.driver.slot(0).consumed == 2);
    }
}

TEST_CASE("all slots can be in use") {
    Segment segment;
    segment.map_slots(trace::kMaxThreads);
    for (std::uint32_t slot = 0; slot < trace::kMaxThreads; ++slot)
        segment.slot(slot).buffer_count = 1;
    segment.control().thread_count = trace::kMaxThreads;
    segment.slot(trace::kMaxThreads - 1).produced = 1;
    TraceReader reader(segment, [](TraceReader::Source, std::span<const trace_record_t>,
                                   std::span<const trace_marker_t>) {});
    CHECK(reader.consume());
    CHECK(segment.slot(trace::kMaxThreads - 1).consumed == 1);
}

TEST_CASE("counts are sums over the threads") {
    Setup setup;
    constexpr std::uint32_t kBlocks = 20'000;  // more than the counters of some pages
    for (std::uint32_t i = 1; i < kBlocks; ++i) setup.driver.block(0x401000 + 16 * i, 1);
    for (std::uint32_t slot = 0; slot < 3; ++slot) setup.driver.open_slot(1, slot);
    setup.driver.executed(0, 0, 5);
    setup.driver.executed(2, 0, 2);
    setup.driver.executed(1, kBlocks - 1, 11);
    setup.reader.refresh();
    const std::vector<std::uint64_t> counts = setup.reader.counts().instruction_counts();
    REQUIRE(counts.size() == kBlocks + 2);
    CHECK(counts[0] == 7);
    CHECK(counts[2] == 7);
    CHECK(counts[3] == 0);
    CHECK(counts.back() == 11);
    CHECK(setup.reader.counts().instructions() == 3 * 7 + 11);
}

TEST_CASE("counts are impossible where no processor is as fast") {
    using std::chrono::hours;
    using std::chrono::milliseconds;
    constexpr std::uint64_t kSecond = 1'000'000'000;  // of one instruction each nanosecond
    // Of a block of three instructions in each of as many threads; what is said of a time.
    const auto said = [](std::uint64_t times, std::uint32_t threads, auto time) {
        Setup setup;
        for (std::uint32_t slot = 0; slot < threads; ++slot) {
            setup.driver.open_slot(1, slot);
            setup.driver.executed(slot, 0, times);
        }
        setup.reader.refresh();
        const std::string what = setup.reader.counts().impossible(time);
        // What is impossible by itself is left out.
        const std::uint64_t left = what.find("block at") == std::string::npos ? times : 0;
        CHECK(setup.reader.counts().instruction_counts()[0] == threads * left);
        return what;
    };
    CHECK(said(0, 1, milliseconds(0)) == "");
    CHECK(said(kSecond / 100, 1, milliseconds(10)) == "");
    CHECK(said(15 * kSecond, 1, milliseconds(1000)) == "");  // 45 instructions each nanosecond
    CHECK(said(15 * kSecond, 7, milliseconds(1000)) == "");  // of a thread
    CHECK(said(15 * 3600 * kSecond, 1, hours(1)) == "");
    CHECK(said(21 * kSecond, 1, milliseconds(1000)) ==
          "the counts are damaged (the block at 0x401000 executed 21000000000 times within 1 s): "
          "the program has probably written over the driver's memory");
    CHECK(said(kSecond, 2, milliseconds(10)) != "");
    CHECK(said(UINT64_MAX, 2, hours(24 * 365 * 20)) != "");
}

TEST_CASE("counts can be impossible together") {
    using std::chrono::seconds;
    Setup setup;
    setup.driver.open_slot(1, 0);
    setup.driver.block(0x402000, 64);
    setup.driver.executed(0, 0, 15'000'000'000);
    setup.driver.executed(0, 1, 4'000'000'000);
    setup.reader.refresh();
    CHECK(setup.reader.counts()
              .impossible(seconds(1))
              .find("(301000000000 instructions of a thread "
                    "within 1 s)") != std::string::npos);
    setup.driver.executed(0, 1, 2'000'000'000);
    CHECK(setup.reader.counts()
              .impossible(seconds(1))
              .find("(21000000000 basic blocks of a thread "
                    "within 1 s)") != std::string::npos);
    CHECK(setup.reader.counts().impossible(seconds(2)) == "");
}

TEST_CASE("blocks are left early no more often than they are entered") {
    Setup setup;
    setup.driver.open_slot(1, 0);
    setup.driver.executed(0, 0, 5);
    const auto leave = [&](std::uint32_t counted, std::uint64_t times) {
        const trace::PartialEvent event{0, 1, counted, 0, times};
        setup.driver.log(trace::EventType::kPartial, &event, sizeof event, "");
        setup.reader.refresh();
        return setup.reader.counts().impossible(std::chrono::seconds(1));
    };
    CHECK(leave(0, 1000) == "");
    CHECK(leave(1, 3) == "");
    CHECK(leave(1, 2) == "");
    CHECK(leave(1, 1) != "");
    CHECK(setup.reader.counts().instruction_counts() == std::vector<std::uint64_t>{1005, 0, 0});
    CHECK(leave(0, 1ULL << 40) != "");
    CHECK(setup.reader.counts().instruction_counts()[0] == 1005);
}

TEST_CASE("runs that leave out more references than there can be are damage") {
    Setup setup;
    setup.driver.control().spec.data.kind = trace::Filter::kRuns;
    setup.driver.control().run_count = 1;
    setup.driver.open_slot(1, 0);
    setup.driver.run(0, 0) = {0x2000, 1U << 31, kRead, 8, 0};
    CHECK_THROWS_WITH_AS(setup.reader.consume_rest(),
                         doctest::Contains("2147483648 references of a run"), Error);
}

TEST_CASE("buffers arrive in parts, but for what belongs together") {
    constexpr std::size_t kWhole = trace::kRecordsPerBuffer;
    const std::vector<std::size_t> whole{kWhole, 5};
    CHECK(parts_of_buffer({}, 3) == std::vector<std::size_t>{kPart, kPart, kPart, kPart, 5});
    CHECK(parts_of_buffer({.captures = 0, .data = {.kind = trace::Filter::kFootprints}}, 3) ==
          whole);
    const trace::Spec values{.captures = trace::kCaptureValues};
    CHECK(parts_of_buffer(values, 3) ==
          std::vector<std::size_t>{8190, 8190, 8190, 8190, kWhole - 4 * 8190, 5});
    CHECK(parts_of_buffer(values, 2 * kWhole) == whole);
}

TEST_CASE("markers arrive with the records that they stand before") {
    using namespace std::string_literals;
    Setup setup;
    setup.driver.open_slot(8, 0);
    setup.say(0, ASSAY_BEGIN_PHASE, 0x1234, 0, "first\0"s);
    setup.records(0, kPart);
    setup.say(0, ASSAY_BEGIN_PHASE, 0, 0, "second\0"s);
    setup.records(0, trace::kRecordsPerBuffer - kPart - 1);
    setup.say(0, ASSAY_REGISTER_REGION, 0x5000, 64, "owner\0label\0"s);
    setup.driver.open_slot(1, 1);
    setup.say(1, ASSAY_UNREGISTER_REGION, 0x5000, 0, "");
    setup.records(1, 3);
    setup.records(0, 1);
    setup.say(0, ASSAY_END_PHASE, 0, 0, "first\0"s);
    setup.records(0, 5);
    setup.say(0, 999, 7, 8, "");
    CHECK(setup.reader.consume());
    CHECK(setup.said ==
          std::vector<Setup::Said>{
              {0, 0, kPart, ASSAY_BEGIN_PHASE, 0, 0, "first", ""},
              {0, 0, kPart, ASSAY_BEGIN_PHASE, 0, 0, "second", ""},
              {0, kPart - 1, kPart, ASSAY_REGISTER_REGION, 0x5000, 64, "label", "owner"}});
    setup.said.clear();
    setup.reader.consume_rest();
    CHECK(setup.said ==
          std::vector<Setup::Said>{{0, 0, 5, ASSAY_END_PHASE, 0, 0, "first", ""},
                                   {0, 5, 5, 999, 0, 0, "", ""},
                                   {1, 0, 3, ASSAY_UNREGISTER_REGION, 0x5000, 0, "", ""}});
    CHECK(setup.read == setup.written());
}

TEST_CASE("what the program says in markers is text of one line") {
    using namespace std::string_literals;
    Setup setup;
    setup.driver.open_slot(8, 0);
    setup.say(0, ASSAY_BEGIN_PHASE, 0, 0, "\x1b[31m\nred\t\xC3\xA9\0"s);
    setup.say(0, ASSAY_REGISTER_REGION, 0x5000, 64, "o\xFF\0\xC2\x9Bl\0"s);
    setup.reader.consume_rest();
    CHECK(setup.said == std::vector<Setup::Said>{
                            {0, 0, 0, ASSAY_BEGIN_PHASE, 0, 0, "\\x1b[31m\\x0ared\t\xC3\xA9", ""},
                            {0, 0, 0, ASSAY_REGISTER_REGION, 0x5000, 64, "\\xc2\\x9bl", "o\\xff"}});
}

TEST_CASE("markers of threads without records arrive under their threads") {
    Setup setup;
    setup.driver.open_slot(2, 0);
    setup.say(0, ASSAY_BEGIN_PHASE, 0, 0, "a");
    setup.driver.reuse_slot(0, 1);
    setup.say(0, ASSAY_BEGIN_PHASE, 0, 0, "b");
    setup.driver.reuse_slot(0, 2);
    setup.records(0, 4);
    setup.say(0, ASSAY_BEGIN_PHASE, 0, 0, "c");
    setup.driver.reuse_slot(0, 3);
    setup.say(0, ASSAY_BEGIN_PHASE, 0, 0, "d");
    setup.reader.consume_rest();
    CHECK(setup.said == std::vector<Setup::Said>{{0, 0, 0, ASSAY_BEGIN_PHASE, 0, 0, "a", ""},
                                                 {1, 0, 0, ASSAY_BEGIN_PHASE, 0, 0, "b", ""},
                                                 {2, 4, 4, ASSAY_BEGIN_PHASE, 0, 0, "c", ""},
                                                 {3, 0, 0, ASSAY_BEGIN_PHASE, 0, 0, "d", ""}});
    setup.reader.consume_rest();
    CHECK(setup.said.size() == 4);
}

TEST_CASE("markers whose place was damaged keep their order") {
    Setup setup;
    setup.driver.open_slot(2, 0);
    for (const std::uint32_t record : {3U, 1U, 9999U}) {
        const trace::MarkerEvent event{ASSAY_BEGIN_PHASE, {}, 0, 0, 0, record};
        setup.driver.log(trace::EventType::kMarker, &event, sizeof event, "x");
    }
    setup.records(0, 5);
    setup.reader.consume_rest();
    REQUIRE(setup.said.size() == 3);
    CHECK(setup.said[0].record == 3);
    CHECK(setup.said[1].record == 3);
    CHECK(setup.said[2].record == 5);

    const trace::MarkerEvent event{ASSAY_BEGIN_PHASE, {}, 0, trace::kMaxThreads, 0, 0};
    setup.driver.log(trace::EventType::kMarker, &event, sizeof event, "x");
    CHECK_THROWS_WITH_AS(setup.reader.consume_rest(), doctest::Contains("slots"), Error);
}

TEST_CASE("what was left out of runs arrives at the end, whatever killed the program") {
    Setup setup;
    setup.driver.control().spec.data.kind = trace::Filter::kRuns;
    setup.driver.open_slot(trace::kBufferCount, 0);
    setup.driver.open_slot(4, 7);
    setup.records(0, 10);
    setup.records(1, 5);
    // The second thread had gone on from 4 to 6.
    setup.driver.control().run_count = 3;
    setup.driver.run(1, 1) = {.expected = 7, .left_out = 2, .site = kRead, .stride = 1};
    setup.driver.run(1, 2) = {.expected = std::uint64_t{trace::kNoneExpected} << 32};
    setup.driver.finish(trace::DriverState::kRunning);
    setup.reader.consume_rest();
    CHECK(setup.reader.records() == 16);
    CHECK(setup.order == std::vector<std::uint32_t>{0, 7});
    CHECK(setup.last.value == 6);
    CHECK(setup.last.site == kRead);
    CHECK(setup.last.aux == 1);
}

TEST_CASE("a run that a record tells is not told again if the program was killed") {
    for (const bool passed : {true, false}) {
        Setup setup;
        setup.driver.control().spec.data.kind = trace::Filter::kRuns;
        setup.driver.open_slot(trace::kBufferCount, 0);
        setup.records(0, 5);
        // The fifth record tells it, or the sixth will, which the cursor has not passed.
        const std::uint64_t cursor = setup.driver.slot(0).cursor;
        setup.driver.control().run_count = 1;
        setup.driver.run(0, 0) = {.expected = 100,
                                  .left_out = 9,
                                  .site = kRead,
                                  .stride = 1,
                                  .record = passed ? cursor - sizeof(trace_record_t) : cursor};
        setup.driver.finish(trace::DriverState::kRunning);
        setup.reader.consume_rest();
        CHECK(setup.reader.records() == (passed ? 5 : 6));
        CHECK(setup.last.value == (passed ? 4 : 99));
    }
}

TEST_CASE("a run of references to an object is not told again if the program was killed") {
    trace::ObjectRun run{0x1000, 0, 9, kRead, 0};
    const trace_record_t end = trace::end_of(run);
    // Records after the one that tells the end. A run that goes on is another, equal one.
    for (const std::uint64_t later : {0, 1, 2, 3}) {
        run.bytes = later == 3 ? 0x100 : 0;
        Setup setup;
        trace::Spec& spec = setup.driver.control().spec;
        spec.captures = trace::kCaptureReferences | trace::kCaptureBlockCounts;
        spec.objects = trace::Spec::kObjectsOnly;
        spec.data.sets = 64;
        REQUIRE(trace::leaves_out_objects(spec));
        setup.driver.open_slot(trace::kBufferCount, 0);
        setup.records(0, 3);
        setup.driver.record(0, end.value, end.site, end.aux);
        setup.records(0, later % 3);
        setup.driver.control().run_count = 1;
        setup.driver.run<trace::ObjectRun>(0, 0) = run;
        setup.driver.finish(trace::DriverState::kRunning);
        setup.reader.consume_rest();
        CHECK(setup.reader.records() == 4 + later % 3 + (later >= 2 ? 1 : 0));
    }
}

TEST_CASE("a damaged table of runs is refused") {
    Setup setup;
    setup.driver.control().spec.data.kind = trace::Filter::kRuns;
    setup.driver.open_slot(trace::kBufferCount, 0);
    setup.driver.control().run_count = 1;
    setup.driver.run(0, 0) = {.expected = 7, .left_out = 2, .site = 1'000'000, .stride = 1};
    CHECK_THROWS_AS(setup.reader.consume_rest(), Error);
    setup.driver.control().run_count = trace::kMaxRuns + 1;
    CHECK_THROWS_AS(setup.reader.consume_rest(), Error);
}

}  // namespace trace_reader_test
