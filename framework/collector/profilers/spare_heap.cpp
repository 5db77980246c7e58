#include "framework/collector/profilers/spare_heap.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define ASSAY_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ASSAY_SANITIZED
#endif

#ifdef ASSAY_SANITIZED

void assay::collector::use_spare_heap() {}

#else

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

// What is replaced here: the C library's, or those of a library that the user has preloaded, whose
// operator new and delete rely on its own.
struct Replaced {
    decltype(&::malloc) malloc;
    decltype(&::calloc) calloc;
    decltype(&::realloc) realloc;
    decltype(&::memalign) memalign;
    decltype(&::free) free;
    decltype(&::malloc_usable_size) usable_size;
};

template <typename Function>
void find_next(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// dlsym(3) allocates nothing for a function that there is.
const Replaced& replaced() {
    static const Replaced found = [] {
        Replaced next{};
        find_next(next.malloc, "malloc");
        find_next(next.calloc, "calloc");
        find_next(next.realloc, "realloc");
        find_next(next.memalign, "memalign");
        find_next(next.free, "free");
        find_next(next.usable_size, "malloc_usable_size");
        return next;
    }();
    return found;
}

// Blocks of powers of two, with a list of the free ones of each size, in address space that is
// reserved at once. In front of what the caller gets stand the power and the size; the size as
// glibc notes it for blocks from mmap(2), so that its malloc_usable_size(3) is right for these too.
struct Header {
    std::uint64_t power;
    std::uint64_t size_and_flag;
};
static_assert(sizeof(Header) == alignof(std::max_align_t));

constexpr std::uint64_t kMapped = 2;  // glibc, malloc/malloc.c: IS_MMAPPED
constexpr unsigned kSmallest = 5, kPowers = 48;
constexpr std::uint64_t kNotReused = kPowers;  // in place of the power
constexpr std::size_t kMostReserved = std::size_t{1} << 40, kLeastReserved = std::size_t{1} << 28;

std::atomic<char*> first{nullptr};  // of the reserved space; null: not in use
std::atomic<char*> end{nullptr};

struct FreeBlock {
    FreeBlock* next;
};

class SpareHeap {
  public:
    void reserve() {
        for (std::size_t bytes = kMostReserved; bytes >= kLeastReserved; bytes /= 2) {
            void* const space = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (space == MAP_FAILED) continue;
            next_ = static_cast<char*>(space);
            end = next_ + bytes;
            first = next_;
            return;
        }
    }

    void* allocate(std::size_t bytes, std::size_t alignment) {
        const bool aligned = alignment > sizeof(Header);
        const std::size_t needed = bytes + sizeof(Header) + (aligned ? alignment : 0);
        if (needed < bytes || needed > kMostReserved) return nullptr;
        const auto power = std::max(kSmallest, static_cast<unsigned>(std::bit_width(needed - 1)));
        char* const block = take(power);
        if (!block) return nullptr;
        auto at = reinterpret_cast<std::uintptr_t>(block + sizeof(Header));
        if (aligned) at = (at + alignment - 1) & ~(alignment - 1);
        const std::size_t usable =
            (std::size_t{1} << power) - (at - reinterpret_cast<std::uintptr_t>(block));
        char* const memory = block + (at - reinterpret_cast<std::uintptr_t>(block));
        const Header header{aligned ? kNotReused : power,
                            (usable / sizeof(Header) + 1) * sizeof(Header) | kMapped};
        std::memcpy(memory - sizeof header, &header, sizeof header);
        return memory;
    }

    // At least what was asked for.
    static std::size_t size(const void* memory) {
        Header header;
        std::memcpy(&header, static_cast<const char*>(memory) - sizeof header, sizeof header);
        return header.size_and_flag - kMapped - sizeof header;
    }

    void free(void* memory) {
        char* const block = static_cast<char*>(memory) - sizeof(Header);
        Header header;
        std::memcpy(&header, block, sizeof header);
        if (header.power < kSmallest || header.power >= kPowers) return;
        const Lock lock(busy_);
        auto* const unused = reinterpret_cast<FreeBlock*>(block);
        unused->next = free_[header.power];
        free_[header.power] = unused;
    }

  private:
    // The profiler that crashes next must not leave this locked: what is done meanwhile is too
    // little to crash.
    class Lock {
      public:
        explicit Lock(std::atomic_flag& flag) : flag_(flag) {
            while (flag_.test_and_set(std::memory_order_acquire)) usleep(0);
        }
        ~Lock() { flag_.clear(std::memory_order_release); }
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;

      private:
        std::atomic_flag& flag_;
    };

    char* take(unsigned power) {
        const Lock lock(busy_);
        if (FreeBlock* const unused = free_[power]) {
            free_[power] = unused->next;
            return reinterpret_cast<char*>(unused);
        }
        const std::size_t bytes = std::size_t{1} << power;
        if (static_cast<std::size_t>(end - next_) < bytes) return nullptr;
        char* const block = next_;
        next_ += bytes;
        return block;
    }

    char* next_ = nullptr;
    std::array<FreeBlock*, kPowers> free_{};
    std::atomic_flag busy_;
};

constinit SpareHeap heap;

bool in_use() {
    return first.load(std::memory_order_relaxed) != nullptr;
}

bool is_spare(const void* memory) {
    return in_use() && memory >= first && memory < end;
}

std::size_t usable_size(void* block) {
    return is_spare(block) ? SpareHeap::size(block) : replaced().usable_size(block);
}

void* allocate(std::size_t bytes, std::size_t alignment) {
    void* const memory = heap.allocate(bytes, alignment);
    if (!memory) errno = ENOMEM;
    return memory;
}

}  // namespace

void assay::collector::use_spare_heap() {
    if (!in_use()) heap.reserve();
}

extern "C" {

void* malloc(std::size_t bytes) {
    return in_use() ? allocate(bytes, 1) : replaced().malloc(bytes);
}

void free(void* block) {
    if (is_spare(block))
        heap.free(block);
    else if (!in_use())
        replaced().free(block);
}

void* calloc(std::size_t count, std::size_t bytes) {
    if (!in_use()) return replaced().calloc(count, bytes);
    std::size_t all = 0;
    if (__builtin_mul_overflow(count, bytes, &all)) all = SIZE_MAX;
    void* const block = allocate(all, 1);
    if (block) std::memset(block, 0, all);
    return block;
}

void* realloc(void* block, std::size_t bytes) {
    if (!in_use()) return replaced().realloc(block, bytes);
    if (block && bytes == 0) {
        free(block);
        return nullptr;
    }
    void* const moved = allocate(bytes, 1);
    if (!block || !moved) return moved;
    std::memcpy(moved, block, std::min(bytes, usable_size(block)));
    free(block);
    return moved;
}

void* memalign(std::size_t alignment, std::size_t bytes) {
    return in_use() ? allocate(bytes, alignment) : replaced().memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) {
    if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
    void* const memory = memalign(alignment, bytes);
    if (!memory) return ENOMEM;
    *block = memory;
    return 0;
}

void* valloc(std::size_t bytes) {
    return memalign(static_cast<std::size_t>(getpagesize()), bytes);
}

void* pvalloc(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(getpagesize());
    return memalign(page, (bytes + page - 1) / page * page);
}
}

#endif
