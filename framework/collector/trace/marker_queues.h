// What the program has said with assay/client.h, until the buffer arrives among whose records it
// was said.
#pragma once

#include "assay/trace_types.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::collector {

class MarkerQueues {
  public:
    // `text` is that of the marker's string arguments, a zero byte behind each: the program's,
    // which become printable. The slot must be one that there is.
    void add(const trace::MarkerEvent& event, std::string_view text);

    // The thread of the next marker of a slot up to that buffer, if it is another one.
    std::optional<std::uint32_t> earlier_thread(std::uint32_t slot, std::uint32_t thread,
                                                std::uint32_t buffer) const;
    // Removes the markers of a slot and a thread up to that buffer, which has `count` records. They
    // are valid until the next call.
    std::span<const trace_marker_t> take(std::uint32_t slot, std::uint32_t thread,
                                         std::uint32_t buffer, std::uint64_t count);

  private:
    struct Marker {
        trace::MarkerEvent event;
        std::string name, owner;
    };

    const Marker* next(std::uint32_t slot, std::uint32_t buffer) const;

    std::vector<std::deque<Marker>> slots_;
    std::deque<Marker> taken_;  // what shown_ points to
    std::vector<trace_marker_t> shown_;
};

}  // namespace assay::collector
