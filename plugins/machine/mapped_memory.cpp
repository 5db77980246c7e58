#include "plugins/machine/mapped_memory.h"

namespace machine {

void MappedMemory::create(std::uint32_t creator, std::uint32_t thread) {
    views_.insert_or_assign(thread, View(view(creator)));
}

void MappedMemory::change(std::uint32_t thread, std::uint64_t start, std::uint64_t bytes,
                          Memory memory) {
    const Change change{++changes_, start, bytes, memory};
    const bool grows = newest_.is_large(memory);
    newest_.set(start, bytes, memory);
    see(thread, changes_);
    for (auto& [number, view] : views_)
        if (number == thread)
            view.sizes.set(start, bytes, memory);
        else
            hear(view, change, grows);
}

// What is of the same memory and came before comes first.
void MappedMemory::hear(View& view, const Change& change, bool grows) {
    if (!grows) return view.unseen.push_back(change);
    std::erase_if(view.unseen, [&](const Change& before) {
        const bool same = before.start < change.start + change.bytes &&
                          change.start < before.start + before.bytes;
        if (same) view.sizes.set(before.start, before.bytes, before.memory);
        return same;
    });
    view.sizes.set(change.start, change.bytes, change.memory);
}

void MappedMemory::see(std::uint32_t thread, std::uint64_t changes) {
    View& known = view(thread);
    for (; !known.unseen.empty() && known.unseen.front().number <= changes;
         known.unseen.pop_front()) {
        const Change& change = known.unseen.front();
        known.sizes.set(change.start, change.bytes, change.memory);
    }
}

}  // namespace machine
