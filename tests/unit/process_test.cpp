// A process and its threads as the driver keeps them, without a program that runs.
#include "framework/driver/native/process/process.h"

#include "assay/client.h"
#include "framework/collector/trace/segment.h"
#include "framework/driver/native/run/identification.h"
#include "framework/driver/native/run/markers.h"
#include "framework/x86/decoder.h"

#include <doctest/doctest.h>
#include <unistd.h>
#include <array>
#include <memory>

using namespace assay;
using namespace assay::native;

namespace {

struct OneThread {
    explicit OneThread(const trace::Spec& spec = {}) {
        segment.control().spec = spec;
        REQUIRE(process.trace.attach({.segment_fd = dup(segment.fd())}));
        process.regions.initialise(process.trace.spec());
        REQUIRE(thread.map(0, trace::kBufferCount));
        process.regions.begin(*thread.context, true);
    }

    // What the program has in rdx behind a marker.
    std::uint64_t says(std::uint64_t operation) {
        const std::array<std::uint64_t, 6> marker{operation};
        thread.context->gpr[RAX] = reinterpret_cast<std::uint64_t>(marker.data());
        do_marker(thread);
        return thread.context->gpr[RDX];
    }

    collector::Segment segment;
    Process process{[](Thread&) {}};
    Thread thread{process};
};

}  // namespace

TEST_CASE("a marker is answered if it is known") {
    const auto one = std::make_unique<OneThread>();
    CHECK(one->says(ASSAY_IS_PROFILING) == 1);
    CHECK(one->says(999) == 0);
}

TEST_CASE("markers switch collecting off and on") {
    const auto one = std::make_unique<OneThread>();
    CHECK(one->thread.version() == kCollecting);
    CHECK(one->says(ASSAY_STOP_COLLECTING) == 1);
    CHECK(one->thread.version() == kPlain);
    CHECK(one->says(ASSAY_START_COLLECTING) == 1);
    CHECK(one->thread.version() == kCollecting);
}

TEST_CASE("what a thread's dispositions of signals are is the process's") {
    const auto one = std::make_unique<OneThread>();
    CHECK(one->thread.relations.actions == &one->process.actions);
    CHECK_FALSE(one->thread.relations.shares_trace);
}

TEST_CASE("a process knows its threads until one is left") {
    const auto one = std::make_unique<OneThread>();
    Thread other(one->process);
    one->process.join(one->thread);
    CHECK(one->process.is_only_thread(one->thread));
    one->process.join(other);
    CHECK_FALSE(one->process.is_only_thread(one->thread));
    one->process.keep_only(one->thread);
    CHECK(one->process.is_only_thread(one->thread));
    CHECK_FALSE(one->process.shares_memory_with(getppid()));
}

TEST_CASE("a thread that nobody holds does not wait") {
    const auto one = std::make_unique<OneThread>();
    CHECK_FALSE(one->thread.wait_while_held());
    CHECK(one->thread.hold());  // it is not in translated code
    one->thread.let_go();
    CHECK_FALSE(one->thread.wait_while_held());
}

TEST_CASE("cpuid is answered by the level asked for") {
    trace::Spec spec{};
    spec.cpu_level = trace::CpuLevel::kV2;
    const auto one = std::make_unique<OneThread>(spec);
    constexpr std::array<std::uint8_t, 2> kCpuid{0x0f, 0xa2};
    Decoder decoder;
    Instruction cpuid;
    REQUIRE(decoder.decode(kCpuid, 0x1000, cpuid));
    Context& context = *one->thread.context;
    context.gpr[RAX] = 7;
    context.gpr[RCX] = 0;
    identify(one->thread, cpuid);
    constexpr std::uint64_t kAvx2 = 1 << 5;
    CHECK((context.gpr[RBX] & kAvx2) == 0);
}
