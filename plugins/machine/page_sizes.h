// The sizes of pages by address, for machines whose pages come from the program's mappings.
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

// The pages in one translation buffer. Page numbers have up to 56 bits.
class PageBuffer {
  public:
    // Throws std::bad_alloc.
    explicit PageBuffer(const Tlb& tlb);

    // References the page. Returns true if it is there.
    bool touch(std::uint64_t page) {
        Entry& found = entries_[found_[slot(page)]];
        if (found.page != page) [[unlikely]]
            return search(page);
        found.used = ++clock_;
        return true;
    }
    // Inserts a page that is not there.
    void insert(std::uint64_t page);

  private:
    static constexpr std::size_t kSlots = 1024;

    struct Entry {
        std::uint64_t page = ~std::uint64_t{0};
        std::uint64_t used = 0;  // time of the last use; 0: free
    };

    static std::size_t slot(std::uint64_t page) { return (page ^ page >> 10) % kSlots; }
    bool search(std::uint64_t page);

    // For LRU: the time of each entry's last use, because keeping an order of some hundred entries
    // takes long. found_ has the entry where a page was found last. Other policies use other_.
    std::optional<CacheArray> other_;
    std::uint64_t sets_;
    std::uint32_t ways_;
    std::uint64_t clock_ = 0;
    std::vector<Entry> entries_;  // set by set; with another policy, one entry that is always free
    std::array<std::uint32_t, kSlots> found_{};
};

// The kind of the program's memory, from trace_capture_mappings.
enum class Memory {
    kOther,    // pages of 4K
    kPrivate,  // may have transparent huge pages
    kAdvised,  // private memory for which the program asks for huge pages
    k2M,       // hugetlb pages
    k1G,
};

class PageSizes {
  public:
    // The sizes of pages. Other functions return indexes of this array.
    static constexpr std::uint64_t kSizes[] = {std::uint64_t{4} << 10, std::uint64_t{2} << 20,
                                               std::uint64_t{1} << 30};

    explicit PageSizes(Transparent transparent) : transparent_(transparent) {}

    // Changes the kind of the memory from `start` on. Must not divide a large page.
    void set(std::uint64_t start, std::uint64_t bytes, Memory memory);
    bool is_large(Memory memory) const { return size_of(memory) != 0; }
    // The index in kSizes of the page at the address.
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
    std::map<std::uint64_t, Large> large_;  // by start; all other pages have 4K
    Span span_{0, 0, 0};                    // span of the last address
};

// The sizes of pages in the view of each thread of the program.
//
// A thread's own changes apply to it at once. For other threads, pages that become larger do so
// when the change arrives, because no thread references memory before it is mapped. Pages that
// become smaller, because memory is freed, do so when the thread has seen the change: its earlier
// references may arrive later.
class MappedMemory {
  public:
    explicit MappedMemory(Transparent transparent) : newest_(transparent) {}

    // The thread's view. Valid until end().
    PageSizes& of(std::uint32_t thread) { return view(thread).sizes; }
    // A thread creates another one.
    void create(std::uint32_t creator, std::uint32_t thread);
    void end(std::uint32_t thread) { views_.erase(thread); }
    // A thread has changed the kind of memory.
    void change(std::uint32_t thread, std::uint64_t start, std::uint64_t bytes, Memory memory);
    // The thread has seen this many changes, counted from the start.
    void see(std::uint32_t thread, std::uint64_t changes);

  private:
    struct Change {
        std::uint64_t number, start, bytes;
        Memory memory;
    };
    struct View {
        PageSizes sizes;
        std::deque<Change> unseen;  // changes that make pages smaller
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
