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

namespace assay::collector {
namespace {

const recording::RecordedImage& first_image(const recording::TraceFileReader& file) {
    if (file.images().empty())
        throw Error(fmt::format("{} has no process that could be replayed", file.path()));
    return file.images().front();
}

std::unique_ptr<trace::Readers, void (*)(trace::Readers*)> make_readers() {
    void* const memory = mmap(nullptr, sizeof(trace::Readers), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        throw Error(fmt::format("no memory for a replay: {}", system_reason(errno)));
    return {new (memory) trace::Readers(),
            [](trace::Readers* readers) { munmap(readers, sizeof *readers); }};
}

// While the driver is busy: a reader that has died would be waited for.
class DeathWatch {
  public:
    DeathWatch(std::span<const std::unique_ptr<ReplayReader>> of, trace::Readers& readers)
        : end_(eventfd(0, EFD_CLOEXEC)), readers_(readers) {
        for (const auto& reader : of) watched_.push_back({reader->channel(), 0, 0});
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
            for (std::uint32_t number = 0; number + 1 < watched_.size(); ++number) {
                if (!(watched_[number].revents & POLLHUP)) continue;
                readers_.leave(number);
                watched_[number].fd = -1;
            }
        }
    }

    const int end_;
    trace::Readers& readers_;
    std::vector<pollfd> watched_;  // by the reader's number; the last is `end_`
    std::thread thread_;
};

class Replay {
  public:
    Replay(std::span<const ReplayPoint> points, const std::string& file);

    std::vector<int> execute();

  private:
    struct Point {
        CoreSettings settings;
        int log;
        std::shared_ptr<const ProfileLog> profiles;
        int status = 0;
    };
    using Points = std::vector<Point*>;
    using Readers = std::vector<std::unique_ptr<ReplayReader>>;

    Image image_of(const replay::ImageTrace& trace, std::size_t place) const;
    Points replay_image(const replay::ImageTrace& trace, const Image& image, const Points& points);
    static std::optional<trace::Spec> agree(const Readers& readers, const Points& points,
                                            Points& later);
    static std::string fill(const replay::ImageTrace& trace, const Segment& segment,
                            const Readers& readers, trace::Readers& shared);
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
    for (std::size_t i = 0; i < file_.images().size(); ++i) {
        const replay::ImageTrace trace(file_, file_.images()[i]);
        Points left;
        for (Point& point : points_) left.push_back(&point);
        while (!left.empty()) {
            const auto some = static_cast<std::ptrdiff_t>(
                std::min<std::size_t>(left.size(), trace::Readers::kMost));
            Points later =
                replay_image(trace, image_of(trace, i), {left.begin(), left.begin() + some});
            later.insert(later.end(), left.begin() + some, left.end());
            left = std::move(later);
        }
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

// Returns those that need a pass of their own.
Replay::Points Replay::replay_image(const replay::ImageTrace& trace, const Image& image,
                                    const Points& points) {
    Segment segment(trace.command());
    segment.control().pid = image.pid;
    segment.control().parent = static_cast<int>(trace.image().parent);
    segment.control().image = image.number;
    Lifeline lifeline;
    const auto shared = make_readers();
    shared->count = static_cast<std::uint32_t>(points.size());
    Readers readers;
    for (const Point* point : points)
        readers.push_back(std::make_unique<ReplayReader>(
            ReplayReader::Source{trace, segment, lifeline, *shared},
            ReplayReader::Point{point->settings, point->log, point->profiles, image},
            static_cast<std::uint32_t>(readers.size())));
    Points later;
    const std::optional<trace::Spec> spec = agree(readers, points, later);
    std::string problem;
    if (spec) {
        segment.control().spec = *spec;
        for (const auto& reader : readers) reader->agree(*spec);
        problem = fill(trace, segment, readers, *shared);
    }
    for (const auto& reader : readers) reader->finish(problem);
    lifeline.close_writing_end();
    // The lifeline itself wakes only one of its readers.
    segment.control().doorbell.fetch_add(1);
    trace::futex_wake(segment.control().doorbell, INT_MAX);
    for (std::size_t i = 0; i < readers.size(); ++i) {
        const int status = readers[i]->exit_status();
        const bool sent_away = std::find(later.begin(), later.end(), points[i]) != later.end();
        if (status != 0 && !sent_away) points[i]->status = status;
    }
    return later;
}

// What all get, but those that go later; none if no reader is left.
std::optional<trace::Spec> Replay::agree(const Readers& readers, const Points& points,
                                         Points& later) {
    std::optional<trace::Spec> together;
    for (std::size_t i = 0; i < readers.size(); ++i) {
        const std::optional<trace::Spec> wanted = readers[i]->wanted();
        if (!wanted) continue;
        try {
            replay::possible(*wanted);
        } catch (const Error& missing) {
            readers[i]->refuse(missing.what());
            continue;
        }
        try {
            together = together ? combine(*together, *wanted) : *wanted;
        } catch (const Error&) {
            readers[i]->send_away();
            later.push_back(points[i]);
        }
    }
    if (!together) return {};
    return replay::possible(*together);
}

// Returns what was wrong; "" if nothing was.
std::string Replay::fill(const replay::ImageTrace& trace, const Segment& segment,
                         const Readers& readers, trace::Readers& shared) try {
    replay::ReplayDriver driver(trace, segment.fd(), shared);
    const DeathWatch watch(readers, shared);
    driver.run();
    return driver.problem();
} catch (const Error& e) {
    return e.what();
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
