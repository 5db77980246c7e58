// Zeros that cost nothing until they are touched, for tables that can be as large as a server's cache
// or as many as a driver has sites.
#pragma once

#include <sys/mman.h>
#include <cstddef>
#include <new>

namespace pages {

template <typename T>
class ZeroPages {
  public:
    // Throws std::bad_alloc.
    explicit ZeroPages(std::size_t count)
        : bytes_(count * sizeof(T)),
          memory_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
        if (memory_ == MAP_FAILED) throw std::bad_alloc();
    }
    ~ZeroPages() { munmap(memory_, bytes_); }
    ZeroPages(const ZeroPages&) = delete;
    ZeroPages& operator=(const ZeroPages&) = delete;

    T* data() const { return static_cast<T*>(memory_); }

  private:
    std::size_t bytes_;
    void* memory_;
};

}  // namespace pages
