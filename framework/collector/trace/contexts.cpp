#include "framework/collector/trace/contexts.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace assay::collector {

// The interface that trace::recursion_of_call() needs.
struct ContextTree::Path {
    const ContextTree& tree;
    std::uint64_t entry(std::uint32_t context) const { return tree.contexts_[context].function; }
    std::uint32_t caller(std::uint32_t context) const { return tree.contexts_[context].parent; }
    bool ends_path(std::uint32_t context) const {
        return context == 0 || tree.contexts_[context].flags & TRACE_CONTEXT_SIGNAL;
    }
    bool has_lines() const { return tree.has_lines_; }
    bool is_line(std::uint32_t context) const { return tree.lines_[context]; }
    std::uint64_t site(std::uint32_t context) const { return tree.contexts_[context].call; }
    trace::Recursion recursion(std::uint32_t context) const { return tree.recursions_[context]; }
};

ContextTree::ContextTree(std::uint32_t most)
    : most_(most), contexts_(1), recursions_(1), lines_(1), slots_(1024, kEmpty) {}

std::uint32_t ContextTree::enter(std::uint32_t parent, std::uint64_t call, std::uint64_t function,
                                 std::uint32_t flags) {
    return go_on(parent, call, function,
                 [&] { return destination(parent, call, function, flags); });
}

std::uint32_t ContextTree::enter_line(std::uint32_t interpreter, std::uint64_t line) {
    constexpr std::uint64_t kNoFunction = 0;
    has_lines_ = true;
    return go_on(interpreter, line, kNoFunction, [&] {
        const trace_context_t& called = contexts_[interpreter];
        return add({line, called.function, called.parent, called.flags},
                   trace::recursion_in_line(Path{*this}, interpreter, line), true);
    });
}

template <typename Destination>
std::uint32_t ContextTree::go_on(std::uint32_t from, std::uint64_t site, std::uint64_t function,
                                 const Destination& destination) {
    Edge& recent = recent_[(site ^ site >> 12 ^ from * 0x9E3779B1U) % recent_.size()];
    if (recent.parent == from && recent.call == site && recent.function == function &&
        function != 0)
        return recent.context;
    std::size_t slot = slot_of(from, site, function);
    if (slots_[slot] != kEmpty) {
        recent = edges_[slots_[slot]];
        return recent.context;
    }
    if (edges_.size() >= most_) {
        overflowed_ = true;
        return from;
    }
    if ((edges_.size() + 1) * 4 > slots_.size() * 3) {
        grow();
        slot = slot_of(from, site, function);
    }
    slots_[slot] = static_cast<std::uint32_t>(edges_.size());
    edges_.push_back({site, function, from, destination()});
    return edges_.back().context;
}

std::uint32_t ContextTree::add(const trace_context_t& context, const trace::Recursion& recursion,
                               bool is_line) {
    contexts_.push_back(context);
    recursions_.push_back(recursion);
    lines_.push_back(is_line);
    return static_cast<std::uint32_t>(contexts_.size() - 1);
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
    return add({call, function, parent, flags}, recursion, false);
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
    origins_.push_back(origin);
    return found->second = add(same, trace::Recursion(recursions_[number]), lines_[number]);
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

namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

constexpr std::uint8_t kDirectCallBytes = 5;

// The last four bytes of a direct call are the distance to its target (SDM volume 2, CALL).
std::uint64_t target(const trace_instr_t& call) {
    std::int32_t distance = 0;
    if (call.length < sizeof distance) return 0;
    std::memcpy(&distance, call.bytes + call.length - sizeof distance, sizeof distance);
    return call.pc + call.length + static_cast<std::uint64_t>(std::int64_t{distance});
}

}  // namespace

std::span<const std::uint32_t> ShadowStacks::follow(std::uint32_t number,
                                                    std::span<const trace_record_t> records,
                                                    const CodeTables& code) {
    result_.resize(records.size());
    follow(
        number, records, code, [](std::size_t, std::span<const Frame>) { return false; },
        [this](std::size_t i, std::uint32_t context, std::span<const Frame>) {
            result_[i] = context;
        });
    return result_;
}

// Copies what apply() needs, because the rows of sites and instructions are far apart.
void ShadowStacks::learn(const CodeTables& code) {
    for (std::size_t i = flow_of_site_.size(); i < code.sites.size(); ++i) {
        const trace_site_t& site = code.sites[i];
        flow_of_site_.push_back(kNoFlow);
        if (site.kind < TRACE_SITE_CALL || site.kind > TRACE_SITE_INTERRUPTED) continue;
        flow_of_site_.back() = static_cast<std::uint32_t>(flows_.size());
        const trace_instr_t& instr = code.instrs[site.instr];
        // Direct calls of other processors are shorter, and have a record of their target.
        const bool is_direct = site.kind == TRACE_SITE_CALL &&
                               !(instr.flags & TRACE_INSTR_INDIRECT) &&
                               instr.length >= kDirectCallBytes;
        flows_.push_back({.pc = instr.pc,
                          .target = is_direct ? target(instr) : 0,
                          .from = trace::kNoContext,
                          .to = trace::kNoContext,
                          .kind = site.kind,
                          .is_direct = is_direct});
    }
}

void ShadowStacks::apply(Thread& thread, const trace_record_t& record, Flow& flow) {
    // The largest frames are arrays of megabytes.
    constexpr Reach kOfCall{16 * kMiB, 16 * kMiB};
    // The whole stack of a coroutine can have a few KiB, and the next stack can be adjacent.
    constexpr Reach kOfValue{4 * kKiB, 4 * kKiB};
    const std::uint8_t begun = std::exchange(thread.begun_kind, TRACE_SITE_COUNT);
    switch (flow.kind) {
        case TRACE_SITE_CALL:
            move(thread, record.value, kOfCall);
            if (flow.is_direct) return call_directly(thread, record.value, flow);
            [[fallthrough]];
        case TRACE_SITE_SIGNAL:
            thread.begun = record;
            thread.begun_kind = flow.kind;
            return;
        case TRACE_SITE_TARGET:
            if (begun == TRACE_SITE_CALL) call(thread, thread.begun.value, flow.pc, record.value);
            return;
        case TRACE_SITE_INTERRUPTED:
            if (begun == TRACE_SITE_SIGNAL)
                enter_handler(thread, thread.begun.value, record.value, flow.pc);
            return;
        case TRACE_SITE_RETURN:
            move(thread, record.value, kOfCall);
            return;
        case TRACE_SITE_STACK:
            move(thread, record.value, kOfValue);
            return;
        default:
            return;
    }
}

// A call of the same site in the same context leads to the same context, except if the tree was
// full.
void ShadowStacks::call_directly(Thread& thread, std::uint64_t address, Flow& flow) {
    if (thread.stack == nullptr) return;
    const std::uint32_t from = thread.stack->context();
    if (flow.from != from) {
        flow.to = tree_.enter(from, flow.pc, flow.target, 0);
        flow.from = from;
    }
    thread.stack->frames.push_back({address, flow.pc, flow.to, ++frames_});
}

void ShadowStacks::call(Thread& thread, std::uint64_t address, std::uint64_t call,
                        std::uint64_t function) {
    if (thread.stack == nullptr) return;
    const std::uint32_t context = tree_.enter(thread.stack->context(), call, function, 0);
    thread.stack->frames.push_back({address, call, context, ++frames_});
}

// A handler's frame is on its own stack, or on the interrupted stack, below the red zone and all
// registers.
void ShadowStacks::enter_handler(Thread& thread, std::uint64_t address, std::uint64_t interrupted,
                                 std::uint64_t handler) {
    constexpr Reach kOfHandler{64 * kKiB, 4 * kKiB};
    const Stack* before = thread.stack;
    const std::uint32_t below = before ? before->context() : 0;
    Stack& stack = move(thread, address, kOfHandler);
    if (&stack != before) stack.base = below;
    const std::uint32_t context = tree_.enter(below, interrupted, handler, TRACE_CONTEXT_SIGNAL);
    stack.frames.push_back({address, interrupted, context, ++frames_});
}

ShadowStacks::Stack& ShadowStacks::move(Thread& thread, std::uint64_t sp, const Reach& reach) {
    Stack& stack = stack_of(thread, sp, reach);
    if (&stack != thread.stack) {
        if (thread.stack != nullptr) thread.stack->thread = kNoThread;
        thread.stack = &stack;
        stack.thread = thread.number;
    }
    extend(stack, sp);
    while (!stack.frames.empty() && stack.frames.back().address <= sp) stack.frames.pop_back();
    return stack;
}

ShadowStacks::Stack& ShadowStacks::stack_of(Thread& thread, std::uint64_t sp, const Reach& reach) {
    constexpr std::uint64_t kNear = 4 * kKiB;
    if (std::exchange(thread.is_new, false)) {
        // Old stacks there belonged to threads that have ended.
        while (Stack* old = find(sp, 0)) forget(*old);
        return new_stack(sp);
    }
    Stack* const current = thread.stack;
    if (current != nullptr && current->contains(sp)) return *current;
    Stack* found = find(sp, 0);
    if (found == nullptr && current != nullptr && current->low - sp <= reach.below) return *current;
    if (found == nullptr && current != nullptr && sp - current->high <= reach.above)
        return *current;
    if (found == nullptr) found = find(sp, kNear);
    if (found == nullptr) return new_stack(sp);
    if (found->thread == kNoThread || found->thread == thread.number) return *found;
    // Two threads cannot use one stack. The other thread has ended, or has left the stack in a
    // record that follows later.
    forget(*found);
    return new_stack(sp);
}

// Returns a stack that contains the address, or is at most `reach` away; null if there is no such
// stack.
ShadowStacks::Stack* ShadowStacks::find(std::uint64_t sp, std::uint64_t reach) {
    const auto above = stacks_.lower_bound(sp);
    if (above != stacks_.end() && (above->second.contains(sp) || above->second.low - sp <= reach))
        return &above->second;
    if (above == stacks_.begin()) return nullptr;
    Stack& below = std::prev(above)->second;
    return sp - below.high <= reach ? &below : nullptr;
}

ShadowStacks::Stack& ShadowStacks::new_stack(std::uint64_t sp) {
    if (stacks_.size() >= kMostStacks)
        std::erase_if(stacks_, [](const auto& entry) { return entry.second.thread == kNoThread; });
    return stacks_.emplace(sp, Stack{.low = sp, .high = sp})->second;
}

void ShadowStacks::extend(Stack& stack, std::uint64_t sp) {
    stack.low = std::min(stack.low, sp);
    if (sp <= stack.high) return;
    auto node = stacks_.extract(position(stack));
    node.key() = stack.high = sp;
    stacks_.insert(std::move(node));
}

void ShadowStacks::end_thread(std::uint32_t number) {
    const auto found = threads_.find(number);
    if (found == threads_.end()) return;
    if (found->second.stack != nullptr) forget(*found->second.stack);
    threads_.erase(found);
}

void ShadowStacks::forget(Stack& stack) {
    if (stack.thread != kNoThread) threads_.at(stack.thread).stack = nullptr;
    stacks_.erase(position(stack));
}

ShadowStacks::Stacks::iterator ShadowStacks::position(const Stack& stack) {
    const auto [first, end] = stacks_.equal_range(stack.high);
    return std::find_if(first, end, [&](const auto& entry) { return &entry.second == &stack; });
}

}  // namespace assay::collector
