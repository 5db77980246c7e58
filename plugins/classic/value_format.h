// How the values of an instruction want to be read.
#pragma once

#include "assay/vprofiler.h"

#include <cstdint>
#include <string>

namespace classic {

enum class Operand { kLoaded, kStored, kResult, kFirstSource, kSecondSource };
enum class Reading { kInteger, kSingle, kDouble };

// By the opcode and its prefixes: SSE, AVX and x87.
Reading reading_of(const trace_instr_t& instr, Operand operand);

// Integers of up to five digits in decimal, what is larger, as addresses are, in hexadecimal.
std::string format(Reading reading, std::uint64_t value);

}  // namespace classic
