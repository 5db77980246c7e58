// Replays several traces as programs that share a machine. Each program has its own reader, which
// simulates all programs and writes the counts of its own.
#include "framework/collector/run/overview.h"
#include "framework/collector/run/replay_group.h"
#include "framework/support/error.h"
#include "framework/support/log.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

namespace assay::collector {
namespace {

constexpr std::uint32_t kUsualSlice = 100'000;  // as in a run with --schedule=fair

void check(const CoreSettings& settings, std::size_t traces) {
    const trace::Regions& part = settings.regions;
    for (const auto& [given, name] :
         {std::pair{settings.contexts, "contexts"}, std::pair{settings.types, "types"},
          std::pair{part.sample_period != 0, "sample"},
          std::pair{part.from_instruction != 0, "from-instruction"},
          std::pair{part.to_instruction != 0, "to-instruction"}})
        if (given)
            throw Error(fmt::format(
                "--{} cannot be combined with several traces: leave it out, or replay them one by "
                "one",
                name));
    if (traces > replay::kMostPrograms)
        throw Error(fmt::format("{} traces are too many: at most {} can share a machine", traces,
                                replay::kMostPrograms));
}

const recording::RecordedImage& only_image(const recording::TraceFileReader& file) {
    if (file.images().size() == 1) return file.images().front();
    throw Error(fmt::format(
        "{} has {} programs, but only one of each trace can share a machine: cut it out with "
        "`assay trace --format=trace --pid=PID --image=N -o PART {}`",
        file.path(), file.images().size(), file.path()));
}

Image image_of(const replay::ImageTrace& trace, std::size_t place,
               std::span<const replay::ImageTrace> before) {
    const trace::Command command = trace.command();
    Image image;
    image.pid = static_cast<int>(trace.pid());
    image.place = place;
    image.of_first_process = place == 0;
    image.program = std::filesystem::path(command.file).filename();
    image.command = command_line(command.arguments);
    image.earlier = static_cast<unsigned>(
        std::count_if(before.begin(), before.end(),
                      [&](const replay::ImageTrace& other) { return other.pid() == trace.pid(); }));
    image.mixed = place;
    return image;
}

}  // namespace

int replay(CoreSettings settings, std::span<const std::string> files) {
    check(settings, files.size());
    if (settings.slice == 0) settings.slice = kUsualSlice;
    std::vector<std::unique_ptr<const recording::TraceFileReader>> readers;
    std::vector<replay::ImageTrace> programs;
    std::vector<Image> images;
    for (const std::string& file : files) {
        readers.push_back(std::make_unique<const recording::TraceFileReader>(file));
        programs.emplace_back(*readers.back(), only_image(*readers.back()));
        images.push_back(
            image_of(programs.back(), images.size(), std::span(programs).first(images.size())));
    }
    replay::MixedPrograms mixed(programs);
    const auto profiles = std::make_shared<const ProfileLog>();
    std::vector<ReplayedPoint> points(files.size(), {settings, -1, profiles});
    for (std::size_t i = 1; i < points.size(); ++i)
        points[i].settings.progress = ShowProgress::kNever;
    ReplayGroup group;
    for (ReplayedPoint& point : points) group.points.push_back(&point);
    Lifeline lifeline;
    std::vector<std::unique_ptr<Readership>> groups;
    groups.push_back(std::make_unique<Readership>(mixed.image(), images, group, lifeline));
    finish(groups, lifeline, fill(mixed.image(), groups, &mixed));
    const bool told = tell_of_profiles(profiles->entries(), settings, images.front()).has_value();
    const auto failed = std::find_if(points.begin(), points.end(),
                                     [](const ReplayedPoint& point) { return point.status != 0; });
    if (failed != points.end()) return failed->status;
    return told ? 0 : kExitFailure;
}

}  // namespace assay::collector
