#include "framework/collector/run/replay.h"

#include "framework/collector/run/collection.h"
#include "framework/collector/run/overview.h"
#include "framework/collector/run/session.h"
#include "framework/driver/replay/replay_driver.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <vector>

namespace assay::collector {
namespace {

std::optional<Ending> ending_of(const replay::ImageTrace& trace) {
    // Of a child that was killed, the signal is not known.
    const bool killed = trace.end() && trace.end()->state == TRACE_IMAGE_KILLED;
    if (!trace.end() || (killed && trace.end()->signal == 0)) return {};
    return Ending{trace.end()->exit_status, trace.end()->signal};
}

class Replay {
  public:
    Replay(const CoreSettings& settings, const std::string& file);

    int execute();

  private:
    static CoreSettings settings_for(CoreSettings settings, const replay::ImageTrace& first);
    Image image_of(const replay::ImageTrace& trace, std::size_t place) const;
    bool replay_image(const recording::RecordedImage& recorded);
    bool replay_in_child(const recording::RecordedImage& recorded);

    const recording::TraceFileReader file_;
    const replay::ImageTrace first_;
    const CoreSettings settings_;
    Session session_;
};

const recording::RecordedImage& first_image(const recording::TraceFileReader& file) {
    if (file.images().empty())
        throw Error(fmt::format("{} has no process that could be replayed", file.path()));
    return file.images().front();
}

Replay::Replay(const CoreSettings& settings, const std::string& file)
    : file_(file),
      first_(file_, first_image(file_)),
      settings_(settings_for(settings, first_)),
      session_(settings_, command_line(first_.command().arguments)) {}

// Files say how threads took turns.
CoreSettings Replay::settings_for(CoreSettings settings, const replay::ImageTrace& first) {
    settings.slice = first.image().slice;
    return settings;
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

// False if its profile is not what was asked for.
bool Replay::replay_image(const recording::RecordedImage& recorded) {
    const replay::ImageTrace trace(file_, recorded);
    Segment segment(trace.command());
    Lifeline lifeline;
    segment.control().pid = static_cast<int>(trace.pid());
    segment.control().parent = static_cast<int>(trace.image().parent);
    segment.control().image = trace.number();
    const Image image =
        image_of(trace, static_cast<std::size_t>(&recorded - file_.images().data()));
    Collection collection(session_, image, segment, lifeline, replay::possible);
    segment.control().spec = collection.spec();
    replay::ReplayDriver driver(trace, segment.fd());
    std::thread thread([&] {
        driver.run();
        lifeline.close_writing_end();
    });
    collection.collect();
    thread.join();
    if (!driver.problem().empty()) {
        log::problem(driver.problem());
        collection.incomplete(driver.problem());
    }
    const Collection::Outcome outcome = collection.finish(ending_of(trace));
    return driver.problem().empty() && !outcome.failed && !outcome.lost;
}

// Profilers begin anew for each image.
bool Replay::replay_in_child(const recording::RecordedImage& recorded) {
    const pid_t child = fork();
    if (child < 0) throw Error(fmt::format("cannot start a process: {}", system_reason(errno)));
    if (child == 0) {
        bool good = false;
        try {
            session_.abandon_processes();
            good = replay_image(recorded);
            session_.profilers.clear();
        } catch (const std::exception& e) {
            log::problem(e.what());
        }
        _exit(good ? 0 : 1);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int Replay::execute() {
    const std::vector<recording::RecordedImage>& images = file_.images();
    bool good = images.size() != 1 || replay_image(images.front());
    for (std::size_t i = 0; images.size() != 1 && i < images.size(); ++i)
        good = replay_in_child(images[i]) && good;
    good = tell_of_profiles(session_.log.entries(), settings_, image_of(first_, 0)) && good;
    return good ? 0 : kExitFailure;
}

}  // namespace

int replay(const CoreSettings& settings, const std::string& file) {
    Replay replay(settings, file);
    return replay.execute();
}

}  // namespace assay::collector
