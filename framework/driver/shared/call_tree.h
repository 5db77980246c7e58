// The calling context of a thread, and its counts: a tree of nodes in the trace segment
// (trace::ContextNode). Translated code increments the words of the nodes.
//
// Context::calls has the present node. Words of this node lead translated code to the nodes of
// called functions, and of code elsewhere that it jumps to (translate/contexts.h). Translated code
// calls the functions below for a way that no word has yet, and for rare cases. These functions
// change no vector register, take no lock and allocate only from the kernel.
//
// The canonical frame address (DWARF: the stack pointer before the call) identifies a frame. The
// frame is alive as long as this address is above the stack pointer. The collector (ShadowStacks)
// follows the same rules for frames and stacks. trace/context_nodes.h says which context a
// recursive call gets (Spec::recursion).
#pragma once

#include "framework/driver/shared/interpreter.h"
#include "framework/trace/context_nodes.h"

#include <cstdint>

namespace assay::driver {

struct CallFrame {
    trace::ContextNode* caller;
    std::uint64_t address;  // the canonical frame address
};

// The part that translated code itself uses, in the context.
struct CallState {
    trace::ContextNode* node;  // the present one
    // The ends of the present stack: after its innermost frame, and after the last one that fits.
    CallFrame *top, *end;
    std::uint64_t stack_low;  // the lowest stack pointer seen
    // Recent results of CallTree::go_to_line(), by ContextStep::index().
    struct ContextStep* steps;
};

// The interpreter has executed the instruction at `position`: `from` was the present node, and `to`
// has become the present one.
struct ContextStep {
    trace::ContextNode* from;
    std::uint64_t position;
    trace::ContextNode* to;
    std::uint64_t reserved;  // so that the size is a power of two

    static constexpr std::uint32_t kCount = 4096;
    // Translated code computes it with 32-bit operations.
    static constexpr unsigned kPositionShift = 4, kNodeShift = 3;
    static constexpr std::uint32_t kMask = (kCount - 1) * 32;
    static constexpr std::uint32_t index(std::uint64_t from, std::uint64_t position) {
        const auto low = static_cast<std::uint32_t>(position) << kPositionShift;
        return ((low ^ static_cast<std::uint32_t>(from) >> kNodeShift) & kMask) /
               static_cast<std::uint32_t>(sizeof(ContextStep));
    }
};
static_assert(sizeof(ContextStep) == 32);

// A call or a jump, as translated code tells it.
struct CallSite {
    std::uint64_t pc;      // of the call
    std::uint64_t behind;  // the address after the call
    std::uint64_t target;  // 0: the call tells the target
    // In bytes from the beginning of a node: the word that keeps the node that this leads to; 0: no
    // word.
    std::uint64_t word;
};

// A flag beside the word of an indirect jump, for assay_tree_jump().
inline constexpr std::uint64_t kIndirectJump = 1;

class CallTree {
  public:
    // The tree must lie in zeroed memory. `nodes`: those of the thread's slot, kContextsBytes.
    // `recursion`: Spec::recursion.
    void initialise(CallState& state, trace::ContextNodes* nodes, std::uint32_t words,
                    std::uint32_t recursion);
    // The interpreter must live longer.
    void follow_lines(const Interpreter& interpreter) { interpreter_ = &interpreter; }
    // Forgets all stacks, and begins outside of all calls. Called for a new thread, or when the
    // nodes have been emptied.
    void begin_thread();

    // Enters a call, or a jump to another range of code. `address`: the canonical frame address.
    void call(const CallSite& site, std::uint64_t target, std::uint64_t address);
    void jump(std::uint64_t target, std::uint64_t word, bool indirect = false);
    // Control is at `pc` with this stack pointer, for any reason. `from_elsewhere`: the stack
    // pointer was loaded, and not computed from its last value.
    void arrive(std::uint64_t pc, std::uint64_t sp, bool from_elsewhere = false);
    // The interpreter executes the instruction of its program at `position`.
    void go_to_line(std::uint64_t position);
    // Lines of the interpreter have changed.
    void forget_steps();
    // A signal handler begins, on the stack of the interrupted code or on another one.
    void enter_handler(std::uint64_t address, std::uint64_t interrupted, std::uint64_t handler);

    // Gives back all memory except the nodes, which must be empty before another thread begins.
    void release();

  private:
    using Node = trace::ContextNode;
    struct Stack {
        std::uint64_t low, high;  // the stack pointers seen
        Node* node;               // while the stack is not the present one
        CallFrame* frames;        // the first one lies below all others
        CallFrame *top, *end;
    };
    struct Path;
    // How far beyond its lowest and highest stack pointer an address still belongs to a stack.
    struct Reach {
        std::uint64_t below, above;
    };
    static constexpr std::uint32_t kMostStacks = 65'536;
    static constexpr std::uint32_t kBeyond = 1U << 18;  // nodes kept in reserve for beyond()

    Node* node_at(std::uint32_t index) const;
    Node* frame_of(const Node* node) const { return node_at(node->frame); }
    Node* in_range(Node* node, std::uint64_t pc);
    Node* child(Node* parent, Node::Kind kind, std::uint64_t site, std::uint64_t target);
    Node* find_or_make(Node* parent, Node::Kind kind, std::uint64_t site, std::uint64_t target);
    Node* again(const Node* parent, std::uint64_t site, Node* node);
    Node* known(std::uint64_t key, std::uint32_t parent) const;
    Node* new_node(const Node& node);
    void populate(std::uint64_t address);
    void remember(std::uint64_t key, std::uint32_t parent, Node* node);
    Node* beyond(std::uint64_t target);
    void push(Node* caller, std::uint64_t address);
    void move(std::uint64_t sp, const Reach& reach);
    void leave_frames(std::uint64_t sp);  // the frames that are gone
    void follow_moved_stack(std::uint64_t target);
    std::uint32_t stack_of(std::uint64_t sp, const Reach& reach);
    std::uint32_t find(std::uint64_t sp, std::uint64_t reach) const;
    std::uint32_t first_above(std::uint64_t sp) const;
    std::uint32_t new_stack(std::uint64_t sp);
    void extend(std::uint64_t sp);
    void save();
    void load(std::uint32_t stack);
    void forget_others();
    void release_frames();

    CallState* state_;
    trace::ContextNodes* nodes_;
    std::uint32_t words_, most_nodes_;  // words of a node
    std::uint32_t recursion_;
    // The nodes by the way that led to them, with open addressing.
    struct Known {
        std::uint64_t key;
        std::uint32_t parent, node;  // 0: the entry is empty
    };
    Known* known_;
    std::uint64_t known_size_, known_used_;  // the size is a power of two
    // Recent results of child(), for calls and jumps with many targets.
    static constexpr std::uint32_t kFoundLately = 4096;
    struct Found {
        Node* parent;
        std::uint64_t site, target;
        Node* node;
    };
    Found found_[kFoundLately];
    const Interpreter* interpreter_;  // nullptr: no lines
    ContextStep steps_[ContextStep::kCount];
    std::uint64_t populated_;  // the nodes up to here have memory
    trace::RecursiveFunctions recursive_;
    // Sorted by `high`.
    Stack* stacks_;
    std::uint32_t stack_count_, stack_room_, present_;
    // Stack::high of the two stacks before the present one, the latest first.
    std::uint64_t left_last_, left_before_;
    std::uint64_t arrived_at_;  // 0, or the stack pointer with which a stack without frames began
};

}  // namespace assay::driver

// Called by translated code, with a thread's tree. `sp` is the program's stack pointer.
extern "C" {
// A call that has pushed its return address.
void assay_tree_call(assay::driver::CallTree* tree, const assay::driver::CallSite* site,
                     std::uint64_t target, std::uint64_t sp);
void assay_tree_jump(assay::driver::CallTree* tree, std::uint64_t word, std::uint64_t target,
                     std::uint64_t sp);
void assay_tree_arrive(assay::driver::CallTree* tree, std::uint64_t from_elsewhere,
                       std::uint64_t target, std::uint64_t sp);
void assay_tree_line(assay::driver::CallTree* tree, std::uint64_t reserved, std::uint64_t position,
                     std::uint64_t sp);
}
