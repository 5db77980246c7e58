// The system-call profiler. It counts system calls with their callers, errors, transferred bytes
// and times.
#include "plugins/syscalls/calls.h"

#include <assay/context_rows.hpp>
#include <assay/profiler.hpp>
#include <assay/text.hpp>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace syscalls {
namespace {

enum Event : std::uint32_t { kCalls, kErrors, kRead, kWritten, kTime, kEvents };
constexpr std::array<vp_event_t, kEvents> kEventTable{{
    {"Sys", "system calls", "calls"},
    {"SysErr", "system calls that failed", "calls"},
    {"SysRd", "bytes that system calls read or received", "bytes"},
    {"SysWr", "bytes that system calls wrote or sent", "bytes"},
    {"SysNs", "nanoseconds in system calls, with --time", "nanoseconds"},
}};
constexpr std::array<vp_derived_t, 4> kDerivedTable{{
    {"failed", "SysErr / Sys", "%"},
    {"bytes read per call", "SysRd / Sys", "bytes"},
    {"bytes written per call", "SysWr / Sys", "bytes"},
    {"time per call", "SysNs / Sys", "ns"},
}};
constexpr std::array<vp_option_t, 2> kOptionTable{{
    {"callers", nullptr, "yes",
     "Counts a system call in the nearest function outside of the C library, at its call; no: at "
     "the instruction.",
     VP_OPTION_YES_NO, 0},
    {"time", nullptr, "no", "Measures how long system calls take, in a column SysNs.",
     VP_OPTION_YES_NO, 0},
}};

enum List : std::uint32_t { kByCall, kByError };
constexpr std::array<const char*, 2> kListNames{"calls", "errors"};
constexpr unsigned kErrorBits = 16;  // low bits of a value of kByError; the rest is the call

constexpr std::uint64_t kMostError = 4095;  // include/linux/err.h, MAX_ERRNO
// Larger values mean that the program has written over the trace.
constexpr std::uint64_t kMostBytes = 0x7ffff000;              // include/linux/fs.h, MAX_RW_COUNT
constexpr std::uint64_t kMostTime = std::uint64_t{1} << 53U;  // nanoseconds: 104 days

class SystemCalls final : public assay::Profiler {
  public:
    static constexpr const char* kName = "syscalls";
    static constexpr const char* kDescription =
        "counts system calls by name, their errors, bytes and time, where they come from";
    static constexpr const auto& kEvents = kEventTable;
    static constexpr const auto& kDerived = kDerivedTable;
    static constexpr const auto& kOptions = kOptionTable;
    static constexpr bool kPrintsValues = true;
    static constexpr const auto& kValueLists = kListNames;

    void option(std::string_view name, const std::string& value) override {
        (name == "time" ? times_ : callers_) = value == "yes";
    }

    void capture(assay::Captures& wanted) override {
        wanted.system_calls(times_ ? TRACE_SYSTEM_CALL_TIMES : 0);
        if (callers_) wanted.calls();
        if (!times_) leave_out(kTime);
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        const auto records = trace.records();
        const auto contexts = trace.contexts();
        const auto sites = trace.sites();
        Last& last = last_[trace.thread()];
        for (std::size_t i = 0; i < records.size(); ++i) {
            const trace_site_t& site = sites[records[i].site];
            if (site.kind == TRACE_SITE_SYSTEM_CALL)
                begin(last, site.instr, contexts.empty() ? 0 : contexts[i], records[i].value);
            else if (last.state == Last::kMade && site.kind == TRACE_SITE_SYSTEM_CALL_RESULT)
                end(last, records[i]);
            else if (last.state == Last::kReturned && site.kind == TRACE_SITE_SYSTEM_CALL_TIME)
                take_time(last, records[i].value);
        }
        if (trace.thread_end()) last_.erase(trace.thread());
    }

    // The sums of the counts that finish() would give.
    void totals(assay::Trace&, std::span<std::uint64_t> by_event) {
        Tally all;
        for (std::uint32_t row = 0; row < rows_.size(); ++row) all += tallies_[row];
        by_event[kCalls] = all.calls;
        by_event[kErrors] = all.errors;
        by_event[kRead] = all.read;
        by_event[kWritten] = all.written;
        by_event[kTime] = all.nanoseconds;
    }

    void finish(assay::Trace& trace, assay::Samples& samples) override {
        Callers callers(trace);
        std::vector<Place> calls;
        for (std::uint32_t row = 0; row < rows_.size(); ++row)
            calls.push_back({trace.instrs()[made_[rows_.site(row)].instr].pc, rows_.context(row)});
        if (callers_) callers.prepare(calls);
        std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> by_call, by_error;
        for (std::uint32_t row = 0; row < rows_.size(); ++row) {
            const Tally& tally = tallies_[row];
            const std::uint64_t number = made_[rows_.site(row)].number;
            const Place place = callers_ ? callers.find(calls[row].pc, rows_.context(row))
                                : trace.has_context()
                                    ? Place{calls[row].pc, rows_.context_of_samples(row)}
                                    : Place{calls[row].pc, 0};
            const auto count = [&](Event event, std::uint64_t weight) {
                samples.count(place.pc, event, weight, place.context);
            };
            count(kCalls, tally.calls);
            count(kErrors, tally.errors);
            count(kRead, tally.read);
            count(kWritten, tally.written);
            count(kTime, tally.nanoseconds);
            by_call[{place.pc, number}] += tally.calls;
            for (const auto& [error, times] : errors_[row])
                by_error[{place.pc, number << kErrorBits | error}] += times;
            by_number_[number] += scaled(tally, trace.scale());
        }
        for (const auto& [key, times] : by_call)
            samples.value(key.first, key.second, times, kByCall);
        for (const auto& [key, times] : by_error)
            samples.value(key.first, key.second, times, kByError);
        describe("System calls", in_one_line(by_number_));
    }

    std::string summary(std::span<const std::uint64_t>) override {
        return summarise(by_number_, times_);
    }

    std::optional<std::string> preface(const trace_instr_t&, std::uint32_t list) override {
        if (list >= kListNames.size()) return std::nullopt;
        list_ = list;
        return list == kByCall ? "system calls" : "errors of system calls";
    }
    std::string format(const trace_instr_t&, std::uint64_t value) override {
        if (list_ == kByCall) return name_of_call(value);
        const auto error = static_cast<std::uint32_t>(value & ((1U << kErrorBits) - 1));
        return name_of_call(value >> kErrorBits) + " " + name_of_error(error);
    }

  private:
    // An instruction that makes a system call, and the number of the call.
    struct Made {
        std::uint32_t instr;
        std::uint64_t number;
    };
    // The last call of a thread.
    struct Last {
        std::uint32_t row = 0;
        enum { kNone, kMade, kReturned } state = kNone;
    };

    void begin(Last& last, std::uint32_t instr, std::uint32_t context, std::uint64_t number) {
        const auto [found, is_new] =
            indexes_.try_emplace({instr, number}, static_cast<std::uint32_t>(made_.size()));
        if (is_new) made_.push_back({instr, number});
        last = {rows_.of(context, found->second), Last::kMade};
        ++tallies_[last.row].calls;
    }

    void end(Last& last, const trace_record_t& result) {
        Tally& tally = tallies_[last.row];
        if (result.aux == 1) {  // the kernel restarts the call
            last.state = Last::kNone;
            --tally.calls;
            return;
        }
        last.state = Last::kReturned;
        if (-result.value <= kMostError && result.value != 0) {
            ++tally.errors;
            ++errors_[last.row][static_cast<std::uint32_t>(-result.value)];
            return;
        }
        if (result.value > kMostBytes) return;
        const Moves moved = moves(made_[rows_.site(last.row)].number);
        if (moved == Moves::kIn || moved == Moves::kBoth) tally.read += result.value;
        if (moved == Moves::kOut || moved == Moves::kBoth) tally.written += result.value;
    }

    void take_time(Last& last, std::uint64_t nanoseconds) {
        last.state = Last::kNone;
        if (times_ && nanoseconds <= kMostTime) tallies_[last.row].nanoseconds += nanoseconds;
    }

    static Tally scaled(const Tally& tally, double scale) {
        return {assay::scaled(tally.calls, scale), assay::scaled(tally.errors, scale),
                assay::scaled(tally.read, scale), assay::scaled(tally.written, scale),
                assay::scaled(tally.nanoseconds, scale)};
    }

    bool callers_ = true, times_ = false;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> indexes_;  // in made_
    std::vector<Made> made_;
    assay::ContextRows rows_;  // by context and index in made_
    assay::Indexed<Tally> tallies_;
    std::unordered_map<std::uint32_t, std::map<std::uint32_t, std::uint64_t>> errors_;  // by row
    std::unordered_map<std::uint32_t, Last> last_;                                      // by thread
    std::map<std::uint64_t, Tally> by_number_;  // set by finish() for the summary
    std::uint32_t list_ = kByCall;              // of the last preface()
};

}  // namespace
}  // namespace syscalls

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch =
    assay::dispatch<syscalls::SystemCalls>();
