
#include "framework/collector/launch/child.h"
#include "framework/collector/run/collection.h"
#include "framework/collector/run/overview.h"
#include "framework/collector/run/replay_group.h"
#include "framework/collector/run/session.h"
#include "framework/driver/replay/replay_driver.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "framework/trace/readers.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace assay::collector {
namespace {

// A recorded point can lack this many instructions: it ends before a block that reaches beyond its
// end.
constexpr std::uint64_t kMostOfBlock = 255;

std::uint64_t executed_in(const replay::ImageTrace& trace) {
    std::uint64_t most = trace.end() ? trace.end()->instructions : 0;
    for (const auto& [slot, chunks] : trace.records())
        for (const recording::ChunkPlace& chunk : chunks)
            if (chunk.header.point != 0)
                most = std::max(most, chunk.header.first_instruction + chunk.header.instructions);
    return most;
}

class PointReplay {
  public:
    PointReplay(CoreSettings settings, const replay::ImageTrace& trace, const Image& image,
                const std::shared_ptr<const ProfileLog>& profiles)
        : settings_(std::move(settings)), trace_(trace), image_(image), profiles_(profiles) {
        check_settings();
        settings_.regions.points = 1;
        choose();
    }

    bool execute();

  private:
    struct Point {
        std::uint32_t number;  // in the trace, from 0
        std::uint64_t stands_for;
    };

    void check_settings() const;
    void choose();
    void check_options(const Session& session) const;
    void replay(const Point& point);
    void finish(Collection& collection);
    std::string description() const;

    CoreSettings settings_;  // some change from point to point
    const replay::ImageTrace& trace_;
    const Image& image_;
    const std::shared_ptr<const ProfileLog> profiles_;
    std::uint64_t instructions_ = 0;  // of the program
    std::vector<Point> points_;       // points that are recorded as a whole
    std::vector<Counts> counts_;      // of all points except the last one
    std::string problem_;             // the first problem, or ""
    bool good_ = false;
};

void PointReplay::check_settings() const {
    for (const auto& [given, name] :
         {std::pair{settings_.threads, "--threads"}, std::pair{settings_.types, "--types"},
          std::pair{settings_.contexts, "--contexts"}})
        if (given)
            throw Error(
                fmt::format("{} has only simulation points, but {} needs the whole run: record the "
                            "program without --simpoints",
                            trace_.file().path(), name));
}

void PointReplay::choose() {
    instructions_ = executed_in(trace_);
    std::vector<trace_point_t> chosen;
    for (std::uint32_t i = 0; i < trace_.points().size(); ++i) {
        const trace_point_t& point = trace_.points()[i];
        if (point.end > instructions_ + kMostOfBlock) continue;
        if (settings_.weights && !(point.weight > 0)) continue;
        chosen.push_back(point);
        points_.push_back({i, 0});
    }
    if (chosen.empty())
        throw Error(
            fmt::format("{} has no complete simulation point: the first of {} ends at instruction "
                        "{}, but only {} were executed",
                        trace_.file().path(), trace_.points().size(), trace_.points().front().end,
                        instructions_));
    if (!settings_.weights) return;
    const std::vector<std::uint64_t> all = shares(chosen, instructions_);
    for (std::size_t i = 0; i < points_.size(); ++i) points_[i].stands_for = all[i];
    std::erase_if(points_, [](const Point& point) { return point.stands_for == 0; });
}

// Refuses options for a profiler's own file, because it would only be about the last point.
void PointReplay::check_options(const Session& session) const {
    for (std::size_t i = 0; i < session.profilers.size(); ++i)
        for (const auto& [name, value] : session.given[i]) {
            const ProfilerOption* const option = session.profilers[i]->option(name);
            if (option && option->type == VP_OPTION_OUTPUT_FILE && points_.size() > 1)
                throw Error(
                    fmt::format("--{}={}: {} has {} simulation points, but {} would write a file "
                                "about only one of them: leave the option out",
                                name, value, trace_.file().path(), points_.size(),
                                session.profilers[i]->name()));
        }
}

std::string PointReplay::description() const {
    const trace_points_t& about = trace_.about_points();
    return fmt::format(
        "{} {} of {} instructions of the first thread (SimPoint), each after {} to warm up; {}",
        with_thousands(points_.size()), points_.size() == 1 ? "interval" : "intervals",
        with_thousands(about.interval_size), with_thousands(about.warm_up),
        settings_.weights
            ? fmt::format("counts are estimates for all {}, by the intervals' weights, with errors "
                          "that are not known",
                          with_thousands(instructions_))
            : "counts are of these alone");
}

// Starts new profilers for the point.
void PointReplay::replay(const Point& point) {
    const bool is_last = &point == &points_.back();
    settings_.regions.stands_for = point.stands_for;
    Session session(settings_, image_.command, profiles_);
    if (&point == &points_.front()) check_options(session);
    Image image = image_;
    image.of_first_process &= is_last;  // only the last point prints messages of the process
    Segment segment(trace_.command());
    Lifeline lifeline;
    segment.control().pid = static_cast<int>(trace_.pid());
    segment.control().parent = static_cast<int>(trace_.image().parent);
    segment.control().instruction_set = trace_.instruction_set();
    segment.control().image = trace_.number();
    const auto readers = std::make_unique<trace::Readers>();
    readers->count = 1;
    const Collection::Shared shared{
        [&](const trace::Spec& wanted, const trace::ValueLists& values) {
            return replay::possible(wanted, values, trace_);
        },
        *readers, 0, 0};
    Collection collection(session, image, segment, lifeline, &shared);
    collection.describe_points(description());
    segment.control().spec = collection.spec();
    const replay::Output output{segment.fd(), *readers};
    replay::ReplayDriver driver(trace_, collection.spec(), collection.value_lists(),
                                std::span(&output, 1), point.number + 1);
    std::thread thread([&] {
        driver.run();
        lifeline.close_writing_end();
    });
    collection.collect();
    thread.join();
    if (problem_.empty()) problem_ = driver.problem();
    if (is_last) return finish(collection);
    if (collection.finish_point().failed && problem_.empty())
        problem_ = fmt::format("a profiler has failed in interval {}",
                               trace_.points()[point.number].number);
    counts_.push_back(collection.take_counts());
}

// Called for the last point. Writes the sum of all points.
void PointReplay::finish(Collection& collection) {
    if (problem_.empty() && points_.size() < trace_.points().size() && settings_.weights)
        collection.incomplete(fmt::format(
            "only {} of {} simulation points are complete; they also stand for the others",
            points_.size(), trace_.points().size()));
    if (!problem_.empty()) {
        log::problem(problem_);
        collection.incomplete(problem_);
    }
    collection.add_before_writing(std::move(counts_));
    const Collection::Outcome outcome = collection.finish(ending_of(trace_));
    good_ = problem_.empty() && !outcome.failed && !outcome.lost;
}

bool PointReplay::execute() {
    log::say_once_among_processes();  // instead of once for each point
    std::size_t done = 0;
    Progress progress(shows_progress(settings_, true),
                      [&] { return fmt::format("{} of {} intervals", done, points_.size()); });
    settings_.progress = ShowProgress::kNever;
    for (const Point& point : points_) {
        replay(point);
        ++done;
        progress.update();
    }
    return good_;
}

}  // namespace

bool replay_points(const CoreSettings& settings, const replay::ImageTrace& trace,
                   const Image& image, const std::shared_ptr<const ProfileLog>& profiles) {
    return PointReplay(settings, trace, image, profiles).execute();
}

}  // namespace assay::collector
