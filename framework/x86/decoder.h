// Decodes with Zydis, once for each instruction form. The result is remembered under the bytes up
// to the SIB byte, because later bytes do not change it. A program of 200,000 instructions has some
// 5,000 forms, and a look-up takes a twentieth of the time of decoding.
#pragma once

#include "framework/x86/instruction.h"

#include <cstddef>
#include <span>

namespace assay::native {

// The length of the instruction with which programs address the driver (assay/client.h).
inline constexpr unsigned kMarkerBytes = 8;

class Decoder {
  public:
    Decoder();
    ~Decoder();
    Decoder(const Decoder&) = delete;
    Decoder& operator=(const Decoder&) = delete;

    // Decodes the instruction at `code` (at least 1 byte; fewer than 15 only if the program's
    // memory ends there). Returns false if no valid instruction starts there.
    bool decode(std::span<const std::uint8_t> code, std::uint64_t pc, Instruction& out);

  private:
    struct Impl;
    Impl* impl_;
};

}  // namespace assay::native
