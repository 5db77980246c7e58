// Decodes with Zydis, once for each instruction form: the answer is remembered under the bytes
// up to the SIB byte, since nothing behind them changes it. A program of 200,000 instructions
// has some 5,000 forms, and looking one up costs a twentieth of decoding it.
#pragma once

#include "framework/x86/instruction.h"

#include <cstddef>
#include <span>

namespace assay::native {

// The length of the instruction by which programs speak to the driver (assay/client.h).
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
