#include "framework/collector/run/replay.h"

#include "framework/collector/profilers/trace_spec.h"
#include "framework/collector/run/overview.h"
#include "framework/collector/run/replay_reader.h"
#include "framework/driver/replay/replay_driver.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "framework/trace/futex.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

namespace assay::collector {
namespace {

const recording::RecordedImage& first_image(const recording::TraceFileReader& file) {
    if (file.images().empty())
        throw Error(fmt::format("{} has no process that could be replayed", file.path()));
    return file.images().front();
}

class SharedReaders {
  public:
    SharedReaders()
        : memory_(mmap(nullptr, sizeof(trace::Readers), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
        if (memory_ == MAP_FAILED)
            throw Error(fmt::format("no memory for a replay: {}", system_reason(errno)));
    }
    ~SharedReaders() { munmap(memory_, sizeof(trace::Readers)); }
    SharedReaders(const SharedReaders&) = delete;
    SharedReaders& operator=(const SharedReaders&) = delete;

    trace::Readers& operator*() const { return *static_cast<trace::Readers*>(memory_); }
    trace::Readers* operator->() const { return &**this; }

  private:
    void* memory_;
};

struct Point {
    CoreSettings settings;
    int log;
    std::shared_ptr<const ProfileLog> profiles;
    int status = 0;
};

// Points that read the same segment.
struct Group {
    std::optional<trace::Spec> spec;  // none if it is not known in advance
    std::vector<Point*> points;
};
// Groups that one driver serves.
using Pass = std::vector<Group>;

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

void add(Point& point, const trace::Spec& spec, std::vector<Pass>& passes) {
    for (Pass& pass : passes) {
        if (!replay::go_together(*pass.front().spec, spec)) continue;
        for (Group& group : pass)
            if (share_segment(*group.spec, spec) && group.points.size() < trace::Readers::kMost)
                return group.points.push_back(&point);
        return pass.push_back({spec, {&point}});
    }
    passes.push_back({{spec, {&point}}});
}

// A group at work on an image.
struct Readership {
    Readership(const replay::ImageTrace& trace, const Image& image, const Group& group,
               Lifeline& lifeline);

    // What all of its readers get; none if none is left.
    std::optional<trace::Spec> agree() const;

    const Group& group;
    Segment segment;
    SharedReaders shared;
    std::vector<std::unique_ptr<ReplayReader>> readers;
};

Readership::Readership(const replay::ImageTrace& trace, const Image& image, const Group& of,
                       Lifeline& lifeline)
    : group(of), segment(trace.command()) {
    segment.control().pid = image.pid;
    segment.control().parent = static_cast<int>(trace.image().parent);
    segment.control().image = image.number;
    shared->count = static_cast<std::uint32_t>(group.points.size());
    for (const Point* point : group.points)
        readers.push_back(std::make_unique<ReplayReader>(
            ReplayReader::Source{trace, segment, lifeline, *shared},
            ReplayReader::Point{point->settings, point->log, point->profiles, image},
            static_cast<std::uint32_t>(readers.size())));
}

std::optional<trace::Spec> Readership::agree() const {
    std::optional<trace::Spec> together;
    for (const auto& reader : readers) {
        const std::optional<trace::Spec> wanted = reader->wanted();
        if (!wanted) continue;
        try {
            const trace::Spec given = replay::possible(*wanted);
            together = together ? combine(*together, given) : given;
        } catch (const Error& missing) {
            reader->refuse(missing.what());
        }
    }
    if (!together) return {};
    segment.control().spec = replay::possible(*together);
    for (const auto& reader : readers) reader->agree(segment.control().spec);
    return segment.control().spec;
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

// Returns what was wrong; "" if nothing was.
std::string fill(const replay::ImageTrace& trace,
                 std::span<const std::unique_ptr<Readership>> groups) try {
    std::optional<trace::Spec> combined;
    std::vector<replay::Output> outputs;
    for (const auto& group : groups) {
        const std::optional<trace::Spec> spec = group->agree();
        if (!spec) continue;
        combined = combined ? combine(*combined, *spec) : *spec;
        outputs.push_back({group->segment.fd(), *group->shared});
    }
    if (!combined) return "";
    replay::ReplayDriver driver(trace, *combined, outputs);
    const DeathWatch watch(groups);
    driver.run();
    return driver.problem();
} catch (const Error& e) {
    return e.what();
}

class Replay {
  public:
    Replay(std::span<const ReplayPoint> points, const std::string& file);

    std::vector<int> execute();

  private:
    Image image_of(const replay::ImageTrace& trace, std::size_t place) const;
    std::vector<Pass> passes();
    static void replay_image(const replay::ImageTrace& trace, const Image& image, const Pass& pass);
    void tell(Point& point) const;

    const recording::TraceFileReader file_;
    const replay::ImageTrace first_;
    std::vector<Point> points_;
};

// Files say how threads took turns.
Replay::Replay(std::span<const ReplayPoint> points, const std::string& file)
    : file_(file), first_(file_, first_image(file_)) {
    for (const ReplayPoint& point : points) {
        points_.push_back({point.settings, point.log, std::make_shared<const ProfileLog>()});
        points_.back().settings.slice = first_.image().slice;
    }
}

std::vector<int> Replay::execute() {
    const std::vector<Pass> all = passes();
    for (std::size_t i = 0; i < file_.images().size(); ++i) {
        const replay::ImageTrace trace(file_, file_.images()[i]);
        for (const Pass& pass : all) replay_image(trace, image_of(trace, i), pass);
    }
    std::vector<int> statuses;
    for (Point& point : points_) {
        tell(point);
        statuses.push_back(point.status);
    }
    return statuses;
}

Image Replay::image_of(const replay::ImageTrace& trace, std::size_t place) const {
    const trace::Command command = trace.command();
    const std::uint32_t rank = trace.image().rank;
    return {static_cast<int>(trace.pid()),
            trace.number(),
            place,
            trace.pid() == first_.pid(),
            std::filesystem::path(command.file).filename(),
            command_line(command.arguments),
            rank == 0 ? "" : std::to_string(rank - 1)};
}

// Where there are several points, each is asked in advance what it wants.
std::vector<Pass> Replay::passes() {
    if (points_.size() == 1) return {{{{}, {&points_.front()}}}};
    Lifeline lifeline;
    std::vector<std::unique_ptr<Group>> alone;
    std::vector<std::unique_ptr<Readership>> asked;
    for (Point& point : points_) {
        alone.push_back(std::make_unique<Group>(Group{{}, {&point}}));
        asked.push_back(
            std::make_unique<Readership>(first_, image_of(first_, 0), *alone.back(), lifeline));
    }
    std::vector<Pass> passes;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        ReplayReader& reader = *asked[i]->readers.front();
        const std::optional<trace::Spec> wanted = reader.wanted();
        try {
            if (wanted)
                add(points_[i], replay::possible(*wanted), passes);
            else
                points_[i].status = reader.exit_status();
        } catch (const Error& missing) {
            reader.refuse(missing.what());
            points_[i].status = reader.exit_status();
        }
        reader.send_away();
    }
    return passes;
}

void Replay::replay_image(const replay::ImageTrace& trace, const Image& image, const Pass& pass) {
    Lifeline lifeline;
    std::vector<std::unique_ptr<Readership>> groups;
    for (const Group& group : pass)
        groups.push_back(std::make_unique<Readership>(trace, image, group, lifeline));
    const std::string problem = fill(trace, groups);
    for (const auto& group : groups)
        for (const auto& reader : group->readers) reader->finish(problem);
    lifeline.close_writing_end();
    for (const auto& group : groups) {
        // The lifeline itself wakes only one of its readers.
        group->segment.control().doorbell.fetch_add(1);
        trace::futex_wake(group->segment.control().doorbell, INT_MAX);
    }
    for (const auto& group : groups)
        for (std::size_t i = 0; i < group->readers.size(); ++i)
            if (const int status = group->readers[i]->exit_status(); status != 0)
                group->group.points[i]->status = status;
}

void Replay::tell(Point& point) const {
    const auto work = [&] {
        const bool told =
            tell_of_profiles(point.profiles->entries(), point.settings, image_of(first_, 0));
        return told ? 0 : kExitFailure;
    };
    const int status = exit_status_of(start_in_child(point.log, work));
    if (status != 0) point.status = status;
}

constexpr std::array<std::string_view, 14> kOptions{
    "plugin",   "out",   "dump-instr", "threads",          "types", "debug-cache", "config",
    "progress", "quiet", "verbose",    "profiler-timeout", "help",  "version",     "recursion"};

}  // namespace

bool is_of_replay(std::string_view option) {
    return std::find(kOptions.begin(), kOptions.end(), option) != kOptions.end();
}

CoreSettings take_replay_settings(const std::vector<Setting>& command_line) {
    for (const CoreOption& option : core_options())
        for (const Setting& setting : command_line)
            if (setting.name == option.name && !is_of_replay(setting.name))
                throw Error(fmt::format(
                    "{} is of the run, which a replay does not change (see: assay replay --help)",
                    describe(setting)));
    return take_core_settings(command_line);
}

std::vector<int> replay(std::span<const ReplayPoint> points, const std::string& file) {
    return Replay(points, file).execute();
}

int replay(const CoreSettings& settings, const std::string& file) {
    const ReplayPoint point{settings};
    return replay(std::span(&point, 1), file).front();
}

}  // namespace assay::collector
