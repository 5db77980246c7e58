// What every profiler here does with the C interface.
#pragma once

#include "assay/vprofiler.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plugins {

// For what the interface allocates with malloc.
struct Free {
    void operator()(void* memory) const { std::free(memory); }
};
using TraceSpec = std::unique_ptr<trace_vlist_table_t, Free>;
using ValueList = std::unique_ptr<trace_vlist_t, Free>;

// vp_events and its like, for a constant array.
template <const auto& kRows>
const auto* table(std::uint32_t* count) {
    *count = static_cast<std::uint32_t>(kRows.size());
    return kRows.data();
}

// What trace_parser_records and its like return.
template <typename Row>
std::span<const Row> rows(const Row* (*get)(const trace_parser_t*, std::size_t*),
                          const trace_parser_t* parser) {
    std::size_t count = 0;
    const Row* first = get(parser, &count);
    return {first, count};
}

// The end of the thread of this buffer; nullptr if more follows of it.
inline const trace_marker_t* thread_end(const trace_parser_t* parser) {
    const auto markers = rows(trace_parser_markers, parser);
    const bool ends = !markers.empty() && markers.back().operation == TRACE_MARKER_THREAD_END;
    return ends ? &markers.back() : nullptr;
}

// Whether bursts are profiled, as an estimate of the whole run: --sample.
inline bool samples_bursts(const vp_host_t* host) {
    return host->size >= sizeof(vp_host_t) && host->samples != 0;
}

// Tells the user why the run ends. What a callback returns then.
inline int fail(const vp_host_t* host, const std::string& why) {
    host->error(host, why.c_str());
    return -1;
}

// For a setting that is unusable because of `why`, which gets the setting in front. False.
inline bool unusable(std::string_view name, std::string_view value, std::string& why) {
    why = "--" + std::string(name) + "=" + std::string(value) + ": " + why;
    return false;
}

// vp_options for settings that take one option over at a time: `apply` is false, with the reason in
// `why`, if its value is unusable.
template <typename Settings>
int receive(const vp_host_t* host, std::span<const vp_setting_t> given, Settings& settings,
            bool (*apply)(Settings&, std::string_view name, std::string_view value,
                          std::string& why)) {
    std::string why;
    for (const vp_setting_t& each : given)
        if (!apply(settings, each.name, each.value, why)) return fail(host, why);
    return 0;
}

// What vp_prof_process and vp_finish return; it stays valid until the next call.
class Samples {
  public:
    // Nothing if the weight is zero.
    void add(const vsample_t& sample) {
        if (sample.weight != 0) samples_.push_back(sample);
    }
    void add(std::uint64_t pc, std::uint32_t event, std::uint64_t weight, std::uint64_t value = 0) {
        add({.pc = pc,
             .context0 = 0,
             .context1 = 0,
             .value = value,
             .event = event,
             .reserved = 0,
             .weight = weight});
    }
    void clear() { samples_.clear(); }
    std::size_t size() const { return samples_.size(); }
    int give(const vsample_t** samples) const {
        *samples = samples_.data();
        return static_cast<int>(samples_.size());
    }

  private:
    std::vector<vsample_t> samples_;
};

}  // namespace plugins
