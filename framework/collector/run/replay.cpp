#include "framework/collector/run/run.h"

#include "framework/collector/run/overview.h"
#include "framework/collector/run/replay_group.h"
#include "framework/driver/replay/replay_driver.h"
#include "framework/support/error.h"
#include "framework/support/log.h"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
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

class Replay {
  public:
    Replay(std::span<const ReplayPoint> points, const std::string& file);

    std::vector<int> execute();

  private:
    Image image_of(const replay::ImageTrace& trace, std::size_t place) const;
    unsigned earlier_images(std::size_t place) const;
    std::vector<ReplayPass> passes();
    unsigned jobs_at_once() const;
    static void replay_image(const replay::ImageTrace& trace, const Image& image,
                             const ReplayPass& pass);
    void replay_images(const std::vector<ReplayPass>& passes) const;
    void replay_images_at_once(const ReplayPass& pass, unsigned jobs);
    void replay_simulation_points(ReplayedPoint& point) const;
    void tell(ReplayedPoint& point) const;
    replay::ImageTrace image_trace(std::size_t place) const;

    const recording::TraceFileReader file_;
    const replay::ImageTrace first_;
    std::vector<ReplayedPoint> points_;
};

// If only bursts were recorded, uses the bursts of the recorded run.
void set_bursts(CoreSettings& settings, const replay::ImageTrace& trace) {
    const trace_image_t& image = trace.image();
    if (image.sample_period == 0 || !trace.points().empty()) return;
    settings.regions.sample_burst = image.sample_burst;
    settings.regions.sample_period = image.sample_period;
    settings.warm_up = image.sample_warm_up;
    for (const auto& [given, name] :
         {std::pair{settings.threads, "--threads"}, std::pair{settings.contexts, "--contexts"}})
        if (given)
            throw Error(
                fmt::format("{} has only bursts, but {} needs the whole run: record the program "
                            "without --sample",
                            trace.file().path(), name));
}

// Takes the bursts from the recording, and the slice unless threads take turns anew. The results
// mention how threads took turns.
Replay::Replay(std::span<const ReplayPoint> points, const std::string& file)
    : file_(file), first_(file_, first_image(file_)) {
    for (const ReplayPoint& point : points) {
        points_.push_back({point.settings, point.log, std::make_shared<const ProfileLog>()});
        std::uint32_t& slice = points_.back().settings.slice;
        const trace::Regions& regions = point.settings.regions;
        const char* const whole = slice != 0                      ? "schedule"
                                  : regions.sample_period != 0    ? "sample"
                                  : regions.from_instruction != 0 ? "from-instruction"
                                  : regions.to_instruction != 0   ? "to-instruction"
                                                                  : nullptr;
        if (whole && (first_.image().sample_period != 0 || !first_.points().empty()))
            throw Error(
                fmt::format("{} has only a part of the run, but --{} needs all of it: record the "
                            "program without --sample and --simpoints, or leave --{} out",
                            file_.path(), whole, whole));
        if (slice == 0) slice = first_.image().slice;
        set_bursts(points_.back().settings, first_);
    }
}

// Such a trace has only one image.
void Replay::replay_simulation_points(ReplayedPoint& point) const {
    point.status = exit_status_of(start_in_child(point.log, [&] {
        const Image image = image_of(first_, 0);
        log::set_quiet(point.settings.quiet);
        const bool good = replay_points(point.settings, first_, image, point.profiles);
        return good ? 0 : kExitFailure;
    }));
}

std::vector<int> Replay::execute() {
    const bool has_points = !first_.points().empty();
    for (ReplayedPoint& point : points_)
        if (has_points) replay_simulation_points(point);
    if (!has_points) {
        const std::vector<ReplayPass> all = passes();
        const unsigned jobs = jobs_at_once();
        if (points_.size() == 1 && jobs > 1 && file_.images().size() > 1 && !all.empty())
            replay_images_at_once(all.front(), jobs);
        else
            replay_images(all);
    }
    std::vector<int> statuses;
    for (ReplayedPoint& point : points_) {
        tell(point);
        statuses.push_back(point.status);
    }
    return statuses;
}

// Checks that all images were recorded with the same bursts.
replay::ImageTrace Replay::image_trace(std::size_t place) const {
    replay::ImageTrace trace(file_, file_.images()[place]);
    const auto bursts = [](const trace_image_t& image) {
        return std::tuple(image.sample_burst, image.sample_period, image.sample_warm_up);
    };
    if (bursts(trace.image()) != bursts(first_.image()))
        throw Error(fmt::format(
            "{} is damaged: the bursts of process {} differ from those of the first process, {}",
            file_.path(), trace.pid(), first_.pid()));
    return trace;
}

void Replay::replay_images(const std::vector<ReplayPass>& passes) const {
    for (std::size_t i = 0; i < file_.images().size(); ++i) {
        const replay::ImageTrace trace = image_trace(i);
        for (const ReplayPass& pass : passes) replay_image(trace, image_of(trace, i), pass);
    }
}

// Replays each image for the only point in its own process.
void Replay::replay_images_at_once(const ReplayPass& pass, unsigned jobs) {
    ReplayedPoint& point = points_.front();
    unsigned running = 0;
    std::size_t done = 0;
    Progress progress(shows_progress(point.settings, true), [&] {
        return fmt::format("{} of {} programs", done, file_.images().size());
    });
    const auto wait_for_one = [&] {
        progress.update();
        if (const int status = exit_status_of(kAnyChild); status != 0) point.status = status;
        --running;
        ++done;
    };
    for (std::size_t i = 0; i < file_.images().size(); ++i) {
        if (running == jobs) wait_for_one();
        start_in_child(point.log, [&] {
            log::set_quiet(point.settings.quiet);
            point.settings.progress = ShowProgress::kNever;
            const replay::ImageTrace trace = image_trace(i);
            replay_image(trace, image_of(trace, i), pass);
            return point.status;
        });
        ++running;
    }
    while (running > 0) wait_for_one();
}

unsigned Replay::jobs_at_once() const {
    const unsigned wanted = points_.front().settings.jobs;
    return wanted != 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
}

Image Replay::image_of(const replay::ImageTrace& trace, std::size_t place) const {
    const trace::Command command = trace.command();
    const std::uint32_t rank = trace.image().rank;
    const unsigned earlier = earlier_images(place);
    return {static_cast<int>(trace.pid()),
            trace.number() - earlier,
            place,
            trace.pid() == first_.pid() && earlier == 0,
            std::filesystem::path(command.file).filename(),
            command_line(command.arguments),
            rank == 0 ? "" : std::to_string(rank - 1),
            earlier};
}

// In a trace, the images of all processes with one id have consecutive numbers. A process ends with
// an image that is not replaced.
unsigned Replay::earlier_images(std::size_t place) const {
    const std::vector<recording::RecordedImage>& images = file_.images();
    unsigned earlier = 0;
    for (std::size_t i = 0; i < place; ++i)
        if (images[i].pid == images[place].pid && images[i].number < images[place].number &&
            !replay::is_replaced(file_, images[i]))
            earlier = std::max(earlier, images[i].number);
    return earlier;
}

// Asks each point in advance which specification it wants. One point with one image need not be
// asked. With several images, all of them lack the same captures, and asking first reports that
// only once.
std::vector<ReplayPass> Replay::passes() {
    if (points_.size() == 1 && file_.images().size() == 1) return {{{{}, {&points_.front()}}}};
    ReplayGroup all;
    for (ReplayedPoint& point : points_) all.points.push_back(&point);
    Lifeline lifeline;
    const Image image = image_of(first_, 0);
    const Readership asked(first_, std::span(&image, 1), all, lifeline);
    std::vector<ReplayPass> passes;
    for (std::size_t i = 0; i < points_.size(); ++i) {
        ReplayReader& reader = *asked.readers[i];
        const std::optional<trace::Spec> wanted = reader.wanted();
        try {
            if (wanted)
                add(points_[i], replay::possible(*wanted, reader.wanted_values(), first_), passes);
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

void Replay::replay_image(const replay::ImageTrace& trace, const Image& image,
                          const ReplayPass& pass) {
    Lifeline lifeline;
    std::vector<std::unique_ptr<Readership>> groups;
    for (const ReplayGroup& group : pass)
        groups.push_back(
            std::make_unique<Readership>(trace, std::span(&image, 1), group, lifeline));
    finish(groups, lifeline, fill(trace, groups));
}

void Replay::tell(ReplayedPoint& point) const {
    const auto work = [&] {
        const auto profile =
            tell_of_profiles(point.profiles->entries(), point.settings, image_of(first_, 0));
        return profile ? 0 : kExitFailure;
    };
    const int status = exit_status_of(start_in_child(point.log, work));
    if (status != 0) point.status = status;
}

}  // namespace

std::vector<int> replay(std::span<const ReplayPoint> points, const std::string& file) {
    return Replay(points, file).execute();
}

int replay(const CoreSettings& settings, const std::string& file) {
    const ReplayPoint point{settings};
    return replay(std::span(&point, 1), file).front();
}

}  // namespace assay::collector
