#include "framework/collector/run/replay_group.h"

#include "framework/collector/profilers/trace_spec.h"
#include "framework/driver/replay/replay_driver.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>
#include <cstdint>
#include <thread>
#include <tuple>
#include <utility>

namespace assay::collector {
namespace {

bool misses_caches(const trace::Spec& spec) {
    return spec.data_ways != 0 || spec.fetch_ways != 0;
}

// Who wants only what misses caches has a segment with those of the same caches.
bool share_segment(const trace::Spec& a, const trace::Spec& b) {
    const auto caches = [](const trace::Spec& spec) {
        return std::tuple(spec.data.line_bytes, spec.data.sets, spec.data_ways,
                          spec.fetch.line_bytes, spec.fetch.sets, spec.fetch_ways);
    };
    return misses_caches(a) || misses_caches(b) ? caches(a) == caches(b) : true;
}

// Of two that go together: what else they say is the same.
trace::Spec both(const trace::Spec& a, const trace::Spec& b) {
    trace::Spec combined = combine(a, b);
    combined.regions = a.regions;
    return combined;
}

// While the driver is busy: a reader that has died would be waited for.
class DeathWatch {
  public:
    explicit DeathWatch(std::span<const std::unique_ptr<Readership>> groups)
        : end_(eventfd(0, EFD_CLOEXEC)) {
        for (const auto& group : groups)
            for (std::uint32_t number = 0; number < group->readers.size(); ++number) {
                watched_.push_back({group->readers[number]->channel(), 0, 0});
                readers_.emplace_back(&*group->shared, number);
            }
        watched_.push_back({end_, POLLIN, 0});
        thread_ = std::thread([this] { watch(); });
    }
    ~DeathWatch() {
        eventfd_write(end_, 1);
        thread_.join();
        close(end_);
    }
    DeathWatch(const DeathWatch&) = delete;
    DeathWatch& operator=(const DeathWatch&) = delete;

  private:
    void watch() {
        while (!(watched_.back().revents & POLLIN)) {
            if (poll(watched_.data(), watched_.size(), -1) < 0 && errno != EINTR) return;
            for (std::size_t i = 0; i < readers_.size(); ++i) {
                if (!(watched_[i].revents & POLLHUP)) continue;
                readers_[i].first->leave(readers_[i].second);
                watched_[i].fd = -1;
            }
        }
    }

    const int end_;
    std::vector<std::pair<trace::Readers*, std::uint32_t>> readers_;
    std::vector<pollfd> watched_;  // likewise; the last is `end_`
    std::thread thread_;
};

}  // namespace

void add(ReplayedPoint& point, const trace::Spec& spec, std::vector<ReplayPass>& passes) {
    for (ReplayPass& pass : passes) {
        if (!replay::go_together(*pass.front().spec, spec)) continue;
        for (ReplayGroup& group : pass)
            if (share_segment(*group.spec, spec) && group.points.size() < trace::Readers::kMost)
                return group.points.push_back(&point);
        return pass.push_back({spec, {&point}});
    }
    passes.push_back({{spec, {&point}}});
}

SharedReaders::SharedReaders()
    : memory_(mmap(nullptr, sizeof(trace::Readers), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED)
        throw Error(fmt::format("no memory for a replay: {}", system_reason(errno)));
}

SharedReaders::~SharedReaders() {
    munmap(memory_, sizeof(trace::Readers));
}

Readership::Readership(const replay::ImageTrace& trace, const Image& image, const ReplayGroup& of,
                       Lifeline& lifeline)
    : group(of), content(trace.content()), segment(trace.command()) {
    segment.control().pid = image.pid;
    segment.control().parent = static_cast<int>(trace.image().parent);
    segment.control().image = image.number;
    shared->count = static_cast<std::uint32_t>(group.points.size());
    for (const ReplayedPoint* point : group.points)
        readers.push_back(std::make_unique<ReplayReader>(
            ReplayReader::Source{trace, segment, lifeline, *shared},
            ReplayReader::Point{point->settings, point->log, point->profiles, image},
            static_cast<std::uint32_t>(readers.size())));
}

std::optional<trace::Spec> Readership::agree(trace::ValueLists& values) const {
    std::optional<trace::Spec> together;
    for (const auto& reader : readers) {
        const std::optional<trace::Spec> wanted = reader->wanted();
        if (!wanted) continue;
        try {
            const trace::Spec given = replay::possible(*wanted, reader->wanted_values(), content);
            together = together ? both(*together, given) : given;
            collector::add(values, reader->wanted_values());
        } catch (const Error& missing) {
            reader->refuse(missing.what());
        }
    }
    if (!together) return {};
    segment.control().spec = replay::possible(*together, values, content);
    for (const auto& reader : readers) reader->agree(segment.control().spec);
    return segment.control().spec;
}

std::string fill(const replay::ImageTrace& trace,
                 std::span<const std::unique_ptr<Readership>> groups) try {
    std::optional<trace::Spec> combined;
    const auto values = std::make_unique<trace::ValueLists>();
    std::vector<replay::Output> outputs;
    for (const auto& group : groups) {
        const std::optional<trace::Spec> spec = group->agree(*values);
        if (!spec) continue;
        combined = combined ? both(*combined, *spec) : *spec;
        outputs.push_back({group->segment.fd(), *group->shared});
    }
    if (!combined) return "";
    replay::ReplayDriver driver(trace, *combined, *values, outputs);
    const DeathWatch watch(groups);
    driver.run();
    return driver.problem();
} catch (const Error& e) {
    return e.what();
}

}  // namespace assay::collector
