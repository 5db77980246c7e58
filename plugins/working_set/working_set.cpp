// The working-set profiler. It counts the lines and pages that a program touches in each interval
// of instructions, and in the whole run.
#include "plugins/working_set/touched.h"

#include <assay/profiler.hpp>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string>

namespace working_set {
namespace {

constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"WSl", "lines touched first in an interval", "lines"},
    {"WSp", "pages touched first in an interval", "pages"},
    {"FPl", "lines touched first in the run", "lines"},
    {"FPp", "pages touched first in the run", "pages"},
}};

constexpr std::array<vp_option_t, 3> kOptionTable{{
    {"interval-size", "N", "100000000",
     "Instructions in an interval of a thread; with bbv, the same number as there.",
     VP_OPTION_COUNT, 0},
    {"line-size", "BYTES", "64", "Bytes of a line, from 64 to 4096.", VP_OPTION_UNSIGNED, 0},
    {"over-time", "FILE", nullptr, "Writes the working set of each interval as CSV.",
     VP_OPTION_OUTPUT_FILE, 0},
}};

class WorkingSetProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "working_set";
    static constexpr const char* kDescription =
        "tells how many lines and pages a program touches in each interval of instructions";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kOptions = kOptionTable;

    void option(std::string_view name, const std::string& value) override {
        constexpr uint64_t kShortest = 1000, kLongest = uint64_t{1} << 62;
        if (name == "interval-size") {
            interval_ = assay::number(name, value, kShortest, kLongest);
            return;
        }
        if (name == "over-time") {
            file_ = value;
            return;
        }
        line_ = static_cast<uint32_t>(assay::number(name, value, 64, 4096));
        if (!std::has_single_bit(line_)) throw assay::BadOption(name, value, "use a power of two");
    }
    void capture(assay::Captures& wanted) override {
        constexpr uint32_t kSets = 64;
        touched_ = std::make_unique<Touched>(line_);
        describe("lines", std::to_string(line_) + " B");
        describe("intervals", std::to_string(interval_) + " instructions");
        wanted.references(line_, kSets);
        if (!is_sampled()) return wanted.intervals(interval_);
        for (const uint32_t event : {kLines, kPages}) leave_out(event);
        for (const uint32_t event : {kNewLines, kNewPages}) unscaled(event);
        warn("no working sets with --sample: bursts show only a part of each interval");
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        touched_->learn(trace.sites());
        touched_->process(trace.thread(), trace.records(),
                          trace.has_context() ? trace.contexts() : std::span<const uint32_t>{});
    }

    void finish(assay::Trace&, assay::Samples&) override {
        give_series();
        if (file_.empty()) return;
        std::ofstream file(file_);
        file << csv(*touched_, interval_);
        file.close();
        if (!file) warn("--over-time: " + file_ + " cannot be written: " + std::strerror(errno));
    }

    bool finish_more(assay::Trace& trace, assay::Samples& samples) override {
        constexpr std::size_t kPortion = 8192;
        const auto sites = trace.sites();
        const auto instrs = trace.instrs();
        for (; next_site_ < sites.size() && samples.size() < kPortion; ++next_site_)
            touched_->each_context(next_site_, [&](uint64_t context, const Counts& counts) {
                for (uint32_t event = 0; event < counts.size(); ++event)
                    samples.count(instrs[sites[next_site_].instr].pc, event, counts[event],
                                  context);
            });
        return next_site_ < sites.size();
    }

    std::string summary(std::span<const uint64_t>) override {
        return summarise(*touched_, line_, interval_);
    }

  private:
    // Gives a series for each thread with a complete interval, until the limit of series is
    // reached.
    void give_series() const {
        const auto threads = touched_->threads();
        for (const auto& [number, thread] : threads)
            if (!thread.sizes.empty() && !series(working_set::series(number, thread, interval_)))
                return;
    }

    uint32_t line_ = 64;
    uint64_t interval_ = 100'000'000;
    std::string file_;  // of --over-time, or empty
    std::unique_ptr<Touched> touched_;
    uint32_t next_site_ = 0;  // for finish_more()
};

}  // namespace
}  // namespace working_set

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<working_set::WorkingSetProfiler>();
