// The calling contexts in which the threads of a slot have executed something, and how often which
// block: with kCaptureContexts (segment_layout.h). Without <atomic>, which code that may not use
// vector registers cannot include.
#pragma once

#include "framework/trace/recursion.h"

#include <cstdint>

namespace assay::trace {

// The nodes of one slot: this, and behind it `count` of them, the root first, all of the same size.
struct ContextNodes {
    std::uint32_t count;  // published: read and written atomically
    std::uint32_t reserved[15];
};

// A function that was called, in the context of its caller; or what it has jumped to since, in code
// that lies elsewhere. A node counts the blocks that begin in its own range of addresses only, so
// that it can be small. Blocks are counted in its words, from the word whose number
// kContextWordsOffset has for the block: counters() of them. With 0 the block is counted in
// no context. Blocks that begin at the same address and are equal have the same word. What else the
// words hold is the driver's business.
struct ContextNode {
    enum Kind : std::uint16_t {
        kRoot,     // outside of all calls
        kCall,     // of the function at `entry`, at `site`
        kHandler,  // of a signal, which has interrupted the instruction at `site`
        kJump,     // `frame` has gone on here
    };
    std::uint64_t entry;   // pc
    std::uint64_t site;    // pc; 0 of kRoot and kJump
    std::uint64_t range;   // begins here, and has kCodeRange bytes
    std::uint32_t number;  // of this node; that of the root is 0
    std::uint32_t parent;  // the node that called; itself for the root
    std::uint32_t frame;   // itself but for kJump: the node of the call that is not over yet
    Kind kind;
    std::uint16_t beyond;  // not 0: stands for contexts for which there was no room
    Recursion recursion;   // of `frame`'s function, but for kJump
};
inline constexpr std::uint64_t kCodeRange = 256;  // a power of two
inline constexpr std::uint32_t kFirstContextWord = sizeof(ContextNode) / sizeof(std::uint64_t);
inline constexpr std::uint64_t kContextsBytes = std::uint64_t{4} << 30;  // of a slot

}  // namespace assay::trace
