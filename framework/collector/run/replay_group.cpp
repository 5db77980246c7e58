#include "framework/collector/run/replay_group.h"

#include "framework/collector/run/collection.h"
#include "framework/collector/run/session.h"
#include "framework/driver/replay/miss_filter.h"
#include "framework/driver/replay/replay_driver.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/shared_object.h"
#include "framework/support/text.h"
#include "framework/trace/captures.h"
#include "framework/trace/futex.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

namespace assay::collector {
namespace {

// The first byte of a message from the parent. A text or a specification follows.
enum class Word : char { kAgreed, kRefused, kSentAway, kFinished };

struct SentAway {};

constexpr std::size_t kMostText = 4096;

void say(int channel, Word word, std::string_view rest = {}) {
    std::string message(1, static_cast<char>(word));
    message += rest.substr(0, kMostText);
    send(channel, message.data(), message.size(), MSG_NOSIGNAL);
}

std::string_view bytes_of(const trace::Spec& spec) {
    return {reinterpret_cast<const char*>(&spec), sizeof spec};
}

// Called in the child. Returns an empty text if the parent is gone.
std::pair<Word, std::string> hear(int channel) {
    std::string message(1 + std::max(kMostText, sizeof(trace::Spec)), '\0');
    ssize_t got = 0;
    do got = recv(channel, message.data(), message.size(), 0);
    while (got < 0 && errno == EINTR);
    if (got < 1) throw SentAway();
    return {static_cast<Word>(message[0]), message.substr(1, static_cast<std::size_t>(got) - 1)};
}

trace::Spec agree_in_child(int channel, const trace::Spec& wanted) {
    const std::string_view bytes = bytes_of(wanted);
    send(channel, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    const auto [word, rest] = hear(channel);
    if (word == Word::kRefused) throw Error(rest);
    if (word != Word::kAgreed || rest.size() != sizeof(trace::Spec)) throw SentAway();
    trace::Spec given;
    std::memcpy(&given, rest.data(), sizeof given);
    return given;
}

int read_image(const ReplayReader::Source& source, const ReplayReader::Point& point,
               std::uint32_t number, int channel, trace::ValueLists& lists) {
    Session session(point.settings, point.image.command, point.profiles);
    const Collection::Shared shared{
        [&](const trace::Spec& wanted, const trace::ValueLists& values) {
            if (wanted.captures & trace::kCaptureValues) lists = values;
            return agree_in_child(channel, wanted);
        },
        source.readers, number, source.trace.instructions()};
    Collection collection(session, point.image, source.segment, source.lifeline, &shared);
    collection.collect();
    const auto [word, problem] = hear(channel);
    if (!problem.empty()) {
        log::problem(problem);
        collection.incomplete(problem);
    }
    const Collection::Outcome outcome = collection.finish(ending_of(source.trace));
    session.profilers.clear();
    return problem.empty() && !outcome.failed && !outcome.lost ? 0 : kExitFailure;
}

}  // namespace

pid_t start_in_child(int log, const std::function<int()>& work) {
    std::fflush(nullptr);  // otherwise both processes would write the buffered output
    const pid_t parent = getpid(), child = fork();
    if (child < 0)
        throw Error(fmt::format("cannot start a process: {}", reason_of_no_process(errno)));
    if (child > 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(kExitFailure);
    if (log >= 0) {
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
    }
    int status = kExitFailure;
    try {
        status = work();
    } catch (const std::exception& e) {
        log::problem(e.what());
    } catch (const SentAway&) {
        // the parent knows the reason
    }
    std::fflush(nullptr);
    _exit(status);
}

std::optional<Ending> ending_of(const replay::ImageTrace& trace) {
    const bool killed = trace.end() && trace.end()->state == TRACE_IMAGE_KILLED;
    if (!trace.end() || (killed && trace.end()->signal == 0)) return {};
    return Ending{trace.end()->exit_status, trace.end()->signal};
}

int exit_status_of(pid_t child) {
    int status = 0;
    pid_t ended = 0;
    do ended = waitpid(child, &status, 0);
    while (ended < 0 && errno == EINTR);
    if (ended >= 0 && WIFEXITED(status)) return WEXITSTATUS(status);
    const std::string how =
        ended < 0 ? fmt::format("a process of the replay has disappeared: {}", system_reason(errno))
                  : fmt::format("process {} of the replay was ended by signal {} ({})", ended,
                                WTERMSIG(status), strsignal(WTERMSIG(status)));
    log::problem(how + "; its results are missing: run the replay again");
    return kExitFailure;
}

ReplayReader::ReplayReader(const Source& source, const Point& point, std::uint32_t number)
    : values_(shared_object<trace::ValueLists>("a replay")) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throw Error(fmt::format("cannot make a socket: {}", system_reason(errno)));
    channel_ = ends[0];
    try {
        pid_ = start_in_child(point.log, [&] {
            close(ends[0]);
            source.lifeline.close_writing_end();
            log::set_quiet(point.settings.quiet);
            return read_image(source, point, number, ends[1], *values_);
        });
    } catch (...) {
        close(ends[0]);
        close(ends[1]);
        throw;
    }
    close(ends[1]);
}

ReplayReader::~ReplayReader() {
    close(channel_);
    if (pid_ >= 0) exit_status_of(pid_);
}

std::optional<trace::Spec> ReplayReader::wanted() const {
    trace::Spec spec;
    ssize_t got = 0;
    do got = recv(channel_, &spec, sizeof spec, 0);
    while (got < 0 && errno == EINTR);
    if (got != sizeof spec) return {};
    return spec;
}

void ReplayReader::agree(const trace::Spec& given) const {
    say(channel_, Word::kAgreed, bytes_of(given));
}

void ReplayReader::refuse(const std::string& why) const {
    say(channel_, Word::kRefused, why);
}

void ReplayReader::send_away() const {
    say(channel_, Word::kSentAway);
}

void ReplayReader::finish(const std::string& problem) const {
    say(channel_, Word::kFinished, problem);
}

int ReplayReader::exit_status() {
    return exit_status_of(std::exchange(pid_, -1));
}

namespace {

bool misses_caches(const trace::Spec& spec) {
    return spec.data.ways != 0 || spec.fetch.ways != 0;
}

// Points that want only cache misses can share a segment only if they simulate the same caches.
bool share_segment(const trace::Spec& a, const trace::Spec& b) {
    return !(misses_caches(a) || misses_caches(b)) || (a.data == b.data && a.fetch == b.fetch);
}

// Removes readers that die while the driver is busy: the driver would wait for them.
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
    std::vector<pollfd> watched_;  // one per reader; the last is `end_`
    std::thread thread_;
};

}  // namespace

void add(ReplayedPoint& point, const trace::Spec& spec, std::vector<ReplayPass>& passes) {
    for (ReplayPass& pass : passes) {
        if (!replay::go_together(*pass.front().spec, spec)) continue;
        for (ReplayGroup& group : pass)
            if (share_segment(*group.spec, spec) && group.points.size() < trace::Readers::kMost)
                return group.points.push_back(&point);
        if (pass.size() == replay::MissFilters::kMostOutputs) continue;
        return pass.push_back({spec, {&point}});
    }
    passes.push_back({{spec, {&point}}});
}

Readership::Readership(const replay::ImageTrace& trace_of_image, std::span<const Image> images,
                       const ReplayGroup& of, Lifeline& lifeline)
    : group(of),
      trace(trace_of_image),
      mixed(images.front().mixed.has_value()),
      segment(trace.command()) {
    segment.control().pid = images.front().pid;
    segment.control().parent = static_cast<int>(trace.image().parent);
    segment.control().instruction_set = trace.instruction_set();
    segment.control().image = images.front().number;
    shared->count = static_cast<std::uint32_t>(group.points.size());
    for (const ReplayedPoint* point : group.points)
        readers.push_back(std::make_unique<ReplayReader>(
            ReplayReader::Source{trace, segment, lifeline, *shared},
            ReplayReader::Point{point->settings, point->log, point->profiles,
                                images[images.size() == 1 ? 0 : readers.size()]},
            static_cast<std::uint32_t>(readers.size())));
}

std::optional<trace::Spec> Readership::agree(trace::ValueLists& values) const {
    std::optional<trace::Spec> together;
    for (const auto& reader : readers) {
        const std::optional<trace::Spec> wanted = reader->wanted();
        if (!wanted) continue;
        try {
            if (mixed && wanted->captures & trace::kCaptureMappings)
                throw Error(
                    "programs that share a machine have pages of one size: leave page: mapped out "
                    "of the machine file, or replay the traces one by one");
            const trace::Spec given = replay::possible(*wanted, reader->wanted_values(), trace);
            together = together ? combine(*together, given) : given;
            trace::add(values, reader->wanted_values());
        } catch (const Error& missing) {
            // All programs that share a machine lack the same.
            if (mixed && reader != readers.front())
                reader->send_away();
            else
                reader->refuse(missing.what());
        }
    }
    if (!together) return {};
    segment.control().spec = replay::possible(*together, values, trace);
    for (const auto& reader : readers) reader->agree(segment.control().spec);
    return segment.control().spec;
}

std::string fill(const replay::ImageTrace& trace,
                 std::span<const std::unique_ptr<Readership>> groups,
                 replay::MixedPrograms* mixed) try {
    std::optional<trace::Spec> combined;
    const auto values = std::make_unique<trace::ValueLists>();
    std::vector<replay::Output> outputs;
    for (const auto& group : groups) {
        const std::optional<trace::Spec> spec = group->agree(*values);
        if (!spec) continue;
        combined = combined ? combine(*combined, *spec) : *spec;
        outputs.push_back({group->segment.fd(), *group->shared});
    }
    if (!combined) return "";
    replay::ReplayDriver driver(trace, *combined, *values, outputs, 0, mixed);
    const DeathWatch watch(groups);
    driver.run();
    return driver.problem();
} catch (const Error& e) {
    return e.what();
}

void finish(std::span<const std::unique_ptr<Readership>> groups, Lifeline& lifeline,
            const std::string& problem) {
    for (const auto& group : groups)
        for (const auto& reader : group->readers) reader->finish(problem);
    lifeline.close_writing_end();
    for (const auto& group : groups) {
        // The lifeline wakes only one of its readers.
        group->segment.control().doorbell.fetch_add(1);
        trace::futex_wake(group->segment.control().doorbell, INT_MAX);
    }
    for (const auto& group : groups)
        for (std::size_t i = 0; i < group->readers.size(); ++i)
            if (const int status = group->readers[i]->exit_status(); status != 0)
                group->group.points[i]->status = status;
}

}  // namespace assay::collector
