#include "framework/collector/hosted/hosted_profiler.h"

#include "framework/collector/hosted/channel.h"
#include "framework/collector/profilers/loaded_profiler.h"
#include "framework/collector/profilers/plugin_search.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/shared_object.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <thread>
#include <utility>

namespace assay::collector {
namespace {

constexpr std::chrono::milliseconds kLook{100};
// Time beyond the limit of a call. The process itself keeps to the limit unless the profiler
// prevents that.
constexpr std::chrono::milliseconds kGrace{1'000};
// How long a process that has work may be idle.
constexpr std::chrono::milliseconds kSilence{30'000};
// The longest time between two checks that counts. A longer time means that this process was
// stopped.
constexpr std::chrono::milliseconds kLongestLook{1'500};

// Used by signal_all(): all processes, and the last signal.
std::array<std::atomic<pid_t>, 256> processes{};
std::atomic<int> last_signal{0};

void replace(pid_t from, pid_t to) {
    for (std::atomic<pid_t>& process : processes)
        if (pid_t expected = from; process.compare_exchange_strong(expected, to)) return;
}

// Returns the processor time of all threads of a process, or 0 if it is unknown.
std::chrono::nanoseconds processor_time_of(pid_t process) {
    clockid_t clock{};
    timespec used{};
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return {};
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

std::string text_of(const ProfilerFacts& facts) {
    Message message(MessageKind::kFacts);
    add(message, facts);
    return message.body();
}

}  // namespace

HostedProfiler::HostedProfiler(GuestSettings settings)
    : ProfilerHandle(settings.path),
      settings_(std::move(settings)),
      limit_([this] { return settings_.limit; }) {
    start_process();
    first_facts_ = text_of(facts_);
}

HostedProfiler::~HostedProfiler() {
    if (pid_ < 0 || owner_ != getpid()) return;
    try {
        stop();
        releasing_ = true;
        tell(Message(MessageKind::kRelease));
        while (!lost() && pid_ >= 0) wait();
    } catch (const std::exception&) {
        // end_process() follows in any case.
    }
    end_process();
}

void HostedProfiler::start_process() {
    state_ = shared_object<CallState>("a profiler's process");
    ChannelPair ends = make_channel();
    std::fflush(nullptr);  // otherwise both processes would write the buffered output
    owner_ = getpid();
    pid_ = fork();
    if (pid_ == 0) {
        ends.near.close();
        run_guest(settings_, std::move(ends.far), *state_, owner_);
    }
    if (pid_ < 0)
        throw Error(fmt::format("cannot start a process for the profiler {}: {}", path(),
                                reason_of_no_process(errno)));
    replace(0, pid_);
    if (const int signal = last_signal; signal != 0) kill(pid_, signal);
    channel_ = std::move(ends.near);
    taken_ = told_to_take_ = 0;
    loading_ = true;
    receive_facts();
    loading_ = false;
}

void HostedProfiler::receive_facts() {
    const auto body = await(MessageKind::kFacts);
    if (!body) return;
    try {
        Fields fields(*body);
        facts_ = take_facts(fields);
    } catch (const GarbledMessage& e) {
        give_up(e.what());
    }
}

void HostedProfiler::set_options(std::span<const std::pair<std::string, std::string>> settings) {
    if (lost()) return;
    if (owner_ != getpid()) {
        start_process();
        if (!lost() && text_of(facts_) != first_facts_)
            lose("its declarations differ between two processes");
    }
    Message message(MessageKind::kOptions);
    message.add(settings_.command).add(samples_ ? 1 : 0).add(settings.size());
    for (const auto& [name, value] : settings) message.add(name).add(value);
    tell(message);
    receive_facts();
    await(MessageKind::kDone);
}

trace::Spec HostedProfiler::start() {
    started_ = true;
    tell(Message(MessageKind::kStart));
    receive_facts();
    const auto body = await(MessageKind::kSpec);
    if (!body) return {};
    Fields fields(*body);
    const auto spec = fields.raw<trace::Spec>();
    if (fields.any_left()) {
        wanted_values_ = std::make_unique<trace::ValueLists>();
        fields.into(*wanted_values_);
    }
    return spec;
}

void HostedProfiler::collect(const Collected& what, Sink sink) {
    if (lost()) return;
    sink_ = std::move(sink);
    channel_.signal_arrivals();
    Message message(MessageKind::kCollect);
    message.add(static_cast<std::uint64_t>(what.pid)).add(what.interval).add_raw(what.spec);
    message.add(what.contexts ? 1 : 0);
    tell(message, what.segment);
}

void HostedProfiler::take(std::uint32_t slot) {
    ++told_to_take_;
    tell(Message(MessageKind::kTake).add(slot));
}

void HostedProfiler::take_rest() {
    tell(Message(MessageKind::kRest));
}

std::vector<std::uint64_t> HostedProfiler::next_totals() {
    receive();
    while (!lost() && totals_.empty()) wait();
    if (lost()) return std::vector<std::uint64_t>(events().size());
    std::vector<std::uint64_t> totals = std::move(totals_.front());
    totals_.pop_front();
    return totals;
}

void HostedProfiler::begin_finish(std::chrono::duration<double> time) {
    const auto whole = std::chrono::duration_cast<std::chrono::nanoseconds>(time);
    tell(Message(MessageKind::kFinish).add(static_cast<std::uint64_t>(whole.count())));
}

void HostedProfiler::finish() {
    receive_facts();
}

std::string HostedProfiler::summary(std::span<const std::uint64_t> totals) {
    Message message(MessageKind::kSummary);
    for (const std::uint64_t total : totals) message.add(total);
    return await_text(message).value_or("");
}

void HostedProfiler::stop() {
    if (!std::exchange(started_, false)) return;
    tell(Message(MessageKind::kStop));
    await(MessageKind::kDone);
}

std::optional<std::string> HostedProfiler::preface(const trace_instr_t& instr,
                                                   std::string_view list) {
    return await_text(Message(MessageKind::kPreface).add_raw(instr).add(list));
}

std::optional<std::string> HostedProfiler::format(const trace_instr_t& instr, std::uint64_t value) {
    return await_text(Message(MessageKind::kFormat).add_raw(instr).add(value));
}

void HostedProfiler::tell(const Message& message, int descriptor) {
    if (lost()) return;
    const auto still_there = [this] {
        receive();
        watch(true);
        return !lost();
    };
    if (!channel_.send(message, descriptor, still_there))
        while (!lost() && pid_ >= 0) wait();
}

std::optional<std::string> HostedProfiler::await_text(const Message& question) {
    tell(question);
    const auto body = await(MessageKind::kText);
    if (!body) return std::nullopt;
    Fields fields(*body);
    if (fields.number() == 0) return std::nullopt;
    return fields.text();
}

std::optional<std::string> HostedProfiler::await(MessageKind kind) {
    receive();
    while (!lost() && answers_.empty()) wait();
    if (lost()) return std::nullopt;
    const Message answer = std::move(answers_.front());
    answers_.pop_front();
    if (answer.kind() == kind) return answer.body();
    give_up("its process has given the wrong answer");
    return std::nullopt;
}

void HostedProfiler::look() {
    receive();
    watch(false);
}

void HostedProfiler::wait() {
    if (channel_.ended())
        std::this_thread::sleep_for(kLook / 100);  // it is about to end
    else
        channel_.wait(kLook);
    receive();
    watch(true);
}

// Decoding fails if the profiler has overwritten assay's data in its process.
void HostedProfiler::receive() {
    if (lost()) return;
    try {
        while (const auto message = channel_.receive()) handle(*message);
    } catch (const GarbledMessage& e) {
        give_up(e.what());
    }
}

void HostedProfiler::handle(const Message& message) {
    Fields fields(message.body());
    switch (message.kind()) {
        case MessageKind::kTaken:
            ++taken_;
            return;
        case MessageKind::kSamples:
            return pass_on(message.body());
        case MessageKind::kTotals:
            totals_.emplace_back(events().size());
            for (std::uint64_t& total : totals_.back()) total = fields.number();
            return;
        case MessageKind::kDamaged:
            damage_ = fields.text();
            return;
        case MessageKind::kRefused:
            end_process();
            throw Error(fields.text());
        case MessageKind::kRemark:
            return log::remark(fields.text());
        case MessageKind::kProblem:
            return log::problem(fields.text());
        default:
            answers_.push_back(message);
    }
}

void HostedProfiler::pass_on(const std::string& samples) {
    for (Fields fields(samples); fields.any_left();) {
        const auto placed = fields.raw<PlacedSample>();
        const vsample_t& sample = placed.sample;
        if (sample.event >= events().size() &&
            (!is_value(sample) || list_of(sample) >= value_lists().size()))
            throw GarbledMessage("its process has sent garbage");
        if (sink_) sink_(sample, static_cast<std::uint32_t>(placed.mapping));
    }
}

// `waits`: true if this process does nothing else meanwhile.
void HostedProfiler::watch(bool waits) {
    if (lost() || pid_ < 0) return;
    see_end();
    if (lost() || pid_ < 0) return;
    const auto now = std::chrono::steady_clock::now();
    const auto passed = std::min<std::chrono::steady_clock::duration>(
        now - std::exchange(last_look_, now), kLongestLook);
    const std::uint64_t call = state_->current_call();
    const bool same = std::exchange(watched_call_, call) == call &&
                      std::exchange(watched_end_, channel_.ended()) == channel_.ended();
    // The process calls the profiler on its first thread.
    const auto queued = queued_time(fmt::format("/proc/{}/schedstat", pid_).c_str());
    const auto waited = std::max(queued - std::exchange(watched_queue_, queued), queued.zero());
    seen_ = same ? seen_ + std::max(passed - waited, passed.zero()) : passed.zero();
    const std::chrono::nanoseconds used = processor_time_of(pid_);
    const bool idle = std::exchange(watched_time_, used) == used && same &&
                      call == CallState::kNoCall &&
                      (waits || channel_.has_part() || taken_ < told_to_take_);
    silent_ = idle ? silent_ + passed : passed.zero();
    const std::chrono::milliseconds limit = limit_();
    const std::chrono::milliseconds silence =
        limit.count() == 0 ? kSilence : std::min(limit, kSilence);
    if (silent_ > silence + kGrace)
        give_up(fmt::format("its process has not answered within {}", seconds(silence)));
    else if (channel_.ended() && seen_ > kGrace)
        give_up("it has closed files that are not its own");
    else if (call != CallState::kNoCall && limit.count() != 0 && seen_ > limit + kGrace)
        give_up(fmt::format("its {} {}{}{}", state_->function_name(), kTooLong, seconds(limit),
                            kMoreTime));
}

// Receives the messages that the process sent before it ended, then reports the end.
void HostedProfiler::see_end() {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR)) return;
    const bool known = ended > 0;
    replace(std::exchange(pid_, -1), 0);
    receive();
    channel_.close();
    const bool told = state_->in_call || !state_->reason_text().empty();
    if (releasing_ && !told && (!known || status == 0)) return;
    const std::string how = known ? how_it_ended(status) : "its process has ended";
    if (loading_ && state_->function_name() == "constructors")
        throw Error(fmt::format("cannot use the profiler {}: {}", path(), how));
    lose_process(how);
}

std::string HostedProfiler::how_it_ended(int status) const {
    if (std::string reason = state_->reason_text(); !reason.empty()) return reason;
    const std::string which = state_->in_call ? state_->function_name() : "threads, or a signal,";
    if (WIFSIGNALED(status))
        return fmt::format("its {} crashed with signal {} ({})", which, WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
    return fmt::format("its {} ended its process with status {}", which, WEXITSTATUS(status));
}

void HostedProfiler::give_up(const std::string& why) {
    end_process();
    lose_process(why);
}

std::vector<std::string> HostedProfiler::libraries() const {
    return state_->library_paths();
}

void HostedProfiler::lose_process(const std::string& why) {
    const std::vector<std::string> paths = libraries();
    lose(paths.empty() ? why
                       : fmt::format("{} (it runs the code of {})", why, fmt::join(paths, ", ")));
}

void HostedProfiler::end_process() {
    channel_.close();
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    replace(std::exchange(pid_, -1), 0);
}

void HostedProfiler::abandon() {
    channel_.close();
    if (pid_ >= 0) replace(std::exchange(pid_, -1), 0);
}

void HostedProfiler::signal_all(int signal) {
    last_signal = signal;  // also for a process that is starting and not yet in the list
    for (const std::atomic<pid_t>& process : processes)
        if (const pid_t pid = process; pid > 0) kill(pid, signal);
}

std::unique_ptr<ProfilerHandle> load_profiler(const std::string& path, const std::string& command,
                                              CrashGuard& guard, const std::string& debug_cache) {
    if (is_own_plugin(path)) return std::make_unique<LoadedProfiler>(path, command, guard);
    return std::make_unique<HostedProfiler>(
        GuestSettings{path, command, guard.limit(), debug_cache});
}

namespace {

// Skips assay's own profilers, because their names equal those of their files.
std::optional<std::string> find_by_own_name(const std::string& name, CrashGuard& guard) {
    std::optional<std::string> found;
    for (const FoundPlugin& plugin : find_all_plugins()) {
        if (is_own_plugin(plugin.path)) continue;
        try {
            if (load_profiler(plugin.path, "", guard)->name() != name) continue;
        } catch (const Error&) {
            continue;  // it is another profiler, which reports the error when it is used
        }
        if (found)
            throw Error(fmt::format("two profilers are named {}: {} and {}; name the file", name,
                                    *found, plugin.path));
        found = plugin.path;
    }
    return found;
}

}  // namespace

std::string find_profiler(const std::string& name, CrashGuard& guard) {
    if (const std::optional<std::string> path = find_plugin_file(name)) return *path;
    if (const std::optional<std::string> path = find_by_own_name(name, guard)) return *path;
    throw no_plugin_error(name);
}

}  // namespace assay::collector
