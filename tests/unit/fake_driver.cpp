// Stands in for the driver: writes what a scenario says to the trace segment and ends.
//
//     fake_driver SCENARIO
//
// The program that it pretends to run is one mapped file (the program's) with a block of three
// instructions that ran 5 times and one of two that ran 7 times, and 20,000 references.
#include "framework/trace/futex.h"
#include "framework/trace/launch.h"
#include "framework/trace/segment_layout.h"

#include <sys/mman.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace trace = assay::trace;

namespace {

constexpr std::uint64_t kCode = 0x401000;
constexpr std::uint32_t kReferences = 20'000;

class FakeDriver {
  public:
    explicit FakeDriver(int fd) {
        base_ = static_cast<char*>(mmap(nullptr, trace::kSegmentBytes, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_NORESERVE, fd, 0));
        if (base_ == MAP_FAILED || control().magic != trace::kMagic) std::abort();
        control().state = trace::DriverState::kRunning;
        control().thread_count = 1;
        logged_ = control().event_log_bytes;
        slot().buffer_start = ring();
        slot().cursor = ring();
    }

    trace::Control& control() { return *at<trace::Control>(0); }
    trace::ThreadSlot& slot() { return *at<trace::ThreadSlot>(trace::thread_offset(0)); }

    void map(std::string_view path) {
        trace::MappedEvent event{kCode, kCode + 0x1000, 0x1000, 0, 0};
        log(trace::EventType::kMapped, &event, sizeof event, path);
    }

    void log(trace::EventType type, const void* body, std::size_t bytes, std::string_view text) {
        const trace::EventHeader header{type, static_cast<std::uint32_t>(bytes + text.size())};
        char* to = at<char>(trace::kEventLogOffset) + logged_;
        std::memcpy(to, &header, sizeof header);
        if (bytes) std::memcpy(to + sizeof header, body, bytes);
        std::memcpy(to + sizeof header + bytes, text.data(), text.size());
        logged_ += (sizeof header + header.bytes + 7) & ~std::uint64_t{7};
        control().event_log_bytes = logged_;
    }

    // A block of instructions of four bytes each, with a fetch and a read of each.
    void block(std::uint64_t pc, std::uint32_t instrs, std::uint64_t executions) {
        const std::uint32_t first = instrs_;
        for (std::uint32_t i = 0; i < instrs; ++i, ++instrs_) {
            trace_instr_t& row = at<trace_instr_t>(trace::kInstrsOffset)[instrs_];
            row.pc = pc + 4 * i;
            row.block = blocks_;
            row.length = 4;
            for (const std::uint8_t kind : {TRACE_SITE_FETCH, TRACE_SITE_READ})
                at<trace_site_t>(trace::kSitesOffset)[sites_++] = {instrs_, 4, kind, 0};
        }
        at<trace_block_t>(trace::kBlocksOffset)[blocks_] = {pc, first, instrs};
        at<std::uint64_t>(trace::thread_offset(0) + trace::kCountersOffset)[blocks_] = executions;
        ++blocks_;
        control().instr_count = instrs_;
        control().site_count = sites_;
        control().block_count = blocks_;
    }

    void record(std::uint64_t value, std::uint32_t site) {
        const std::uint64_t cursor = slot().cursor;
        *at<trace_record_t>(cursor) = {value, site, 0};
        slot().cursor = cursor + sizeof(trace_record_t);
        if (slot().cursor - slot().buffer_start == trace::kBufferBytes) next_buffer();
    }

    void finish(trace::DriverState state) {
        control().state = state;
        ring_doorbell();
    }

  private:
    template <typename T>
    T* at(std::uint64_t offset) {
        return reinterpret_cast<T*>(base_ + offset);
    }
    // Addresses in the ring are offsets in the segment here.
    static std::uint64_t ring() { return trace::thread_offset(0) + trace::kRingOffset; }

    void next_buffer() {
        const std::uint32_t produced = slot().produced;
        slot().filled[produced % trace::kBufferCount] = trace::kRecordsPerBuffer;
        const std::uint64_t index = (produced + 1) % trace::kBufferCount;
        slot().cursor = ring() + index * trace::kBufferBytes;
        slot().buffer_start = slot().cursor.load();
        slot().produced = produced + 1;
        ring_doorbell();
        for (;;) {
            slot().producer_waits = 1;
            const std::uint32_t consumed = slot().consumed;
            if (produced + 1 - consumed < trace::kBufferCount) break;
            trace::futex_wait(slot().consumed, consumed, nullptr);
        }
        slot().producer_waits = 0;
    }

    void ring_doorbell() {
        ++control().doorbell;
        if (control().collector_sleeps) trace::futex_wake(control().doorbell);
    }

    char* base_;
    std::uint64_t logged_ = 0;
    std::uint32_t blocks_ = 0, instrs_ = 0, sites_ = 0;
};

int play(FakeDriver& driver, std::string_view scenario) {
    if (scenario == "exit-at-once") return 3;  // without a state: as if it had crashed
    if (scenario == "refuse-at-once") {
        driver.log(trace::EventType::kRefused, nullptr, 0, "cannot load this");
        driver.finish(trace::DriverState::kRefused);
        return 125;
    }
    driver.block(kCode, 3, 5);
    driver.block(kCode + 8, 2, 7);  // overlaps the first one's last instruction
    const std::uint32_t references = scenario == "long" ? 100 * kReferences : kReferences;
    for (std::uint32_t i = 0; i < references; ++i) driver.record(0x10000 + i, i % 2 ? 1 : 3);

    if (scenario == "bad-site") driver.record(0, 1'000'000);
    if (scenario == "bad-block") driver.control().block_count = 50;
    if (scenario == "bad-length") driver.control().instr_count = 0xFFFF'FFFF;
    if (scenario == "bad-log") driver.control().event_log_bytes = 1ULL << 40;
    if (scenario == "bad-cursor") driver.slot().cursor += 1ULL << 30;
    if (scenario == "bad-producer") driver.slot().produced = 4'000'000;
    if (scenario == "partial") {
        const trace::PartialEvent left_early{0, 1, 1, 0}, entered{1, 1, 0, 0};
        driver.log(trace::EventType::kPartial, &left_early, sizeof left_early, "");
        driver.log(trace::EventType::kPartial, &entered, sizeof entered, "");
    }
    if (scenario == "refuse") {
        driver.log(trace::EventType::kRefused, nullptr, 0, "cannot run clone3 at 0x401004");
        driver.finish(trace::DriverState::kRefused);
        return 125;
    }
    if (scenario == "killed") raise(SIGKILL);
    if (scenario == "waits") {
        // The collector passes the signal on to this process.
        kill(getppid(), SIGTERM);
        pause();
    }
    driver.finish(trace::DriverState::kFinished);
    if (scenario == "interrupted") raise(SIGINT);
    return scenario == "status" ? 42 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    const auto launch = trace::launch_from(std::getenv(trace::kLaunchVariable));
    if (!launch) return 1;
    const std::string link = "/proc/self/fd/" + std::to_string(launch->program_fd);
    char file[4096];
    const ssize_t length = readlink(link.c_str(), file, sizeof file);
    FakeDriver driver(launch->segment_fd);
    driver.map({file, static_cast<std::size_t>(length)});
    return play(driver, argv[argc - 1]);
}
