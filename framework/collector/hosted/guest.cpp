
#include "framework/collector/hosted/channel.h"
#include "framework/collector/profilers/feed.h"
#include "framework/collector/profilers/loaded_profiler.h"
#include "framework/support/log.h"
#include "framework/trace/launch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

namespace assay::collector {
namespace {

constexpr std::chrono::milliseconds kForever{-1};
constexpr std::size_t kBatch = 512;  // samples

[[noreturn]] void end_process() {
    std::fflush(nullptr);
    _exit(0);
}

void do_nothing(int) {}

// The collector decides when this process ends. A terminal or a user sends signals to the run for
// the sake of the program, so they must not end this process.
void take_signals() {
    struct sigaction action {
    }, before{};
    action.sa_handler = do_nothing;  // a program that the profiler executes gets the default
                                     // action, which SIG_IGN would prevent
    action.sa_flags = SA_RESTART;
    for (const int number : {SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE}) {
        sigaction(number, nullptr, &before);
        if (before.sa_handler == SIG_DFL) sigaction(number, &action, nullptr);
    }
}

// Closes everything that belongs to the collector. Other processes must see these descriptors close
// when the collector ends.
int keep_only_streams_and(int descriptor) {
    constexpr int kKept = STDERR_FILENO + 1;
    if (descriptor != kKept) dup3(descriptor, kKept, O_CLOEXEC);
    closefrom(kKept + 1);  // also works without close_range(2), before Linux 5.9
    return kKept;
}

class Guest {
  public:
    Guest(const GuestSettings& settings, Channel channel, CallState& state)
        : channel_(std::move(channel)),
          state_(state),
          guard_(&state),
          symbolizer_(symbols::kDebugRoot, settings.debug_cache) {
        guard_.set_limit(settings.limit);
        own_files_.add(channel_.descriptor());
        log::send_to([this](bool problem, std::string_view text) {
            send(Message(problem ? MessageKind::kProblem : MessageKind::kRemark).add(text));
        });
        try {
            profiler_ = std::make_unique<LoadedProfiler>(
                settings.path, settings.command, guard_,
                Surroundings{own_files_,
                             [this](const std::string& why) {
                                 state_.give_reason(why);
                                 lost_ = true;
                             },
                             [this](const std::string& path) { state_.add_library(path); }});
        } catch (const Error& e) {
            refuse(e);
        }
        end_if_lost();
        send_facts();
    }

    [[noreturn]] void run() {
        for (;;) {
            while (const auto message = channel_.receive()) {
                Fields fields(message->body());
                do_as_told(message->kind(), fields);
                flush();
                end_if_lost();
            }
            if (channel_.ended()) end_process();
            channel_.wait(kForever);
        }
    }

  private:
    // Waits without limit: a collector that does not receive is busy with another profiler.
    void send(const Message& message) {
        if (!channel_.send(message, -1, [] { return true; })) end_process();
    }

    void send_facts() {
        Message message(MessageKind::kFacts);
        add(message, profiler_->facts());
        send(message);
    }

    [[noreturn]] void refuse(const Error& error) {
        send(Message(MessageKind::kRefused).add(std::string_view(error.what())));
        end_process();
    }

    // The collector reads the reason in state_.
    void end_if_lost() const {
        if (lost_) end_process();
    }

    void do_as_told(MessageKind kind, Fields& fields) {
        switch (kind) {
            case MessageKind::kOptions:
                return set_options(fields);
            case MessageKind::kStart:
                return start();
            case MessageKind::kCollect:
                return collect(fields);
            case MessageKind::kTake:
                return take(static_cast<std::uint32_t>(fields.number()));
            case MessageKind::kRest:
                return read([this] { feed_->reader().consume_rest(); });
            case MessageKind::kFinish:
                return finish(std::chrono::nanoseconds(fields.number()));
            case MessageKind::kSummary:
                return summarize(fields);
            case MessageKind::kPreface: {
                const auto instr = fields.raw<trace_instr_t>();
                return send_text(profiler_->preface(instr, fields.text()));
            }
            case MessageKind::kFormat: {
                const auto instr = fields.raw<trace_instr_t>();
                return send_text(profiler_->format(instr, fields.number()));
            }
            case MessageKind::kStop:
                profiler_->stop();
                end_if_lost();
                return send(Message(MessageKind::kDone));
            default:  // kRelease
                profiler_.reset();
                symbolizer_.end_background();
                end_process();
        }
    }

    void set_options(Fields& fields) {
        profiler_->set_command(fields.text());
        profiler_->set_sampling(fields.number() != 0);
        std::vector<std::pair<std::string, std::string>> settings(fields.number());
        for (auto& [name, value] : settings) {
            name = fields.text();
            value = fields.text();
        }
        try {
            profiler_->set_options(settings);
        } catch (const Error& e) {
            refuse(e);
        }
        end_if_lost();
        send_facts();
        send(Message(MessageKind::kDone));
    }

    void start() {
        Message answer(MessageKind::kSpec);
        try {
            answer.add_raw(profiler_->start());
        } catch (const Error& e) {
            refuse(e);
        }
        end_if_lost();
        if (profiler_->wanted_values()) answer.add_raw(*profiler_->wanted_values());
        send_facts();
        send(answer);
    }

    void collect(Fields& fields) {
        const auto pid = static_cast<int>(fields.number());
        const std::uint64_t interval = fields.number();
        const auto spec = fields.raw<trace::Spec>();
        const bool contexts = fields.number() != 0;
        segment_.emplace(channel_.take_descriptor(), Segment::Access::kRead);
        feed_.emplace(*segment_, TraceReader::Role::kFollower, pid, spec.regions, symbolizer_);
        feed_->at_totals = [this] { tell_totals(); };
        feed_->add(*profiler_, [this](const vsample_t& sample, std::uint32_t mapping) {
            samples_.push_back({sample, mapping});
            if (samples_.size() == kBatch) flush();
        });
        feed_->begin({spec, interval, contexts});
    }

    void take(std::uint32_t slot) {
        read([&] { feed_->reader().follow(slot); });
        flush();
        end_if_lost();
        send(Message(MessageKind::kTaken));
    }

    // The program can damage the trace at any time.
    template <typename Read>
    void read(Read read) {
        if (damaged_) return;
        try {
            read();
        } catch (const Error& damage) {
            damaged_ = true;
            send(Message(MessageKind::kDamaged).add(std::string_view(damage.what())));
        }
    }

    void tell_totals() {
        const std::vector<std::uint64_t> totals = feed_->totals_so_far(0);
        end_if_lost();
        Message message(MessageKind::kTotals);
        for (const std::uint64_t total : totals) message.add(total);
        send(message);
        feed_->sampling().totals(totals);
    }

    // `time` is the duration of the run: it limits what the program can have executed.
    void finish(std::chrono::nanoseconds time) {
        feed_->impossible_counts(time);
        feed_->end();
        feed_->finish();
        flush();
        end_if_lost();
        send_facts();
    }

    void summarize(Fields& fields) {
        std::vector<std::uint64_t> totals;
        while (fields.any_left()) totals.push_back(fields.number());
        send_text(profiler_->summary(totals));
    }

    void send_text(const std::optional<std::string>& text) {
        end_if_lost();
        Message answer(MessageKind::kText);
        answer.add(text ? 1 : 0);
        if (text) answer.add(*text);
        send(answer);
    }

    void flush() {
        if (samples_.empty()) return;
        Message message(MessageKind::kSamples);
        for (const PlacedSample& sample : samples_) message.add_raw(sample);
        samples_.clear();
        send(message);
    }

    Channel channel_;
    CallState& state_;
    CrashGuard guard_;
    OwnFiles own_files_;
    symbols::Symbolizer symbolizer_;
    std::unique_ptr<LoadedProfiler> profiler_;
    bool lost_ = false, damaged_ = false;
    std::optional<Segment> segment_;
    std::optional<Feed> feed_;
    std::vector<PlacedSample> samples_;
};

}  // namespace

void run_guest(const GuestSettings& settings, Channel channel, CallState& state, pid_t collector) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != collector) _exit(0);
    take_signals();
    const int descriptor = trace::move_high(keep_only_streams_and(channel.release()));
    try {
        (new Guest(settings, Channel(descriptor), state))
            ->run();  // never destroyed, because the profiler must not be called any more
    } catch (const std::exception& e) {
        // An error of assay itself, for example because of a resource limit that the profiler has
        // set.
        state.give_reason(std::string("its process cannot go on: ") + e.what());
    }
    _exit(0);
}

}  // namespace assay::collector
