// With kCaptureContexts (segment_layout.h): the calling contexts of the threads of a slot, and how
// often each block was executed in each. This header does not include <atomic>, because translated
// code may not use vector registers.
#pragma once

#include <cstdint>

namespace assay::trace {

// The context of a function that is called again before it has returned.
//
// The first `most` calls of a function on a path have contexts of their own. A further call goes
// back to the innermost context of the function on the path, if no new function has been called
// since. Otherwise it goes to a context of the function whose path holds the same set of functions.
// If there is no such context, the call gets its own. The functions on the path of a context are
// therefore always those on the stack, and the inclusive counts of a function are exact. Each set
// has at most `most` + 1 contexts of a function on a path: a path does not grow with the stack.
//
// A function's contexts are found by their sets only after its first such call. Most functions
// never make one, and need no search.
//
// A signal handler is no recursion of the interrupted function: a search ends at a handler.
//
// A line of an interpreted program is a context beside that of the interpreter, with the same
// caller. It counts as a further function on the path, so the inclusive counts of lines are exact
// as well. A recursive call only goes back to a context within the same innermost line, so that the
// counts of a line without those of the interpreted functions that it calls are also exact. It
// never goes back to the line itself, because the interpreter may have been called for another
// program.
//
// The trees of the driver and of the collector follow this rule. Translated code runs the driver's
// part, so the functions below are inlined and make no calls.

constexpr std::uint32_t kAllRecursion = UINT32_MAX;  // `most` without a limit

// The recursion of a context.
struct Recursion {
    std::uint32_t within;  // the calls of its function on the path, including its own
    // The innermost context above it that is the first of its function on the path (`within` is 1),
    // the root or a handler.
    std::uint32_t opener;
    std::uint64_t functions;  // a hash of the set of functions on the path
};

// Finalizer of MurmurHash3 (Austin Appleby, public domain).
[[gnu::always_inline]] inline std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ value >> 33) * 0xff51afd7ed558ccdULL;
    value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return value ^ value >> 33;
}

// For a context that is the first of its function on the path, and for a handler.
[[gnu::always_inline]] inline Recursion first_call(std::uint32_t opener, std::uint64_t functions,
                                                   std::uint64_t function) {
    return {1, opener, functions + mixed(function + 1)};
}

// Functions that were called again with other functions on the path. contains() can be true by
// mistake.
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

// `line`: the innermost one of an interpreted program on the path, or 0.
[[gnu::always_inline]] inline std::uint64_t key_by_set(std::uint64_t function, std::uint64_t line,
                                                       const Recursion& recursion) {
    return mixed(recursion.functions + line) ^ function;
}

struct Call {
    Recursion recursion;    // of a new context
    std::uint32_t context;  // the context on the path to which the call goes back; or kNoContext
    // Not 0: the key under which contexts with the same set are found. A new context takes the key
    // if it is free. If `within` exceeds `most`, the call goes to the context with the key.
    std::uint64_t key_by_set;
};
constexpr std::uint32_t kNoContext = UINT32_MAX;

// In the functions below, `Tree` has contexts by number, with entry(), caller() (the caller's
// number), ends_path() (true for the root and handlers), recursion(), has_lines() (false if no
// context is a line), is_line() and site() (of a line).

// The innermost line on the path to a context, or 0.
template <typename Tree>
[[gnu::always_inline]] inline std::uint64_t innermost_line(const Tree& tree,
                                                           std::uint32_t context) {
    if (!tree.has_lines()) return 0;
    while (!tree.ends_path(context) && !tree.is_line(context)) context = tree.caller(context);
    return tree.ends_path(context) ? 0 : tree.site(context);
}

// The context of a call of `function` in `caller`.
template <typename Tree>
[[gnu::always_inline]] inline Call recursion_of_call(const Tree& tree, std::uint32_t caller,
                                                     std::uint64_t function, std::uint32_t most,
                                                     RecursiveFunctions& recursive) {
    const Recursion above = tree.recursion(caller);
    const std::uint32_t opener_above = above.within == 1 ? caller : above.opener;
    const Recursion first = first_call(opener_above, above.functions, function);
    if (most == kAllRecursion) return {first, kNoContext, 0};
    const bool has_key = recursive.contains(function);
    const std::uint64_t line = innermost_line(tree, caller);
    for (std::uint32_t opener = opener_above; tree.entry(opener) != function;) {
        if (tree.ends_path(opener))
            return {first, kNoContext,
                    most == 1 && has_key ? key_by_set(function, line, first) : 0};
        opener = tree.recursion(opener).opener;
    }
    std::uint32_t innermost = caller;
    while (tree.entry(innermost) != function) innermost = tree.caller(innermost);
    const Recursion earlier = tree.recursion(innermost);
    const Recursion recursion = {earlier.within + 1, opener_above, above.functions};
    if (earlier.within >= most && earlier.functions == above.functions &&
        !tree.is_line(innermost) && innermost_line(tree, innermost) == line)
        return {recursion, innermost, 0};
    if (earlier.within >= most) recursive.add(function);
    const bool is_known = earlier.within >= most || (recursion.within == most && has_key);
    return {recursion, kNoContext, is_known ? key_by_set(function, line, recursion) : 0};
}

// The recursion of the context of a line. `interpreter`: the context of its interpreter.
template <typename Tree>
[[gnu::always_inline]] inline Recursion recursion_in_line(const Tree& tree,
                                                          std::uint32_t interpreter,
                                                          std::uint64_t line) {
    Recursion recursion = tree.recursion(interpreter);
    for (std::uint32_t outer = interpreter; !tree.ends_path(outer); outer = tree.caller(outer))
        if (tree.is_line(outer) && tree.site(outer) == line) return recursion;
    recursion.functions += mixed(line + 1);
    return recursion;
}

// The nodes of one slot begin with this header. node_offset() and word_offset() say where the words
// of the `count` nodes are; the root is the first node.
struct ContextNodes {
    std::uint32_t count;  // published: read and written atomically
    std::uint32_t reserved[15];
};

// A function that was called, in the context of its caller; or code elsewhere that the function has
// jumped to since. A node counts only the blocks that begin in its own range of addresses, and so
// stays small. Its range has the kCodeRange bytes around `entry`. kContextWordsOffset has the
// number of the first word of each block. The block's counters() begin there. 0: the block is
// counted in no context. Equal blocks at the same address have the same word. The driver uses the
// other words for itself.
struct ContextNode {
    enum Kind : std::uint16_t {
        kRoot,     // outside of all calls
        kCall,     // a call at `site` of the function at `entry`
        kHandler,  // of a signal that has interrupted the instruction at `site`
        kJump,     // `frame` has gone on here
        kAgain,    // a call at `site` that goes on in `frame`; counts nothing but calls
        // `parent`, a node of kind kCall with the same `entry`, is an interpreter. It executes a
        // line of its program, for which the address `site` stands.
        kLine,
    };
    std::uint64_t entry;   // pc; 0 for kRoot
    std::uint64_t site;    // pc; 0 for kRoot and kJump; for kLine, of Interpreter::line_at()
    std::uint32_t number;  // of this node; the root has 0
    std::uint32_t parent;  // the node that called; itself for the root
    std::uint32_t frame;   // the node of the current call: itself, except for kJump and kAgain
    Kind kind;
    std::uint16_t beyond;  // not 0: stands for all contexts that had no room
    Recursion recursion;   // of the function of `frame`; unused for kJump and kAgain
    std::uint64_t calls;   // indirect calls and interruptions that have led here
    ContextNode* next;     // the driver's: where a call goes on; itself, except for kAgain
};
inline constexpr std::uint64_t kCodeRange = 256;  // a power of two
[[gnu::always_inline]] inline std::uint64_t range_of(std::uint64_t pc) {
    return pc & ~(kCodeRange - 1);
}
inline constexpr std::uint32_t kFirstContextWord = sizeof(ContextNode) / sizeof(std::uint64_t);
inline constexpr std::uint64_t kContextsBytes = std::uint64_t{8} << 30;  // of a slot
// A slot's nodes begin at a multiple of this, in the segment and in the native driver.
inline constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

// Most nodes use only their first words. The words of kChunkNodes nodes therefore lie in layers of
// kHugePage bytes: the first one has the first kLayerWords words of each node, the next one has the
// next words, and so on. Most pages of the later layers get no memory.
inline constexpr std::uint32_t kLayerWords = 32;
inline constexpr std::uint64_t kNodeBytes = kLayerWords * sizeof(std::uint64_t);  // in a layer
inline constexpr std::uint32_t kChunkNodes = kHugePage / kNodeBytes;

// In bytes, from the beginning of the header. `words`: of a node, a multiple of kLayerWords.
[[gnu::always_inline]] inline std::uint64_t node_offset(std::uint32_t number, std::uint32_t words) {
    const std::uint64_t chunk = words / kLayerWords * kHugePage;
    return kHugePage + number / kChunkNodes * chunk + number % kChunkNodes * kNodeBytes;
}
// In bytes, from the beginning of the node. Translated code adds it to the node's address.
[[gnu::always_inline]] inline std::uint64_t word_offset(std::uint32_t word) {
    return word / kLayerWords * kHugePage + word % kLayerWords * sizeof(std::uint64_t);
}

}  // namespace assay::trace
