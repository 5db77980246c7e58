// A copy of an array in memory of its own that can only be read, directly before a page that cannot
// even be read; and that nobody can read any more afterwards. For check-plugin: what goes beyond
// the end, writes, or comes back later, faults.
#pragma once

#include <sys/mman.h>
#include <cstring>
#include <new>
#include <span>
#include <vector>

namespace assay::check {

template <typename T>
class GuardedCopy {
  public:
    explicit GuardedCopy(const std::vector<T>& array) : count_(array.size()) {
        constexpr std::size_t kPage = 4096;
        const std::size_t bytes = count_ * sizeof(T);
        bytes_ = (bytes + kPage - 1) / kPage * kPage + kPage;
        void* const memory =
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        memory_ = static_cast<char*>(memory);
        data_ = memory_ + bytes_ - kPage - bytes;
        if (bytes != 0) std::memcpy(data_, array.data(), bytes);
        mprotect(memory_, bytes_ - kPage, PROT_READ);
        mprotect(memory_ + bytes_ - kPage, kPage, PROT_NONE);
    }
    // The address space stays taken, so that nothing else comes there.
    ~GuardedCopy() {
        madvise(memory_, bytes_, MADV_DONTNEED);
        mprotect(memory_, bytes_, PROT_NONE);
    }
    GuardedCopy(const GuardedCopy&) = delete;
    GuardedCopy& operator=(const GuardedCopy&) = delete;

    std::span<const T> span() const { return {reinterpret_cast<const T*>(data_), count_}; }

  private:
    std::size_t count_, bytes_ = 0;
    char *memory_ = nullptr, *data_ = nullptr;
};

}  // namespace assay::check
