#include "framework/collector/trace/context_tree.h"

namespace assay::collector {

// For trace::recursion_of_call().
struct ContextTree::Path {
    const ContextTree& tree;
    std::uint64_t entry(std::uint32_t context) const { return tree.contexts_[context].function; }
    std::uint32_t caller(std::uint32_t context) const { return tree.contexts_[context].parent; }
    bool ends_path(std::uint32_t context) const {
        return context == 0 || tree.contexts_[context].flags & TRACE_CONTEXT_SIGNAL;
    }
    trace::Recursion recursion(std::uint32_t context) const { return tree.recursions_[context]; }
};

ContextTree::ContextTree(std::uint32_t most)
    : most_(most), contexts_(1), recursions_(1), slots_(1024, kEmpty) {}

std::uint32_t ContextTree::enter(std::uint32_t parent, std::uint64_t call, std::uint64_t function,
                                 std::uint32_t flags) {
    std::size_t slot = slot_of(parent, call, function);
    if (slots_[slot] != kEmpty) return edges_[slots_[slot]].context;
    if (edges_.size() >= most_) {
        overflowed_ = true;
        return parent;
    }
    if ((edges_.size() + 1) * 4 > slots_.size() * 3) {
        grow();
        slot = slot_of(parent, call, function);
    }
    slots_[slot] = static_cast<std::uint32_t>(edges_.size());
    edges_.push_back({call, function, parent, destination(parent, call, function, flags)});
    return edges_.back().context;
}

std::uint32_t ContextTree::destination(std::uint32_t parent, std::uint64_t call,
                                       std::uint64_t function, std::uint32_t flags) {
    const auto own = static_cast<std::uint32_t>(contexts_.size());
    trace::Recursion recursion = trace::first_call(0, call, parent);
    if (!(flags & TRACE_CONTEXT_SIGNAL)) {
        const trace::Call found =
            trace::recursion_of_call(Path{*this}, parent, function, most_within_, recursive_);
        if (found.context != trace::kNoContext) return found.context;
        if (found.key_by_set != 0) {
            const auto [known, is_new] = by_set_.try_emplace(found.key_by_set, own);
            if (!is_new && found.recursion.within > most_within_) return known->second;
        }
        recursion = found.recursion;
    }
    contexts_.push_back({call, function, parent, flags});
    recursions_.push_back(recursion);
    return own;
}

std::uint32_t ContextTree::variant(std::uint32_t context, std::uint32_t object) {
    return variant(of_objects_, std::uint64_t{context} << 32 | object, {context, object}, context);
}

std::uint32_t ContextTree::variant_of_thread(std::uint32_t number, std::uint32_t thread) {
    Origin origin = this->origin(number);
    origin.thread = thread;
    return variant(of_threads_, std::uint64_t{number} << 32 | thread, origin, number);
}

std::uint32_t ContextTree::variant(Variants& known, std::uint64_t key, const Origin& origin,
                                   std::uint32_t number) {
    const auto [found, is_new] = known.try_emplace(key, number);
    if (!is_new) return found->second;
    if (known.size() > most_) {
        overflowed_ = true;
        known.erase(found);
        return number;
    }
    for (auto next = static_cast<std::uint32_t>(origins_.size()); next < contexts_.size(); ++next)
        origins_.push_back({next});
    const trace_context_t same = contexts_[number];
    contexts_.push_back(same);
    recursions_.push_back(recursions_[number]);
    origins_.push_back(origin);
    return found->second = static_cast<std::uint32_t>(contexts_.size() - 1);
}

std::size_t ContextTree::slot_of(std::uint32_t parent, std::uint64_t call,
                                 std::uint64_t function) const {
    // The multipliers of splitmix64's finaliser (Steele, Lea, Flood 2014).
    std::uint64_t hash = (call ^ std::uint64_t{parent} << 32) * 0xBF58476D1CE4E5B9ULL;
    hash = (hash ^ hash >> 31 ^ function) * 0x94D049BB133111EBULL;
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (hash ^ hash >> 31) & mask;
    const auto is_other = [&](const Edge& edge) {
        return edge.parent != parent || edge.call != call || edge.function != function;
    };
    while (slots_[slot] != kEmpty && is_other(edges_[slots_[slot]])) slot = (slot + 1) & mask;
    return slot;
}

void ContextTree::grow() {
    slots_.assign(slots_.size() * 2, kEmpty);
    for (std::uint32_t i = 0; i < edges_.size(); ++i)
        slots_[slot_of(edges_[i].parent, edges_[i].call, edges_[i].function)] = i;
}

}  // namespace assay::collector
