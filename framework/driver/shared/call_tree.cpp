#include "framework/driver/shared/call_tree.h"

#include "framework/driver/shared/in_translated_code.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>

namespace assay::driver {
namespace {

using std::uint32_t;
using std::uint64_t;
using trace::mixed;
using trace::range_of;

constexpr uint64_t kKiB = 1024;
// The address of a stack's first frame. No stack pointer is above it.
constexpr uint64_t kHighest = UINT64_MAX;
constexpr uint32_t kNone = UINT32_MAX;
// Stand for the parent in the keys of nodes that do not depend on a parent.
constexpr uint32_t kByRange = UINT32_MAX, kBySet = UINT32_MAX - 1;
constexpr uint64_t kFewestKnown = 4096, kFewestFrames = 256, kFewestStacks = 16;
constexpr uint64_t kHugePage = trace::kHugePage;

PART_OF_THESE long call_kernel(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                               uint64_t e, uint64_t f) {
#if defined(__x86_64__)
    register uint64_t fourth __asm__("r10") = d;
    register uint64_t fifth __asm__("r8") = e;
    register uint64_t sixth __asm__("r9") = f;
    long result = number;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
#else
    const long result = syscall(number, a, b, c, d, e, f);
    return result == -1 ? -errno : result;
#endif
}

// Zeroed memory. Traps if the kernel gives no memory: the tree cannot go on without it.
template <typename Element>
PART_OF_THESE Element* allocate(uint64_t count) {
    const long memory =
        call_kernel(SYS_mmap, 0, count * sizeof(Element), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, static_cast<uint64_t>(-1), 0);
    if (memory < 0 && memory > -4096) __builtin_trap();
    if (count * sizeof(Element) >= kHugePage)
        call_kernel(SYS_madvise, static_cast<uint64_t>(memory), count * sizeof(Element),
                    MADV_HUGEPAGE, 0, 0, 0);
    return reinterpret_cast<Element*>(memory);
}

template <typename Element>
PART_OF_THESE void release_elements(Element* elements, uint64_t count) {
    if (elements != nullptr)
        call_kernel(SYS_munmap, reinterpret_cast<uint64_t>(elements), count * sizeof(Element), 0, 0,
                    0, 0);
}

PART_OF_THESE uint64_t& word_of(trace::ContextNode* node, uint64_t offset) {
    return *reinterpret_cast<uint64_t*>(reinterpret_cast<unsigned char*>(node) + offset);
}

}  // namespace

IN_TRANSLATED_CODE void CallTree::initialise(CallState& state, trace::ContextNodes* nodes,
                                             uint32_t words, uint32_t recursion) {
    state_ = &state;
    present_ = kNone;
    nodes_ = nodes;
    recursion_ = recursion;
    words_ = words;
    most_nodes_ =
        static_cast<uint32_t>((trace::kContextsBytes - trace::kHugePage) /
                              (words / trace::kLayerWords * kHugePage) * trace::kChunkNodes);
}

IN_TRANSLATED_CODE void CallTree::release() {
    release_frames();
    release_elements(stacks_, stack_room_);
    stacks_ = nullptr;
    stack_room_ = 0;
    release_elements(known_, known_size_);
    known_ = nullptr;
}

IN_TRANSLATED_CODE void CallTree::release_frames() {
    for (uint32_t i = 0; i < stack_count_; ++i)
        release_elements(stacks_[i].frames,
                         static_cast<uint64_t>(stacks_[i].end - stacks_[i].frames));
    stack_count_ = 0;
    present_ = kNone;
}

IN_TRANSLATED_CODE void CallTree::begin_thread() {
    release_frames();
    if (nodes_->count == 0) {
        release_elements(known_, known_size_);
        known_size_ = kFewestKnown;
        known_used_ = 0;
        known_ = allocate<Known>(known_size_);
        populated_ = 0;
        recursive_.clear();
        for (Found& found : found_) found.parent = nullptr;
        new_node({.entry = 0,
                  .site = 0,
                  .number = 0,
                  .parent = 0,
                  .frame = 0,
                  .kind = Node::kRoot,
                  .beyond = 0,
                  .recursion = {0, 0, 0},
                  .calls = 0,
                  .next = nullptr});
    }
    *state_ = {node_at(0), nullptr, nullptr, 0, steps_};
    if (interpreter_ != nullptr && interpreter_->has_lines()) forget_steps();
    left_last_ = left_before_ = arrived_at_ = 0;
}

// --- Nodes.

PART_OF_THESE CallTree::Node* CallTree::node_at(uint32_t index) const {
    return reinterpret_cast<Node*>(reinterpret_cast<unsigned char*>(nodes_) +
                                   trace::node_offset(index, words_));
}

IN_TRANSLATED_CODE CallTree::Node* CallTree::known(uint64_t key, uint32_t parent) const {
    const uint64_t mask = known_size_ - 1;
    for (uint64_t slot = mixed(key + parent) & mask; known_[slot].node != 0;
         slot = (slot + 1) & mask)
        if (known_[slot].key == key && known_[slot].parent == parent)
            return node_at(known_[slot].node);
    return nullptr;
}

IN_TRANSLATED_CODE void CallTree::remember(uint64_t key, uint32_t parent, Node* node) {
    if ((known_used_ + 1) * 4 > known_size_ * 3) {
        Known* const before = known_;
        const uint64_t size = known_size_;
        known_size_ *= 2;
        known_used_ = 0;
        known_ = allocate<Known>(known_size_);
        for (uint64_t i = 0; i < size; ++i)
            if (before[i].node != 0)
                remember(before[i].key, before[i].parent, node_at(before[i].node));
        release_elements(before, size);
    }
    const uint64_t mask = known_size_ - 1;
    uint64_t slot = mixed(key + parent) & mask;
    while (known_[slot].node != 0) slot = (slot + 1) & mask;
    known_[slot] = {key, parent, node->number};
    ++known_used_;
}

// Gives memory to the first layer of the node at `address`, which is the first one without memory,
// and of the next ones. All calls can fail, which changes nothing but the time.
//
// After the first chunk, nodes get huge pages, because translated code and the collector
// reach them with fewer misses of the processor's translation buffers. Most systems give a file in
// memory huge pages only by MADV_COLLAPSE. It fails before Linux 6.1, and needs one page that
// exists.
//
// Populating many pages at once takes a third of the time of single page faults.
IN_TRANSLATED_CODE void CallTree::populate(uint64_t address) {
    constexpr uint64_t kPage = 4 * kKiB, kPortion = 256 * kKiB;
    constexpr uint64_t kPopulateForWriting = 23, kCollapse = 25;
    const uint64_t from = address & ~(kPage - 1);
    const bool is_huge =
        from % kHugePage == 0 && from >= reinterpret_cast<uint64_t>(nodes_) + 2 * kHugePage;
    call_kernel(SYS_madvise, from, is_huge ? kPage : kPortion, kPopulateForWriting, 0, 0, 0);
    populated_ = from + kPortion;
    if (!is_huge) return;
    if (call_kernel(SYS_madvise, from, kHugePage, kCollapse, 0, 0, 0) == 0)
        populated_ = from + kHugePage;
    else
        call_kernel(SYS_madvise, from, kPortion, kPopulateForWriting, 0, 0, 0);
}

// The collector reads a node only when its thread has stopped. The order of the stores matters only
// if the thread is killed here.
IN_TRANSLATED_CODE CallTree::Node* CallTree::new_node(const Node& node) {
    const uint32_t index = nodes_->count;
    if (index >= most_nodes_) __builtin_trap();
    Node* const made = node_at(index);
    const uint64_t end = reinterpret_cast<uint64_t>(made) + trace::kNodeBytes;
    if (end > populated_) populate(end - 1);
    *made = node;
    made->number = index;
    if (made->next == nullptr) made->next = made;
    __atomic_store_n(&nodes_->count, index + 1, __ATOMIC_RELEASE);
    return made;
}

// The functions on the path to a node, for trace::recursion_of_call().
struct CallTree::Path {
    const CallTree& tree;
    PART_OF_THESE uint64_t entry(uint32_t frame) const { return tree.node_at(frame)->entry; }
    PART_OF_THESE uint32_t caller(uint32_t frame) const {
        return tree.node_at(tree.node_at(frame)->parent)->frame;
    }
    PART_OF_THESE bool ends_path(uint32_t frame) const {
        const Node::Kind kind = tree.node_at(frame)->kind;
        return kind == Node::kRoot || kind == Node::kHandler;
    }
    PART_OF_THESE bool has_lines() const {
        return tree.interpreter_ != nullptr && tree.interpreter_->has_lines();
    }
    PART_OF_THESE bool is_line(uint32_t frame) const {
        return tree.node_at(frame)->kind == Node::kLine;
    }
    PART_OF_THESE uint64_t site(uint32_t frame) const { return tree.node_at(frame)->site; }
    PART_OF_THESE trace::Recursion recursion(uint32_t frame) const {
        return tree.node_at(frame)->recursion;
    }
};

// The node that a call or a jump leads to.
IN_TRANSLATED_CODE CallTree::Node* CallTree::child(Node* parent, Node::Kind kind, uint64_t site,
                                                   uint64_t target) {
    Found& found =
        found_[(reinterpret_cast<uint64_t>(parent) / trace::kNodeBytes ^ site ^ target >> 4) %
               kFoundLately];
    if (found.parent == parent && found.site == site && found.target == target) return found.node;
    Node* const node = find_or_make(parent, kind, site, target);
    found = {parent, site, target, node};
    return node;
}

IN_TRANSLATED_CODE CallTree::Node* CallTree::find_or_make(Node* parent, Node::Kind kind,
                                                          uint64_t site, uint64_t target) {
    const uint64_t key = mixed(site + kind) ^ target;
    const uint32_t number = parent->number;
    if (Node* const node = known(key, number)) return node;
    const uint32_t made = nodes_->count;
    trace::Call call = {trace::first_call(0, site, parent->number), trace::kNoContext, 0};
    if (kind == Node::kLine)
        call.recursion = trace::recursion_in_line(Path{*this}, parent->frame, site);
    if (kind == Node::kCall)
        call = trace::recursion_of_call(Path{*this}, parent->frame, target, recursion_, recursive_);
    Node* const by_set = call.key_by_set != 0 ? known(call.key_by_set, kBySet) : nullptr;
    Node* node = call.recursion.within > recursion_ ? by_set : nullptr;
    if (call.context != trace::kNoContext) node = node_at(call.context);
    if (node != nullptr) {
        node = again(parent, site, node);
    } else if (made < most_nodes_ - kBeyond) {
        const bool jumps = kind == Node::kJump;
        node = new_node({.entry = target,
                         .site = site,
                         .number = made,
                         .parent = number,
                         .frame = jumps ? number : made,
                         .kind = kind,
                         .beyond = parent->beyond,
                         .recursion = call.recursion,
                         .calls = 0,
                         .next = nullptr});
        if (call.key_by_set != 0 && by_set == nullptr) remember(call.key_by_set, kBySet, node);
    } else {
        return beyond(target);
    }
    remember(key, number, node);
    return node;
}

// A node for the calls at `site` that go on in `node`, the node of an earlier call.
IN_TRANSLATED_CODE CallTree::Node* CallTree::again(const Node* parent, uint64_t site, Node* node) {
    const uint32_t made = nodes_->count;
    if (made >= most_nodes_ - kBeyond) return node;
    return new_node({.entry = node->entry,
                     .site = site,
                     .number = made,
                     .parent = parent->number,
                     .frame = node->number,
                     .kind = Node::kAgain,
                     .beyond = parent->beyond,
                     .recursion = {},
                     .calls = 0,
                     .next = node});
}

// When the nodes are used up, all contexts share one node for each range of code.
IN_TRANSLATED_CODE CallTree::Node* CallTree::beyond(uint64_t target) {
    const uint64_t range = range_of(target);
    if (Node* const node = known(range, kByRange)) return node;
    const uint32_t made = nodes_->count;
    Node* const node = new_node({.entry = target,
                                 .site = 0,
                                 .number = made,
                                 .parent = 0,
                                 .frame = made,
                                 .kind = Node::kCall,
                                 .beyond = 1,
                                 .recursion = trace::first_call(0, range, made),
                                 .calls = 0,
                                 .next = nullptr});
    remember(range, kByRange, node);
    return node;
}

// The node that counts the blocks of the range of `pc` in the frame of `node`.
IN_TRANSLATED_CODE CallTree::Node* CallTree::in_range(Node* node, uint64_t pc) {
    const uint64_t range = range_of(pc);
    if (range_of(node->entry) == range) return node;
    Node* const frame = frame_of(node);
    return range_of(frame->entry) == range ? frame : child(frame, Node::kJump, 0, range);
}

// --- Calls and jumps.

IN_TRANSLATED_CODE void CallTree::call(const CallSite& site, uint64_t target, uint64_t address) {
    if (present_ == kNone) load(new_stack(address));
    leave_frames(address);
    arrived_at_ = 0;
    Node* const caller = state_->node;
    push(in_range(caller, site.behind), address);
    Node* const callee = child(caller, Node::kCall, site.pc, target);
    // Translated code counts no direct calls.
    const Node* const known = site.target != 0 ? callee->next : callee;
    if (site.word != 0) word_of(caller, site.word) = reinterpret_cast<uint64_t>(known);
    ++callee->calls;
    state_->node = callee->next;
}

// A stack without frames can be a moved stack (follow_moved_stack). An indirect jump from there is
// therefore not kept in a word.
IN_TRANSLATED_CODE void CallTree::jump(uint64_t target, uint64_t word, bool indirect) {
    if (arrived_at_ != 0) follow_moved_stack(target);
    Node* const before = state_->node;
    Node* const node = in_range(before, target);
    const bool keeps = word != 0 && !(indirect && frame_of(before)->kind == Node::kRoot);
    if (keeps) word_of(before, word) = reinterpret_cast<uint64_t>(node);
    state_->node = node;
}

IN_TRANSLATED_CODE void CallTree::go_to_line(uint64_t position) {
    Node* const before = state_->node;
    Node* const frame = frame_of(before);
    Node* const called = frame->kind == Node::kLine ? node_at(frame->parent) : frame;
    const uint64_t line = interpreter_->line_at(position);
    const bool stays = line == 0 || called->kind != Node::kCall || called->beyond != 0 ||
                       (frame->kind == Node::kLine && frame->site == line);
    if (!stays)
        state_->node = in_range(child(called, Node::kLine, line, called->entry), before->entry);
    steps_[ContextStep::index(reinterpret_cast<uint64_t>(before), position)] = {before, position,
                                                                                state_->node, 0};
}

// Atomic, because another thread can be the one that uses the steps.
IN_TRANSLATED_CODE void CallTree::forget_steps() {
    for (ContextStep& step : steps_) __atomic_store_n(&step.from, nullptr, __ATOMIC_RELAXED);
}

IN_TRANSLATED_CODE void CallTree::arrive(uint64_t pc, uint64_t sp, bool from_elsewhere) {
    // The largest frames are arrays of megabytes. A coroutine's whole stack can have only a few
    // KiB, with the next stack beside it.
    constexpr Reach kOfCall{16 * kKiB * kKiB, 16 * kKiB * kKiB}, kOfValue{4 * kKiB, 4 * kKiB};
    move(sp, from_elsewhere ? kOfValue : kOfCall);
    state_->node = in_range(state_->node, pc);
    arrived_at_ = from_elsewhere && state_->top == stacks_[present_].frames + 1 ? sp : 0;
}

// Go's runtime copies a stack that is too small to another place. It returns there from the call
// that has found the stack too small. The frames of the old stack then move to the present one.
IN_TRANSLATED_CODE void CallTree::follow_moved_stack(uint64_t target) {
    constexpr uint64_t kLongestCall = 15;
    const uint64_t sp = arrived_at_;
    arrived_at_ = 0;
    const uint32_t moved = find(left_before_, 0);
    if (moved == kNone || moved == present_ || state_->top != stacks_[present_].frames + 1) return;
    Stack& from = stacks_[moved];
    const Node* const called = frame_of(from.node);
    const bool returns = from.top > from.frames + 1 && called->kind == Node::kCall &&
                         target > called->site && target - called->site <= kLongestCall;
    if (!returns) return;
    const uint64_t distance = sp - from.top[-1].address, high = from.high + distance;
    for (CallFrame* frame = from.frames + 1; frame < from.top; ++frame) frame->address += distance;
    Stack& to = stacks_[present_];
    const Stack empty = to;
    to.node = from.node;
    to.frames = from.frames;
    to.top = from.top;
    to.end = from.end;
    from.node = node_at(0);
    from.frames = empty.frames;
    from.top = empty.frames + 1;
    from.end = empty.end;
    if (high > to.high) extend(high);
    load(present_);
    leave_frames(sp);
}

// The handler runs below the red zone and all saved registers of the interrupted stack, or on its
// own stack.
IN_TRANSLATED_CODE void CallTree::enter_handler(uint64_t address, uint64_t interrupted,
                                                uint64_t handler) {
    constexpr Reach kOfHandler{64 * kKiB, 4 * kKiB};
    Node* const below = state_->node;
    move(address, kOfHandler);
    push(state_->node, address);
    state_->node = child(below, Node::kHandler, interrupted, handler);
    ++state_->node->calls;
}

IN_TRANSLATED_CODE void CallTree::push(Node* caller, uint64_t address) {
    if (state_->top == state_->end) {
        save();
        Stack& stack = stacks_[present_];
        const auto room = static_cast<uint64_t>(stack.end - stack.frames);
        CallFrame* const frames = allocate<CallFrame>(room * 2);
        for (uint64_t i = 0; i < room; ++i) frames[i] = stack.frames[i];
        release_elements(stack.frames, room);
        stack.frames = frames;
        stack.top = frames + room;
        stack.end = frames + room * 2;
        state_->top = stack.top;
        state_->end = stack.end;
    }
    *state_->top++ = {caller, address};
}

// --- Stacks.

IN_TRANSLATED_CODE void CallTree::save() {
    if (present_ == kNone) return;
    Stack& stack = stacks_[present_];
    stack.node = state_->node;
    stack.top = state_->top;
    const uint64_t innermost = stack.top[-1].address;
    stack.low = innermost < stack.low ? innermost : stack.low;
}

IN_TRANSLATED_CODE void CallTree::load(uint32_t number) {
    const Stack& stack = stacks_[number];
    present_ = number;
    *state_ = {stack.node, stack.top, stack.end, stack.low, steps_};
}

// Makes the stack that contains `sp` the present one, and leaves the frames that are gone.
IN_TRANSLATED_CODE void CallTree::move(uint64_t sp, const Reach& reach) {
    save();
    const uint64_t before = present_ == kNone ? 0 : stacks_[present_].high;
    load(stack_of(sp, reach));
    if (stacks_[present_].high != before) {
        left_before_ = left_last_;
        left_last_ = before;
    }
    extend(sp);
    leave_frames(sp);
}

IN_TRANSLATED_CODE void CallTree::leave_frames(uint64_t sp) {
    while (state_->top[-1].address <= sp && sp != kHighest) state_->node = (--state_->top)->caller;
}

IN_TRANSLATED_CODE uint32_t CallTree::stack_of(uint64_t sp, const Reach& reach) {
    constexpr uint64_t kNear = 4 * kKiB;
    const auto contains = [&](const Stack& stack) { return stack.low <= sp && sp <= stack.high; };
    const bool any = present_ != kNone;
    if (any && contains(stacks_[present_])) return present_;
    uint32_t found = find(sp, 0);
    if (found == kNone && any && stacks_[present_].low - sp <= reach.below) return present_;
    if (found == kNone && any && sp - stacks_[present_].high <= reach.above) return present_;
    if (found == kNone) found = find(sp, kNear);
    return found == kNone ? new_stack(sp) : found;
}

// The first stack that ends at `sp` or above.
IN_TRANSLATED_CODE uint32_t CallTree::first_above(uint64_t sp) const {
    uint32_t low = 0, high = stack_count_;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (stacks_[middle].high < sp)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// A stack that contains the address, or is at most `reach` away from it.
IN_TRANSLATED_CODE uint32_t CallTree::find(uint64_t sp, uint64_t reach) const {
    const uint32_t above = first_above(sp);
    if (above < stack_count_ && (stacks_[above].low <= sp || stacks_[above].low - sp <= reach))
        return above;
    if (above == 0) return kNone;
    return sp - stacks_[above - 1].high <= reach ? above - 1 : kNone;
}

IN_TRANSLATED_CODE uint32_t CallTree::new_stack(uint64_t sp) {
    if (stack_count_ >= kMostStacks) forget_others();
    if (stack_count_ == stack_room_) {
        const uint64_t room = stack_room_ == 0 ? kFewestStacks : stack_room_ * 2;
        auto* const stacks = allocate<Stack>(room);
        for (uint32_t i = 0; i < stack_count_; ++i) stacks[i] = stacks_[i];
        release_elements(stacks_, stack_room_);
        stacks_ = stacks;
        stack_room_ = static_cast<uint32_t>(room);
    }
    const uint32_t number = first_above(sp);
    for (uint32_t i = stack_count_; i > number; --i) stacks_[i] = stacks_[i - 1];
    ++stack_count_;
    if (present_ != kNone && present_ >= number) ++present_;
    CallFrame* const frames = allocate<CallFrame>(kFewestFrames);
    frames[0] = {node_at(0), kHighest};
    stacks_[number] = {sp, sp, node_at(0), frames, frames + 1, frames + kFewestFrames};
    return number;
}

// Extends the present stack to `sp`, and moves it in the list, which stays sorted by `high`.
IN_TRANSLATED_CODE void CallTree::extend(uint64_t sp) {
    Stack& stack = stacks_[present_];
    stack.low = sp < stack.low ? sp : stack.low;
    state_->stack_low = stack.low;
    if (sp <= stack.high) return;
    stack.high = sp;
    for (; present_ + 1 < stack_count_ && stacks_[present_ + 1].high < sp; ++present_) {
        const Stack moved = stacks_[present_];
        stacks_[present_] = stacks_[present_ + 1];
        stacks_[present_ + 1] = moved;
    }
}

IN_TRANSLATED_CODE void CallTree::forget_others() {
    for (uint32_t i = 0; i < stack_count_; ++i)
        if (i != present_)
            release_elements(stacks_[i].frames,
                             static_cast<uint64_t>(stacks_[i].end - stacks_[i].frames));
    if (present_ != kNone) stacks_[0] = stacks_[present_];
    stack_count_ = present_ == kNone ? 0 : 1;
    present_ = present_ == kNone ? kNone : 0;
}

}  // namespace assay::driver

using assay::driver::CallSite;
using assay::driver::CallTree;

IN_TRANSLATED_CODE void assay_tree_call(CallTree* tree, const CallSite* site, std::uint64_t target,
                                        std::uint64_t sp) {
    tree->call(*site, target, sp + sizeof(std::uint64_t));
}

IN_TRANSLATED_CODE void assay_tree_jump(CallTree* tree, std::uint64_t word, std::uint64_t target,
                                        std::uint64_t /*sp*/) {
    tree->jump(target, word & ~assay::driver::kIndirectJump,
               (word & assay::driver::kIndirectJump) != 0);
}

IN_TRANSLATED_CODE void assay_tree_arrive(CallTree* tree, std::uint64_t from_elsewhere,
                                          std::uint64_t target, std::uint64_t sp) {
    tree->arrive(target, sp, from_elsewhere != 0);
}

IN_TRANSLATED_CODE void assay_tree_line(CallTree* tree, std::uint64_t /*reserved*/,
                                        std::uint64_t position, std::uint64_t /*sp*/) {
    tree->go_to_line(position);
}
