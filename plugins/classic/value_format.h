// Formats the values of an instruction by their type.
#pragma once

#include "assay/vprofiler.h"

#include <cstdint>
#include <string>

namespace classic {

enum class Operand { kLoaded, kStored, kResult, kFirstSource, kSecondSource };
enum class Reading { kInteger, kSingle, kDouble };

// Derives the type from the opcode and its prefixes, for SSE, AVX and x87.
Reading reading_of(const trace_instr_t& instr, Operand operand);

// Integers of up to five digits in decimal; larger ones, such as addresses, in hexadecimal.
std::string format(Reading reading, std::uint64_t value);

}  // namespace classic
