#include "framework/collector/run/point_replay.h"

#include "framework/collector/launch/lifeline.h"
#include "framework/collector/run/replay_reader.h"
#include "framework/driver/replay/replay_driver.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "framework/trace/readers.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

namespace assay::collector {
namespace {

// A point ends before the block that its last instruction is of, if that goes on behind it.
constexpr std::uint64_t kMostOfBlock = 255;

void write_all(int file, const void* from, std::size_t bytes) {
    const char* at = static_cast<const char*>(from);
    while (bytes != 0) {
        const ssize_t written = write(file, at, bytes);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            throw Error(fmt::format("cannot keep the counts of a simulation point: {}",
                                    system_reason(errno)));
        at += written;
        bytes -= static_cast<std::size_t>(written);
    }
}

std::vector<char> content_of(int file) {
    struct stat about {};
    if (fstat(file, &about) != 0) return {};
    std::vector<char> content(static_cast<std::size_t>(about.st_size));
    std::size_t at = 0;
    while (at < content.size()) {
        const ssize_t got = pread(file, &content[at], content.size() - at, static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return {};
        at += static_cast<std::size_t>(got);
    }
    return content;
}

std::uint64_t executed_in(const replay::ImageTrace& trace) {
    std::uint64_t most = trace.end() ? trace.end()->instructions : 0;
    for (const auto& [slot, chunks] : trace.records())
        for (const recording::ChunkPlace& chunk : chunks)
            if (chunk.header.point != 0)
                most = std::max(most, chunk.header.first_instruction + chunk.header.instructions);
    return most;
}

}  // namespace

void set_points(CoreSettings& settings, const replay::ImageTrace& trace) {
    settings.regions.points = 1;
    for (const auto& [given, name] :
         {std::pair{settings.threads, "--threads"}, std::pair{settings.types, "--types"},
          std::pair{settings.contexts, "--contexts"}})
        if (given)
            throw Error(fmt::format(
                "{} has simulation points, which do not tell what {} needs: record the program "
                "without --simpoints",
                trace.file().path(), name));
}

PointReplay::PointReplay(Session& session, CoreSettings& settings, const replay::ImageTrace& trace,
                         Image image)
    : session_(session), settings_(settings), trace_(trace), image_(std::move(image)) {
    choose();
    check_options();
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
            fmt::format("{} has no simulation point as a whole: the first of {} ends at "
                        "instruction {}, and {} were executed",
                        trace_.file().path(), trace_.points().size(), trace_.points().front().end,
                        instructions_));
    if (!settings_.weights) return;
    const std::vector<std::uint64_t> all = shares(chosen, instructions_);
    for (std::size_t i = 0; i < points_.size(); ++i) points_[i].stands_for = all[i];
    std::erase_if(points_, [](const Point& point) { return point.stands_for == 0; });
}

// A file that a profiler writes itself would be of the last point.
void PointReplay::check_options() const {
    for (std::size_t i = 0; i < session_.profilers.size(); ++i)
        for (const auto& [name, value] : session_.given[i]) {
            const ProfilerOption* const option = session_.profilers[i]->option(name);
            if (option && option->type == VP_OPTION_OUTPUT_FILE && points_.size() > 1)
                throw Error(
                    fmt::format("--{}={}: {} has {} simulation points, and {} would write of one "
                                "of them: leave it out",
                                name, value, trace_.file().path(), points_.size(),
                                session_.profilers[i]->name()));
        }
}

std::string PointReplay::description() const {
    const trace_points_t& about = trace_.about_points();
    return fmt::format(
        "{} {} of {} instructions of the first thread (SimPoint), each behind {} to warm up; {}",
        with_thousands(points_.size()), points_.size() == 1 ? "interval" : "intervals",
        with_thousands(about.interval_size), with_thousands(about.warm_up),
        settings_.weights
            ? fmt::format("counts are estimates for all {}, by the intervals' weights, with errors "
                          "that are not known",
                          with_thousands(instructions_))
            : "counts are of these alone");
}

std::string PointReplay::collect(
    const Point& point, const Image& image,
    const std::function<void(Collection&, const std::string&)>& finish) {
    settings_.regions.stands_for = point.stands_for;
    Segment segment(trace_.command());
    Lifeline lifeline;
    segment.control().pid = static_cast<int>(trace_.pid());
    segment.control().parent = static_cast<int>(trace_.image().parent);
    segment.control().image = trace_.number();
    const auto readers = std::make_unique<trace::Readers>();
    readers->count = 1;
    const Collection::Shared shared{
        [&](const trace::Spec& wanted, const trace::ValueLists& values) {
            return replay::possible(wanted, values, trace_.content());
        },
        *readers, 0, 0};
    Collection collection(session_, image, segment, lifeline, &shared);
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
    finish(collection, driver.problem());
    return driver.problem();
}

PointReplay::Counted PointReplay::replay_alone(const Point& point) {
    settings_.progress = ShowProgress::kNever;
    Image image = image_;
    image.of_first_process = false;
    Counted counted;
    const std::string problem =
        collect(point, image, [&](Collection& collection, const std::string&) {
            if (collection.finish_point().failed)
                counted.problem = fmt::format("a profiler has failed in interval {}",
                                              trace_.points()[point.number].number);
            counted.counts = collection.results().counts();
        });
    if (!problem.empty()) counted.problem = problem;
    return counted;
}

// Profilers begin anew for each.
PointReplay::Counted PointReplay::replay_in_child(const Point& point) {
    const Descriptor file(memfd_create("assay counts", MFD_CLOEXEC));
    if (file.number() < 0)
        throw Error(
            fmt::format("cannot keep the counts of a simulation point: {}", system_reason(errno)));
    const pid_t child = start_in_child(-1, [&] {
        session_.abandon_processes();
        Counted counted;
        try {
            counted = replay_alone(point);
        } catch (const std::exception& e) {
            counted.problem = e.what();  // once, and not by each of the processes
        }
        const std::uint64_t length = counted.problem.size();
        write_all(file.number(), &length, sizeof length);
        write_all(file.number(), counted.problem.data(), length);
        write_all(file.number(), counted.counts.data(),
                  counted.counts.size() * sizeof counted.counts[0]);
        session_.profilers.clear();
        return 0;
    });
    std::string killed;
    const bool good = exit_status_of(child, &killed) == 0;
    const std::vector<char> content = content_of(file.number());
    std::uint64_t length = 0;
    Counted counted;
    const bool whole = good && content.size() >= sizeof length;
    if (whole) std::memcpy(&length, content.data(), sizeof length);
    if (!whole || length > content.size() - sizeof length) {
        counted.problem =
            fmt::format("interval {} could not be replayed{}{}",
                        trace_.points()[point.number].number, killed.empty() ? "" : ": ", killed);
        return counted;
    }
    counted.problem.assign(content.data() + sizeof length, length);
    const char* const numbers = content.data() + sizeof length + length;
    const std::size_t bytes = content.size() - sizeof length - length;
    counted.counts.resize(bytes / sizeof counted.counts[0]);
    std::memcpy(counted.counts.data(), numbers, counted.counts.size() * sizeof counted.counts[0]);
    return counted;
}

// In this process, which writes the sum.
bool PointReplay::replay_last(const std::vector<Counted>& others,
                              const std::optional<Ending>& ending) {
    std::string problem;
    for (const Counted& other : others)
        if (problem.empty()) problem = other.problem;
    Collection::Outcome outcome;
    collect(points_.back(), image_, [&](Collection& collection, const std::string& own) {
        if (problem.empty()) problem = own;
        if (problem.empty() && points_.size() < trace_.points().size() && settings_.weights)
            collection.incomplete(
                fmt::format("{} of {} simulation points were recorded as a whole, and stand for "
                            "the others",
                            points_.size(), trace_.points().size()));
        if (!problem.empty()) {
            log::problem(problem);
            collection.incomplete(problem);
        }
        for (const Counted& other : others) collection.add_before_writing(other.counts);
        outcome = collection.finish(ending);
    });
    return problem.empty() && !outcome.failed && !outcome.lost;
}

bool PointReplay::execute(const std::optional<Ending>& ending) {
    std::vector<Counted> others;
    for (std::size_t i = 0; i + 1 < points_.size(); ++i) {
        others.push_back(replay_in_child(points_[i]));
        if (others.back().problem.empty() || !others.back().counts.empty()) continue;
        log::problem(others.back().problem);
        return false;
    }
    return replay_last(others, ending);
}

}  // namespace assay::collector
