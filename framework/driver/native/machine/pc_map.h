// A hash table from code addresses to small values, with open addressing. It has no removal of
// single entries.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace assay::native {

// An address in the code cache in 4 bytes instead of 8: there are many, and the cache is smaller
// than 4 GiB.

class CodeAddress {
  public:
    // `base`: an address below all code in the process's code cache.
    static void set_base(std::uint64_t base) { base_ = base; }

    CodeAddress() = default;
    CodeAddress(std::uint64_t address)
        : offset_(address == 0 ? 0 : static_cast<std::uint32_t>(address - base_)) {}
    operator std::uint64_t() const { return offset_ == 0 ? 0 : base_ + offset_; }

  private:
    static inline std::uint64_t base_ = 0;
    std::uint32_t offset_ = 0;  // 0: no address
};

template <typename Value>
class PcMap {
  public:
    explicit PcMap(std::size_t slots = kFewest)
        : pcs_(slots, kFree), values_(std::make_unique<Value[]>(slots)) {}

    // The result is valid until the next call.
    const Value* find(std::uint64_t pc) const {
        const std::size_t slot = slot_of(pc);
        return pcs_[slot] == pc && pc != kFree ? &values_[slot] : nullptr;
    }
    void set(std::uint64_t pc, Value value) {
        if (pc == kFree) return;
        if ((used_ + 1) * 4 > pcs_.size() * 3) grow();
        const std::size_t slot = slot_of(pc);
        if (pcs_[slot] == kFree) ++used_;
        pcs_[slot] = pc;
        values_[slot] = value;
    }
    void clear() { *this = PcMap(); }

  private:
    // No code lies at this address, but jumps may go there.
    static constexpr std::uint64_t kFree = UINT64_MAX;
    static constexpr std::size_t kFewest = 4096;

    std::size_t slot_of(std::uint64_t pc) const {
        const std::size_t mask = pcs_.size() - 1;
        std::size_t slot = pc * 0x9e3779b97f4a7c15ULL >> 32 & mask;  // Fibonacci hashing
        while (pcs_[slot] != kFree && pcs_[slot] != pc) slot = (slot + 1) & mask;
        return slot;
    }
    void grow() {
        PcMap larger(pcs_.size() * 2);
        for (std::size_t slot = 0; slot < pcs_.size(); ++slot)
            if (pcs_[slot] != kFree) larger.set(pcs_[slot], values_[slot]);
        *this = std::move(larger);
    }

    // Two arrays, because in an array of pairs most value types would need padding.
    std::vector<std::uint64_t> pcs_;
    std::unique_ptr<Value[]> values_;
    std::size_t used_ = 0;
};

}  // namespace assay::native
