// A copy of an array in memory of its own that can only be read, directly before a page that cannot
// even be read; and that nobody can read any more afterwards. For check-plugin: what goes beyond
// the end, writes, or comes back later, faults. And room for an array that is to be written,
// between such pages.
#pragma once

#include <sys/mman.h>
#include <algorithm>
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

template <typename T>
class GuardedRoom {
  public:
    explicit GuardedRoom(std::size_t count) {
        constexpr std::size_t kPage = 4096;
        const std::size_t bytes = count * sizeof(T);
        const std::size_t room = (bytes + kPage - 1) / kPage * kPage;
        bytes_ = room + 2 * kPage;
        void* const memory = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        memory_ = static_cast<char*>(memory);
        if (room != 0) mprotect(memory_ + kPage, room, PROT_READ | PROT_WRITE);
        begin_ = memory_ + kPage;
        data_ = begin_ + room - bytes;
        std::memset(begin_, kUntouched, static_cast<std::size_t>(data_ - begin_));
    }
    ~GuardedRoom() { munmap(memory_, bytes_); }
    GuardedRoom(const GuardedRoom&) = delete;
    GuardedRoom& operator=(const GuardedRoom&) = delete;

    // All zeros at first.
    T* data() const { return reinterpret_cast<T*>(data_); }
    // False if something was written before it, where its page begins.
    bool untouched_before() const {
        return std::all_of(begin_, data_, [](char c) { return c == kUntouched; });
    }

  private:
    static constexpr char kUntouched = 0x5a;
    std::size_t bytes_ = 0;
    char *memory_ = nullptr, *begin_ = nullptr, *data_ = nullptr;
};

}  // namespace assay::check
