// Stands in for the driver: writes what a scenario says to the trace segment and ends.
//
//     fake_driver SCENARIO
//
// The program that it pretends to run is one mapped file (the program's) with a block of three
// instructions that ran 5 times and one of two that ran 7 times, and 20,000 references.
#include "framework/trace/launch.h"
#include "tests/unit/fake_trace.h"

#include <unistd.h>
#include <csignal>
#include <string_view>

namespace trace = assay::trace;

namespace {

constexpr std::uint64_t kCode = 0x401000;
constexpr std::uint32_t kReferences = 80'000;
constexpr std::uint32_t kRead = 1;  // a site

void references(FakeTrace& driver, std::uint32_t slot, std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) driver.record(slot, 0x10000 + i, i % 2 ? kRead : 3);
}

// Threads 1 and 2 beside the first, and 3 and 4 behind thread 2. One of them runs the first block
// once more; each makes 80,000 references.
void threads(FakeTrace& driver) {
    driver.open_slot(4, 1);
    driver.open_slot(1, 2);
    driver.executed(2, 0, 1);
    references(driver, 1, kReferences);
    references(driver, 2, kReferences);
    for (const std::uint32_t thread : {3U, 4U}) {
        driver.reuse_slot(2, thread);
        references(driver, 2, kReferences);
    }
}

// Two threads read the same line, one after the other and twice each.
void same_line(FakeTrace& driver) {
    for (int times = 0; times < 2; ++times) driver.record(0, 0x10000, kRead);
    driver.reuse_slot(0, 1);
    for (int times = 0; times < 2; ++times) driver.record(0, 0x10000, kRead);
}

void damage(FakeTrace& driver, std::string_view scenario) {
    if (scenario == "bad-site") driver.record(0, 0, 1'000'000);
    if (scenario == "bad-block") driver.control().block_count = 50;
    if (scenario == "bad-length") driver.control().instr_count = 0xFFFF'FFFF;
    if (scenario == "bad-log") driver.control().event_log_bytes = 1ULL << 40;
    if (scenario == "bad-cursor") driver.slot(0).cursor += 1ULL << 30;
    if (scenario == "bad-producer") driver.slot(0).produced = 4'000'000;
    if (scenario == "bad-slots") driver.control().thread_count = 0xFFFF'FFFF;
    if (scenario == "bad-ring") driver.open_slot(3, 1);
    if (scenario == "bad-counter") driver.executed(0, 0, 4330040640251999351);
    if (scenario == "bad-partial") {
        const trace::PartialEvent left_early{0, 1, 1, 0, 1ULL << 40};
        driver.log(trace::EventType::kPartial, &left_early, sizeof left_early, "");
    }
}

int play(FakeTrace& driver, std::string_view scenario) {
    if (scenario == "exit-at-once") return 3;  // without a state: as if it had crashed
    if (scenario == "refuse-at-once") {
        driver.log(trace::EventType::kRefused, nullptr, 0, "cannot load this");
        driver.finish(trace::DriverState::kRefused);
        return 125;
    }
    driver.block(kCode, 3);
    driver.executed(0, 0, 5);
    driver.block(kCode + 8, 2);  // overlaps the first one's last instruction
    driver.executed(0, 1, 7);
    if (scenario == "same-line")
        same_line(driver);
    else
        references(driver, 0, scenario == "long" ? 25 * kReferences : kReferences);

    damage(driver, scenario);
    if (scenario == "threads") threads(driver);
    if (scenario == "partial") {
        const trace::PartialEvent left_early{0, 1, 1, 0, 1}, entered{1, 1, 0, 0, 1};
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
        // The collector passes the signal on to this process, because another one sends it.
        const pid_t collector = getppid();
        if (fork() == 0) _exit(kill(collector, SIGTERM));
        pause();
    }
    driver.finish(trace::DriverState::kFinished);
    if (scenario == "interrupted") raise(SIGINT);
    return scenario == "status" ? 42 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    const auto launch = trace::program_environment(environ).launch;
    if (!launch) return 1;
    const std::string link = "/proc/self/fd/" + std::to_string(launch->program_fd);
    char file[4096];
    const ssize_t length = readlink(link.c_str(), file, sizeof file);
    FakeTrace driver(launch->segment_fd);
    driver.open_slot(trace::kBufferCount, 0);
    driver.map(kCode, {file, static_cast<std::size_t>(length)});
    return play(driver, argv[argc - 1]);
}
