// A process and its threads as the driver keeps them, without a program that runs.
#include "framework/driver/native/process/process.h"

#include "framework/collector/trace/segment.h"

#include <doctest/doctest.h>
#include <unistd.h>
#include <memory>

namespace process_test {

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

    collector::Segment segment;
    Process process{[](Thread&) {}};
    Thread thread{process};
};

}  // namespace

TEST_CASE("a thread's version is that of what is profiled") {
    const auto one = std::make_unique<OneThread>();
    CHECK(one->thread.version() == kCollecting);
    one->process.regions.set_collecting(false);
    CHECK(one->thread.version() == kPlain);
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

}  // namespace process_test
