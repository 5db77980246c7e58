#include "tools/check_plugin/trial_trace.h"

#include "framework/driver/replay/replay_driver.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

namespace assay::check {

TraceFile::TraceFile(const std::string& path) : file_(path) {
    if (!file_.damage().empty()) throw Error(file_.damage());
    if (file_.images().empty()) throw Error(fmt::format("{} has no process to replay", path));
    for (std::size_t i = 0; i < images(); ++i) {
        const replay::ImageTrace trace = image(i);
        RecordedTrace(trace).replay({.captures = trace::kCaptureBlockCounts}, {}, false,
                                    [](const TrialTrace::Buffer&) {});
    }
}

RecordedTrace::RecordedTrace(const replay::ImageTrace& image)
    : image_(image),
      segment_(image.command()),
      reader_(segment_,
              [this](collector::TraceReader::Source source, std::span<const trace_record_t> records,
                     std::span<const trace_marker_t> markers) { take(source, records, markers); }) {
    readers_->count = 1;
    reader_.read_as_one_of(*readers_, 0);
}

void RecordedTrace::replay(const trace::Spec& wanted, const trace::ValueLists& values, bool calls,
                           const Take& take) {
    calls_ = calls;
    take_ = take;
    trace::Control& control = segment_.control();
    control.pid = static_cast<int>(image_.pid());
    control.parent = static_cast<int>(image_.image().parent);
    control.image = image_.number();
    control.instruction_set = image_.instruction_set();
    trace::Spec possible = wanted;
    possible.recursion = 1;
    control.spec = replay::possible(possible, values, image_);
    stacks_.contexts().keep_recursion(1);

    const replay::Output output{segment_.fd(), *readers_};
    replay::ReplayDriver driver(image_, control.spec, values, std::span(&output, 1));
    std::atomic<bool> ended = false;
    std::thread thread([&] {
        driver.run();
        ended = true;
    });
    std::exception_ptr damage;
    try {
        read([&] { return ended.load(); });
    } catch (const Error&) {
        damage = std::current_exception();
        while (!ended) reader_.discard();
    }
    thread.join();
    if (!driver.problem().empty()) throw Error(driver.problem());
    if (damage) std::rethrow_exception(damage);
    for (std::uint32_t slot = 0; control.spec.interval != 0 && slot < reader_.counts().slots();
         ++slot)
        intervals_.take_rest(reader_.counts().thread_of(slot), slot,
                             reader_.counts().block_counts(slot), reader_.code());
}

void RecordedTrace::read(const std::function<bool()>& ended) {
    constexpr std::chrono::microseconds kMoment{100};
    for (bool last = false; !last;) {
        last = ended();
        while (reader_.consume()) {
        }
        reader_.refresh();
        if (!last) std::this_thread::sleep_for(kMoment);
    }
    reader_.consume_rest();
}

void RecordedTrace::take(collector::TraceReader::Source source,
                         std::span<const trace_record_t> records,
                         std::span<const trace_marker_t> markers) {
    const trace::Spec& spec = segment_.control().spec;
    Buffer buffer{source.thread, copy(records), {}, copy(markers), {}};
    if (spec.fetch.ways != 0) buffer.misses |= TRACE_FETCH_MISSES;
    if (spec.data.ways != 0) buffer.misses |= TRACE_DATA_MISSES;
    if (calls_) buffer.contexts = copy(stacks_.follow(source.thread, records, reader_.code()));
    if (spec.interval != 0)
        buffer.intervals = intervals_.take(source.thread, source.slot, records, reader_.code());
    take_(buffer);
}

std::span<const collector::Interval> RecordedTrace::rests() {
    return intervals_.rests();
}

}  // namespace assay::check
