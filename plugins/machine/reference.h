// What the program does, as a machine sees it.
#pragma once

#include "plugins/machine/columns.h"

#include <cstdint>

namespace machine {

// The highest number of a line: they have 56 bits.
inline constexpr std::uint64_t kMostLine = (std::uint64_t{1} << 56) - 1;

// What an instruction does to a line of data beside references.
enum class LineOperation : std::uint8_t {
    kNone,       // it is a reference
    kPrefetch,   // brings it into the caches from Reference::level on
    kFlush,      // takes it out of all caches
    kWriteBack,  // and leaves it there, clean
};

struct Reference {
    Kind kind = Kind::kRead;  // what its misses count as
    bool writes = false;      // kWrite, or a read that writes, too
    std::uint32_t bytes = 1;  // not 0; taken as a line's where it is more
    std::uint64_t address = 0;
    std::uint64_t pc = 0;
    // How many instructions its core has executed, this one among them; for Machine::tells_late().
    std::uint64_t executed = 0;
    LineOperation operation = LineOperation::kNone;  // on the line of the address
    std::uint8_t level = 1;                          // of kPrefetch
};

}  // namespace machine
