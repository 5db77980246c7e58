// The calling contexts in which the threads of a slot have executed something, and how often which
// block: with kCaptureContexts (segment_layout.h). Without <atomic>, which code that may not use
// vector registers cannot include.
#pragma once

#include <cstdint>

namespace assay::trace {

// In which calling context a function is that is called while it is on the stack already.
//
// The first `most` calls of a function on a path have contexts of their own. A further call goes
// back to the innermost context of the function on the path, if no function that was not there yet
// has been called since. Otherwise it goes to a context of the function whose path holds the same
// set of functions, and has a context of its own if there is none. So the functions on the path of
// a context are always those on the stack, and the counts of a function with all that it called are
// exact. Each set has at most `most` contexts of a function and one more on a path: a path does not
// grow with the stack.
//
// Contexts are known by their sets from the first such call of their function on. Most functions
// have none, and take no time for it.
//
// A signal handler is no recursion of what it interrupts: a path is looked at up to the handler.
//
// The driver's tree and the collector's follow this rule. The driver calls it from translated code,
// so it makes no calls.

constexpr std::uint32_t kAllRecursion = UINT32_MAX;  // `most` without a limit

// Of a context.
struct Recursion {
    std::uint32_t within;  // so many calls of its function are on the path, with its own
    // The innermost context on the path, without itself, whose function is not on the path before:
    // one with `within` 1; or the root; or a handler.
    std::uint32_t opener;
    std::uint64_t functions;  // a hash of the set of functions on the path
};

// Finalizer of MurmurHash3 (Austin Appleby, public domain).
[[gnu::always_inline]] inline std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ value >> 33) * 0xff51afd7ed558ccdULL;
    value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return value ^ value >> 33;
}

// Of a context that is the first of its function on the path; of a handler's.
[[gnu::always_inline]] inline Recursion first_call(std::uint32_t opener, std::uint64_t functions,
                                                   std::uint64_t function) {
    return {1, opener, functions + mixed(function + 1)};
}

// Functions whose recursion has come back with other functions on the path. It may seem to have
// others, too.
class RecursiveFunctions {
  public:
    [[gnu::always_inline]] void add(std::uint64_t function) {
        const std::uint64_t bit = mixed(function) % kBits;
        words_[bit / 64] |= std::uint64_t{1} << bit % 64;
    }
    [[gnu::always_inline]] bool contains(std::uint64_t function) const {
        const std::uint64_t bit = mixed(function) % kBits;
        return (words_[bit / 64] >> bit % 64 & 1) != 0;
    }

    [[gnu::always_inline]] void clear() {
        // Atomic, or else the compiler would call memset.
        for (std::uint64_t& word : words_) __atomic_store_n(&word, 0, __ATOMIC_RELAXED);
    }

  private:
    static constexpr std::uint64_t kBits = 4096;
    std::uint64_t words_[kBits / 64];
};

[[gnu::always_inline]] inline std::uint64_t key_by_set(std::uint64_t function,
                                                       const Recursion& recursion) {
    return mixed(recursion.functions) ^ function;
}

struct Call {
    Recursion recursion;    // of a new context
    std::uint32_t context;  // on the path, where the call goes back to; or kNoContext
    // Not 0: a new context is to be known by it, unless another one is. If `within` is more than
    // `most`, the call goes to that one.
    std::uint64_t key_by_set;
};
constexpr std::uint32_t kNoContext = UINT32_MAX;

// Of a call of `function` in `caller`. `Tree` has contexts by number: entry(), caller() (that it is
// called in), ends_path() (true of the root and of handlers) and recursion().
template <typename Tree>
[[gnu::always_inline]] inline Call recursion_of_call(const Tree& tree, std::uint32_t caller,
                                                     std::uint64_t function, std::uint32_t most,
                                                     RecursiveFunctions& recursive) {
    const Recursion above = tree.recursion(caller);
    const std::uint32_t opener_above = above.within == 1 ? caller : above.opener;
    const Recursion first = first_call(opener_above, above.functions, function);
    if (most == kAllRecursion) return {first, kNoContext, 0};
    const bool has_key = recursive.contains(function);
    for (std::uint32_t opener = opener_above; tree.entry(opener) != function;) {
        if (tree.ends_path(opener))
            return {first, kNoContext, most == 1 && has_key ? key_by_set(function, first) : 0};
        opener = tree.recursion(opener).opener;
    }
    std::uint32_t innermost = caller;
    while (tree.entry(innermost) != function) innermost = tree.caller(innermost);
    const Recursion earlier = tree.recursion(innermost);
    const Recursion recursion = {earlier.within + 1, opener_above, above.functions};
    if (earlier.within >= most && earlier.functions == above.functions)
        return {recursion, innermost, 0};
    if (earlier.within >= most) recursive.add(function);
    const bool is_known = earlier.within >= most || (recursion.within == most && has_key);
    return {recursion, kNoContext, is_known ? key_by_set(function, recursion) : 0};
}

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
