#include "plugins/used_bytes/footprint_cache.h"

#include <sys/mman.h>
#include <algorithm>
#include <new>

namespace used_bytes {

ZeroPages::ZeroPages(std::size_t bytes) : bytes_(bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    words_ = static_cast<std::uint64_t*>(memory);
}

ZeroPages::~ZeroPages() {
    munmap(words_, bytes_);
}

FootprintCache::FootprintCache(const cache::Geometry& geometry)
    : line_shift_(static_cast<std::uint32_t>(std::countr_zero(geometry.line))),
      piece_(std::min(geometry.line, 64U)),
      ways_(geometry.ways),
      words_(geometry.line / piece_),
      word_mask_(words_ - 1),
      set_mask_(geometry.sets() - 1),
      recent_mask_(std::min(geometry.sets(), kMostRecent) - 1),
      recent_(recent_mask_ + 1, Recent{UINT64_MAX, nullptr}),
      tags_(places() * sizeof(std::uint64_t)),
      times_(places() * sizeof(std::uint64_t)),
      masks_(places() * words_ * sizeof(std::uint64_t)) {}

}  // namespace used_bytes
