// How large the page of each address is, where a machine takes pages from the program's mappings.
#pragma once

#include "plugins/machine/cache_array.h"
#include "plugins/machine/machine.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace machine {

// The pages that one translation buffer holds.

// Pages are numbers of up to 56 bits.
class PageBuffer {
  public:
    // Throws std::bad_alloc.
    explicit PageBuffer(const Tlb& tlb);

    // Whether the page is there, which becomes a referenced one.
    bool touch(std::uint64_t page) {
        Entry& found = entries_[found_[slot(page)]];
        if (found.page != page) [[unlikely]]
            return search(page);
        found.used = ++clock_;
        return true;
    }
    // Puts a page in that is not there.
    void insert(std::uint64_t page);

  private:
    static constexpr std::size_t kSlots = 1024;

    struct Entry {
        std::uint64_t page = ~std::uint64_t{0};
        std::uint64_t used = 0;  // when it was last; 0: it is free
    };

    static std::size_t slot(std::uint64_t page) { return (page ^ page >> 10) % kSlots; }
    bool search(std::uint64_t page);

    // With LRU, of which an order of some hundred entries takes long to keep: times instead, and
    // where a page was found last. Other policies have an array of lines.
    std::optional<CacheArray> other_;
    std::uint64_t sets_;
    std::uint32_t ways_;
    std::uint64_t clock_ = 0;
    std::vector<Entry> entries_;  // set by set; with another policy one that is always free
    std::array<std::uint32_t, kSlots> found_{};
};

// What the program has of memory, as trace_capture_mappings tells it.
enum class Memory {
    kOther,    // pages of 4K
    kPrivate,  // can have transparent huge pages
    kAdvised,  // the same, and the program asks for them
    k2M,       // hugetlb pages
    k1G,
};

class PageSizes {
  public:
    // Of pages, as indexes.
    static constexpr std::uint64_t kSizes[] = {std::uint64_t{4} << 10, std::uint64_t{2} << 20,
                                               std::uint64_t{1} << 30};

    explicit PageSizes(Transparent transparent) : transparent_(transparent) {}

    // What lies from `start` on is that from now on. No page of what is there is divided.
    void set(std::uint64_t start, std::uint64_t bytes, Memory memory);
    bool is_large(Memory memory) const { return size_of(memory) != 0; }
    // In kSizes.
    std::uint32_t at(std::uint64_t address) {
        if (address - span_.start >= span_.bytes) span_ = span_of(address);
        return span_.size;
    }

  private:
    struct Large {
        std::uint64_t end;
        std::uint32_t size;
    };
    struct Span {
        std::uint64_t start, bytes;
        std::uint32_t size;
    };

    std::uint32_t size_of(Memory memory) const;
    Span span_of(std::uint64_t address) const;

    Transparent transparent_;
    std::map<std::uint64_t, Large> large_;  // by where they start: all other pages have 4K
    Span span_{0, 0, 0};                    // of the last address
};

// The sizes of pages as each thread of the program knows them.
//
// What a thread does to memory holds for itself at once. For the others, pages that become larger
// do so as soon as that is heard: nobody refers to what is mapped before. Pages that become
// smaller, since memory is given back, do so once the thread has seen it: its references from
// before that may arrive later.

class MappedMemory {
  public:
    explicit MappedMemory(Transparent transparent) : newest_(transparent) {}

    // The thread's own. Stays there until end().
    PageSizes& of(std::uint32_t thread) { return view(thread).sizes; }
    // A thread creates another one.
    void create(std::uint32_t creator, std::uint32_t thread);
    void end(std::uint32_t thread) { views_.erase(thread); }
    // A thread has changed what memory is.
    void change(std::uint32_t thread, std::uint64_t start, std::uint64_t bytes, Memory memory);
    // A thread knows so many changes, in their order.
    void see(std::uint32_t thread, std::uint64_t changes);

  private:
    struct Change {
        std::uint64_t number, start, bytes;
        Memory memory;
    };
    struct View {
        PageSizes sizes;
        std::deque<Change> unseen;  // that make pages smaller
    };

    View& view(std::uint32_t thread) {
        return views_.try_emplace(thread, View{newest_, {}}).first->second;
    }
    static void hear(View& view, const Change& change, bool grows);

    PageSizes newest_;  // with all changes
    std::map<std::uint32_t, View> views_;
    std::uint64_t changes_ = 0;
};

}  // namespace machine
