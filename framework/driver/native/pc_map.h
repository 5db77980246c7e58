// A hash table from code addresses to small values: open addressing in one array, nothing is
// removed but everything.
#pragma once

#include <cstdint>
#include <vector>

namespace assay::native {

template <typename Value>
class PcMap {
  public:
    // Valid until the next call.
    const Value* find(std::uint64_t pc) const {
        const Entry& entry = entries_[slot_of(pc)];
        return entry.pc == pc ? &entry.value : nullptr;
    }
    void set(std::uint64_t pc, Value value) {
        if ((used_ + 1) * 2 > entries_.size()) grow();
        Entry& entry = entries_[slot_of(pc)];
        if (entry.pc == kFree) ++used_;
        entry = {pc, value};
    }
    void clear() {
        entries_.assign(kFewest, Entry{});
        used_ = 0;
    }

  private:
    static constexpr std::uint64_t kFree = UINT64_MAX;  // no instruction begins there
    static constexpr std::size_t kFewest = 4096;
    struct Entry {
        std::uint64_t pc = kFree;
        Value value{};
    };

    std::size_t slot_of(std::uint64_t pc) const {
        const std::size_t mask = entries_.size() - 1;
        std::size_t slot = pc * 0x9e3779b97f4a7c15ULL >> 32 & mask;  // Fibonacci hashing
        while (entries_[slot].pc != kFree && entries_[slot].pc != pc) slot = (slot + 1) & mask;
        return slot;
    }
    void grow() {
        std::vector<Entry> old(entries_.size() * 2);
        old.swap(entries_);
        for (const Entry& entry : old)
            if (entry.pc != kFree) entries_[slot_of(entry.pc)] = entry;
    }

    std::vector<Entry> entries_{kFewest};
    std::size_t used_ = 0;
};

}  // namespace assay::native
