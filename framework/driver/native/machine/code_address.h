// Addresses in the code cache in half the room: there are many, and it is smaller than 4 GiB.
#pragma once

#include <cstdint>

namespace assay::native {

class CodeAddress {
  public:
    // Of the process's code cache, before the first address. Nothing is kept that lies at it.
    static void set_base(std::uint64_t base) { base_ = base; }

    CodeAddress() = default;
    CodeAddress(std::uint64_t address)
        : offset_(address == 0 ? 0 : static_cast<std::uint32_t>(address - base_)) {}
    operator std::uint64_t() const { return offset_ == 0 ? 0 : base_ + offset_; }

  private:
    static inline std::uint64_t base_ = 0;
    std::uint32_t offset_ = 0;  // 0: no address
};

}  // namespace assay::native
