// Maps from line numbers to data, in pages of 64 lines, because programs touch neighbouring lines.
// Also zeroed memory for large tables.
#pragma once

#include <sys/mman.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace pages {

inline constexpr std::uint64_t kLinesPerPage = 64;

// A value for each page that was accessed, initially T{}.
template <typename T>
class PageMap {
  public:
    PageMap() : slots_(64) {}

    // Valid until the next call.
    T& operator[](std::uint64_t page) {
        std::size_t slot = slot_of(page);
        if (slots_[slot].key == 0) {
            if (2 * (used_ + 1) > slots_.size()) {
                grow();
                slot = slot_of(page);
            }
            slots_[slot].key = page + 1;
            ++used_;
        }
        return slots_[slot].value;
    }

    void prefetch(std::uint64_t page) const { __builtin_prefetch(&slots_[first_slot(page)]); }

    // nullptr if operator[] never accessed the page.
    const T* find(std::uint64_t page) const {
        const Slot& slot = slots_[slot_of(page)];
        return slot.key == 0 ? nullptr : &slot.value;
    }

    template <typename Call>
    void for_each(const Call& call) const {
        for (const Slot& slot : slots_)
            if (slot.key != 0) call(slot.key - 1, slot.value);
    }

  private:
    struct Slot {
        std::uint64_t key = 0;  // page + 1
        T value{};
    };

    // Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, section 6.4.
    std::size_t first_slot(std::uint64_t page) const {
        return (page * 0x9E3779B97F4A7C15ULL >> 20) & (slots_.size() - 1);
    }

    std::size_t slot_of(std::uint64_t page) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t slot = first_slot(page);
        while (slots_[slot].key != 0 && slots_[slot].key != page + 1) slot = (slot + 1) & mask;
        return slot;
    }

    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.key != 0) slots_[slot_of(slot.key - 1)] = slot;
    }

    std::vector<Slot> slots_;  // a power of two
    std::size_t used_ = 0;
};

class LineSet {
  public:
    // Returns true if the line is new.
    bool insert(std::uint64_t line) {
        std::uint64_t& page = pages_[line / kLinesPerPage];
        const std::uint64_t bit = std::uint64_t{1} << line % kLinesPerPage;
        const bool is_new = (page & bit) == 0;
        page |= bit;
        return is_new;
    }

  private:
    PageMap<std::uint64_t> pages_;
};

// An entry for each line.
template <typename Entry>
class LineTable {
  public:
    // The number of the line's entry, which never changes.
    std::uint32_t number(std::uint64_t line) {
        std::uint32_t& page = pages_[line / kLinesPerPage];
        if (page == 0) {
            entries_.push_back(std::make_unique<Entry[]>(kLinesPerPage));
            page = static_cast<std::uint32_t>(entries_.size());
        }
        return static_cast<std::uint32_t>((page - 1) * kLinesPerPage + line % kLinesPerPage);
    }
    Entry& operator[](std::uint32_t number) {
        return entries_[number / kLinesPerPage][number % kLinesPerPage];
    }
    void prefetch(std::uint64_t line) const { pages_.prefetch(line / kLinesPerPage); }

    // nullptr if the page of the line has no entries.
    const Entry* find(std::uint64_t line) const {
        const std::uint32_t* const page = pages_.find(line / kLinesPerPage);
        return page ? &entries_[*page - 1][line % kLinesPerPage] : nullptr;
    }
    // Calls `call(line, entry)` in unspecified order.
    template <typename Call>
    void for_each(const Call& call) const {
        pages_.for_each([&](std::uint64_t page, std::uint32_t number) {
            for (std::uint64_t i = 0; i < kLinesPerPage; ++i)
                call(page * kLinesPerPage + i, entries_[number - 1][i]);
        });
    }

  private:
    PageMap<std::uint32_t> pages_;  // number of the page's entries + 1
    std::vector<std::unique_ptr<Entry[]>> entries_;
};

// Zeroed memory that is not allocated until it is touched, for tables that can be very large.
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
