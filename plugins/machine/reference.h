// The program's references as a machine receives them.
#pragma once

#include "plugins/machine/columns.h"

#include <cstdint>

namespace machine {

// The highest line number: line numbers have 56 bits.
inline constexpr std::uint64_t kMostLine = (std::uint64_t{1} << 56) - 1;

// Operations on a line of data that are not references.
enum class LineOperation : std::uint8_t {
    kNone,       // a reference
    kPrefetch,   // brings the line into the caches from Reference::level on
    kFlush,      // removes the line from all caches
    kWriteBack,  // writes the line back and keeps it clean
};

struct Reference {
    Kind kind = Kind::kRead;  // the kind that its misses count as
    bool writes = false;      // kWrite, or a read that also writes
    std::uint32_t bytes = 1;  // not 0; more than a line's count as a line's
    std::uint64_t address = 0;
    std::uint64_t pc = 0;
    // The number of instructions that its core has executed, including this one. For
    // Machine::tells_late().
    std::uint64_t executed = 0;
    LineOperation operation = LineOperation::kNone;  // on the line of the address
    std::uint8_t level = 1;                          // for kPrefetch
};

}  // namespace machine
