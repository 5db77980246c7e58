#include "plugins/cache/site_counts.h"

#include <algorithm>

namespace cache {
namespace {

// Valgrind takes a locked instruction apart into a load and a compare-and-swap, two references;
// only the compare-and-exchange instructions themselves need no load.
// Intel SDM volume 2: LOCK; XCHG with a memory operand locks by itself.
bool is_locked(const trace_instr_t& instr) {
    const bool exchanges = instr.opcode == TRACE_OPCODE(1, 0xb0) ||
                           instr.opcode == TRACE_OPCODE(1, 0xb1) ||
                           instr.opcode == TRACE_OPCODE(1, 0xc7);
    if (exchanges) return false;
    if (instr.opcode == TRACE_OPCODE(0, 0x86) || instr.opcode == TRACE_OPCODE(0, 0x87)) return true;
    const auto* end = instr.bytes + std::min<unsigned>(instr.length, 4);
    for (const uint8_t* byte = instr.bytes; byte != end; ++byte) {
        if (*byte == 0xf0) return true;
        const bool is_segment = *byte == 0x26 || *byte == 0x2e || *byte == 0x36 || *byte == 0x3e ||
                                *byte == 0x64 || *byte == 0x65;
        const bool is_prefix =
            is_segment || *byte == 0x66 || *byte == 0x67 || *byte == 0xf2 || *byte == 0xf3;
        if (!is_prefix) return false;
    }
    return false;
}

}  // namespace

std::uint64_t references_each(const trace_site_t& site, const trace_instr_t& instr) {
    return site.kind == TRACE_SITE_MODIFY && is_locked(instr) ? 2 : 1;
}

}  // namespace cache
