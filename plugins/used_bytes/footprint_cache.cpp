#include "plugins/used_bytes/footprint_cache.h"

#include <sys/mman.h>
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
      pieces_(geometry.line / piece_),
      set_mask_(geometry.sets() - 1),
      words_of_set_(ways_ * (2 + pieces_)),
      sets_(sets() * words_of_set_ * sizeof(std::uint64_t)) {}

}  // namespace used_bytes
