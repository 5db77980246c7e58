// The level-1 caches of a thread, where a specification wants only what misses them
// (trace_capture_misses): the same as in the native driver, which simulates them in the program.
#pragma once

#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::replay {

// Which references and fetches pass the filters of a specification (trace_capture_references and
// those behind it): the same as in the native driver, whose translated code does it.

// Of data, and of code among it.
class DataFilter {
  public:
    explicit DataFilter(const trace::Spec& spec)
        : shift_(static_cast<unsigned>(std::countr_zero(std::max(spec.data.line_bytes, 1U)))),
          line_bytes_(spec.data.line_bytes),
          sets_(spec.data.sets),
          first_writes_(spec.data.first_writes()),
          lines_(spec.data.sets, kNoLine) {}

    bool passes(std::uint64_t address, std::uint32_t bytes, bool write) {
        if (sets_ == 0) return true;
        const std::uint64_t first = address >> shift_;
        const std::uint64_t last = (address + std::min(bytes, line_bytes_) - 1) >> shift_;
        const bool one = use(first, write);
        return last == first ? one : use(last, write) || one;
    }
    void forget() { std::fill(lines_.begin(), lines_.end(), kNoLine); }

  private:
    // No line has so high a number: addresses have 48 bits, or 57.
    static constexpr std::uint64_t kNoLine = UINT64_MAX;
    static constexpr std::uint64_t kWritten = std::uint64_t{1} << 63;

    bool use(std::uint64_t line, bool write) {
        std::uint64_t& recent = lines_[line & (sets_ - 1)];
        const std::uint64_t with_write = first_writes_ ? line | kWritten : line;
        if (recent == with_write || (recent == line && !(write && first_writes_))) return false;
        recent = write ? with_write : line;
        return true;
    }

    unsigned shift_;
    std::uint32_t line_bytes_, sets_;
    bool first_writes_;
    std::vector<std::uint64_t> lines_;  // the most recent one of each set
};

class FetchFilter {
  public:
    explicit FetchFilter(const trace::Spec& spec)
        : passes_all_(spec.fetch.sets == 0),
          shift_(static_cast<unsigned>(std::countr_zero(std::max(spec.fetch.line_bytes, 1U)))),
          mask_(std::max(spec.fetch.sets, 1U) - 1),
          lines_(mask_ + std::size_t{1}, UINT64_MAX) {}

    // Of the lines `first` to `last`, counted from the one of `address`.
    bool passes(std::uint64_t address, unsigned first, unsigned last) {
        if (passes_all_) return true;
        bool passes = false;
        const std::uint64_t own = address >> shift_;
        for (std::uint64_t line = own + first; line <= own + last; ++line) {
            std::uint64_t& recent = lines_[line & mask_];
            passes = passes || recent != line;
            recent = line;
        }
        return passes;
    }
    void forget() { std::fill(lines_.begin(), lines_.end(), UINT64_MAX); }

  private:
    bool passes_all_;
    unsigned shift_;
    std::uint64_t mask_;
    std::vector<std::uint64_t> lines_;
};

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
    explicit LruCache(const trace::Filter& shape);

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
