// In which calling context a function is that is called while it is on the stack already.
//
// The first `most` calls of a function on a path have contexts of their own. A further call goes to
// the first context that is of the same function, is the `most`th on its path or a later one, and
// whose path holds the same set of functions. If there is none yet, the call has a context of its
// own, too. So the functions on the path of a context are always those on the stack, and the counts
// of a function with all that it called are exact. Each set has at most `most` contexts of a
// function and one more on a path: a path does not grow with the stack.
//
// A signal handler is no recursion of what it interrupts: a path is looked at up to the handler.
//
// The driver's tree and the collector's follow this rule. The driver calls it from translated code,
// so it makes no calls.
#pragma once

#include <cstdint>

namespace assay::trace {

constexpr std::uint32_t kAllRecursion = UINT32_MAX;  // `most` without a limit

// Of a context.
struct Recursion {
    std::uint32_t within;  // so many calls of its function are on the path, with its own
    // The innermost context on the path, itself included, whose function is not on the path before;
    // or the root; or a handler.
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
[[gnu::always_inline]] inline Recursion first_call(std::uint32_t own, std::uint64_t functions,
                                                   std::uint64_t function) {
    return {1, own, functions + mixed(function + 1)};
}

// What a new context, with the number `own`, of a call of `function` in `caller` has. If `within`
// is more than `most`, the call goes to another one, if there is one: see above. `Tree` has
// contexts by number: entry(), caller() (that it is called in), ends_path() (true of the root and
// of handlers) and recursion().
template <typename Tree>
[[gnu::always_inline]] inline Recursion recursion_of_call(const Tree& tree, std::uint32_t caller,
                                                          std::uint64_t function,
                                                          std::uint32_t most, std::uint32_t own) {
    const Recursion above = tree.recursion(caller);
    const Recursion first = first_call(own, above.functions, function);
    if (most == kAllRecursion) return first;
    for (std::uint32_t opener = above.opener; tree.entry(opener) != function;) {
        if (tree.ends_path(opener)) return first;
        opener = tree.recursion(tree.caller(opener)).opener;
    }
    std::uint32_t innermost = caller;
    while (tree.entry(innermost) != function) innermost = tree.caller(innermost);
    return {tree.recursion(innermost).within + 1, above.opener, above.functions};
}

// The key of contexts of a function by sets.
[[gnu::always_inline]] inline std::uint64_t key_by_set(std::uint64_t function,
                                                       const Recursion& recursion) {
    return mixed(recursion.functions) ^ function;
}

}  // namespace assay::trace
