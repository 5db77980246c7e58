// What a replay makes of recorded bursts, and what it refuses.
#include "framework/collector/trace/segment.h"
#include "framework/driver/replay/replay_driver.h"
#include "framework/recording/record_coding.h"
#include "framework/recording/trace_file_writer.h"
#include "framework/support/error.h"
#include "tests/unit/temporary_folder.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <memory>
#include <string>
#include <vector>

namespace replayed_bursts_test {

using namespace assay;

namespace {

constexpr std::uint64_t kFirst = 0x401000, kSecond = 0x401010;
// Sites of the trace: each block's, and that of the bursts.
enum Site : std::uint32_t { kBlockA, kBlockB, kBurst };

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

template <typename T>
void append(std::vector<std::byte>& to, const std::vector<T>& rows) {
    const auto bytes = std::as_bytes(std::span(rows));
    to.insert(to.end(), bytes.begin(), bytes.end());
}

trace_chunk_t header(std::uint32_t kind) {
    trace_chunk_t made{};
    made.kind = kind;
    made.pid = 7;
    made.image = 1;
    return made;
}

trace_instr_t branch(std::uint64_t pc, std::uint32_t block) {
    trace_instr_t instr{};
    instr.pc = pc;
    instr.block = block;
    instr.length = 2;
    instr.flags = TRACE_INSTR_CONDITIONAL;
    instr.bytes[0] = 0x75;
    return instr;
}

// Two blocks of a conditional branch each, of one thread.
void write_trace(const std::string& path, const trace_image_t& bursts,
                 const std::vector<trace_record_t>& records) {
    recording::TraceFileWriter file(path);
    trace_image_t image = bursts;
    image.size = sizeof image;
    image.captures = TRACE_RECORDED_BLOCKS;
    file.append(header(TRACE_CHUNK_IMAGE), bytes_of(image));
    const std::vector<trace_site_t> sites{
        {0, 0, TRACE_SITE_BLOCK, 0}, {1, 0, TRACE_SITE_BLOCK, 0}, {0, 0, TRACE_SITE_BURST, 0}};
    std::vector<std::byte> code;
    append(code, std::vector{trace_code_t{0, 2, 0, 2, 0, 3}});
    append(code, std::vector{trace_block_t{kFirst, 0, 1}, trace_block_t{kSecond, 1, 1}});
    append(code, std::vector{branch(kFirst, 0), branch(kSecond, 1)});
    append(code, sites);
    file.append(header(TRACE_CHUNK_CODE), code);
    recording::RecordEncoder encoder;
    encoder.begin_part(0, records.size(), 0, {});
    encoder.add(records, sites);
    trace_chunk_t chunk = header(TRACE_CHUNK_RECORDS);
    chunk.records = encoder.records();
    file.append(chunk, encoder.take());
    trace_image_end_t end{};
    end.size = sizeof end;
    end.state = TRACE_IMAGE_ENDED;
    end.parts = 1;
    file.append(header(TRACE_CHUNK_END), bytes_of(end));
}

struct Replayed {
    std::vector<std::string> records;  // kind value/aux; "|" at the end of a buffer
    std::string problem;
};

std::string name_of(unsigned kind) {
    return kind == TRACE_SITE_BRANCH        ? "branch"
           : kind == TRACE_SITE_BLOCK_COUNT ? "count"
           : kind == TRACE_SITE_INTERVAL    ? "interval"
           : kind == TRACE_SITE_BURST       ? "burst"
                                            : "other";
}

// Of the conditional branches, with the bursts of the trace and intervals of so many instructions.
Replayed replay_of(const std::string& path, std::uint64_t interval) {
    const recording::TraceFileReader file(path);
    const replay::ImageTrace image(file, file.images().front());
    trace::Spec spec{};
    spec.captures = trace::kCaptureBlockCounts | trace::kCaptureBranches;
    spec.branches = TRACE_CONDITIONAL_BRANCHES;
    spec.regions.sample_burst = image.image().sample_burst;
    spec.regions.sample_period = image.image().sample_period;
    spec.regions.sample_warm_up = image.image().sample_warm_up;
    spec.regions.sample_interval = interval;
    const collector::Segment segment;
    const auto readers = std::make_unique<trace::Readers>();
    const auto values = std::make_unique<trace::ValueLists>();
    segment.control().spec = replay::possible(spec, *values, image);
    const replay::Output output{segment.fd(), *readers};
    replay::ReplayDriver driver(image, segment.control().spec, *values, std::span(&output, 1));
    driver.run();

    Replayed replayed;
    replayed.problem = driver.problem();
    const collector::SharedMemory slot(segment.fd(), trace::thread_offset(0), trace::kThreadStride,
                                       collector::SharedMemory::Access::kRead);
    const auto& head = slot.at<trace::ThreadSlot>(0);
    const collector::SharedMemory tables(segment.fd(), trace::kSitesOffset, 4096,
                                         collector::SharedMemory::Access::kRead);
    for (std::uint32_t buffer = 0; buffer < head.produced; ++buffer) {
        for (std::uint32_t i = 0; i < head.filled[buffer]; ++i) {
            const auto& record = slot.at<trace_record_t>(
                trace::kRingOffset + std::uint64_t{buffer} * trace::kBufferBytes +
                i * sizeof(trace_record_t));
            const auto& site = tables.at<trace_site_t>(record.site * sizeof(trace_site_t));
            replayed.records.push_back(name_of(site.kind) + " " + std::to_string(record.value) +
                                       "/" + std::to_string(record.aux));
        }
        replayed.records.emplace_back("|");
    }
    return replayed;
}

trace_image_t bursts(std::uint64_t burst, std::uint64_t period, std::uint64_t warm_up) {
    trace_image_t image{};
    image.sample_burst = burst;
    image.sample_period = period;
    image.sample_warm_up = warm_up;
    return image;
}

}  // namespace

TEST_CASE("bursts have the counts and branches of a run that is sampled") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    write_trace(path, bursts(2000, 20'000, 1000),
                {{5000, kBurst, trace::kRestEnds},
                 {0, kBlockA, 0},
                 {0, kBlockB, 0},
                 {kFirst, kBurst, trace::kGoesOnAt},
                 {6000, kBurst, trace::kWarmUpEnds},
                 {0, kBlockA, 0},
                 {0, kBlockA, 0},
                 {kFirst + 2, kBurst, trace::kGoesOnAt},
                 {8000, kBurst, trace::kBurstEnds},
                 {30'000, kBurst, trace::kThreadEnds}});
    const auto to = [](std::uint64_t pc, int taken) {
        return "branch " + std::to_string(pc) + "/" + std::to_string(taken);
    };
    const Replayed replayed = replay_of(path, 7000);
    CHECK(replayed.problem.empty());
    CHECK(replayed.records ==
          std::vector<std::string>{
              to(kSecond, 1), to(kFirst, 1), "count 1/0", "count 1/1", "burst 6000/2", "|",
              to(kFirst, 1), to(kFirst + 2, 0), "count 3/0", "burst 8000/0", "|", "interval 7000/0",
              "interval 7000/0", "interval 7000/0", "interval 7000/0", "burst 30000/1", "|"});
}

TEST_CASE("bursts without a warm-up begin with the intervals before them") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    write_trace(path, bursts(2000, 20'000, 0),
                {{15'000, kBurst, trace::kRestEnds},
                 {0, kBlockB, 0},
                 {kSecond + 2, kBurst, trace::kGoesOnAt},
                 {17'000, kBurst, trace::kBurstEnds}});
    const Replayed replayed = replay_of(path, 7000);
    CHECK(replayed.problem.empty());
    CHECK(replayed.records ==
          std::vector<std::string>{"interval 7000/0", "interval 7000/0",
                                   "branch " + std::to_string(kSecond + 2) + "/0", "count 1/1",
                                   "burst 17000/0", "|"});
}

TEST_CASE("numbers of instructions that no thread can have executed are damage") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    constexpr std::uint64_t kHuge = UINT64_MAX;
    for (const auto& [first, second] :
         {std::pair{kHuge, kHuge}, std::pair{std::uint64_t{1000}, kHuge},
          std::pair{std::uint64_t{1000}, std::uint64_t{10'000'000}},
          std::pair{std::uint64_t{1000}, std::uint64_t{999}}}) {
        write_trace(path, bursts(2000, 20'000, 1000),
                    {{first, kBurst, trace::kRestEnds},
                     {second, kBurst, trace::kWarmUpEnds},
                     {second, kBurst, trace::kThreadEnds}});
        const std::string problem = replay_of(path, 1).problem;
        CHECK(problem.find("is damaged: a thread of process 7 has executed ") != std::string::npos);
        CHECK(problem.find('\n') == std::string::npos);
    }
}

TEST_CASE("records of bursts in any order do no harm") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    for (const std::uint32_t first : {0U, 1U, 2U, 3U, 4U, 5U, 77U})
        for (const std::uint32_t second : {0U, 1U, 2U, 3U, 4U, 5U, 77U}) {
            write_trace(path, bursts(2000, 20'000, 1000),
                        {{100, kBurst, first},
                         {0, kBlockA, 0},
                         {200, kBurst, second},
                         {0, kBlockB, 0},
                         {300, kBurst, first}});
            CHECK(replay_of(path, 150).problem.empty());
        }
}

TEST_CASE("bursts that cannot be are damage") {
    const TemporaryFolder folder;
    const std::string path = folder.file("trace");
    constexpr std::uint64_t kHuge = UINT64_MAX;
    const std::vector<trace_record_t> records{{0, kBlockA, 0}};
    const auto refusal = [&](const trace_image_t& image) -> std::string {
        write_trace(path, image, records);
        const recording::TraceFileReader file(path);
        try {
            const replay::ImageTrace trace(file, file.images().front());
            return "";
        } catch (const Error& e) {
            return e.what();
        }
    };
    for (const trace_image_t& image :
         {bursts(0, 20'000, 0), bursts(20'000, 20'000, 0), bursts(30'000, 20'000, 0),
          bursts(2000, 0, 0), bursts(0, 0, 5), bursts(2000, 20'000, 18'001),
          bursts(2000, 20'000, kHuge), bursts(kHuge, kHuge, kHuge), bursts(2000, kHuge, 0)}) {
        CHECK(refusal(image).find("process 7 has bursts of ") != std::string::npos);
        CHECK(refusal(image).find('\n') == std::string::npos);
    }
    CHECK(refusal(bursts(0, 0, 0)).empty());
    CHECK(refusal(bursts(2000, 20'000, 18'000)).empty());
}

}  // namespace replayed_bursts_test
