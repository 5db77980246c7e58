// The level-1 caches of a thread, where a specification wants only what misses them
// (trace_capture_misses): the same as in the native driver, which simulates them in the program.
#pragma once

#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <span>
#include <vector>

namespace assay::replay {

// What a record is to them, by its site.
struct ReferenceKind {
    enum Of : std::uint8_t { kNeither, kData, kFetch };
    std::uint16_t bytes;
    Of of;
};
std::vector<ReferenceKind> reference_kinds(std::span<const trace_site_t> sites);

// A cache that replaces the line of a set that was used least recently.
class LruCache {
  public:
    // Of no ways: everything misses it.
    LruCache(const trace::LineFilter& shape, std::uint32_t ways);

    bool is_there() const { return ways_ != 0; }
    // Uses all lines of a reference, of which a larger one than a line is its first bytes. True if
    // one was missing.
    bool misses(std::uint64_t address, std::uint32_t bytes);
    void clear();

  private:
    bool use(std::uint64_t line);

    std::uint32_t ways_, line_shift_, line_bytes_, set_mask_;
    std::vector<std::uint64_t> lines_;  // of each set, the most recent one first
};

class MissFilter {
  public:
    // `kinds` must live longer.
    MissFilter(const trace::Spec& spec, const std::vector<ReferenceKind>& kinds);

    // Copies what passes, for which there is room, or moves it to the front. Returns its end.
    trace_record_t* copy(std::span<const trace_record_t> records, trace_record_t* to);
    // As when a thread begins.
    void clear();

  private:
    const std::vector<ReferenceKind>& kinds_;
    LruCache data_, fetch_;
};

}  // namespace assay::replay
