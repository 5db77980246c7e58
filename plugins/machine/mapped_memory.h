// The sizes of pages as each thread of the program knows them.
//
// What a thread does to memory holds for itself at once. For the others, pages that become larger
// do so as soon as that is heard: nobody refers to what is mapped before. Pages that become
// smaller, since memory is given back, do so once the thread has seen it: its references from
// before that may arrive later.
#pragma once

#include "plugins/machine/page_sizes.h"

#include <cstdint>
#include <deque>
#include <map>

namespace machine {

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
