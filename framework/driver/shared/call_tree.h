// In which calling context a thread is, and what it has executed there: a tree of nodes in the
// trace segment (trace::ContextNode), whose words translated code increments.
//
// Translated code has the present node in Context::calls, and finds the one of a function that it
// calls, or of code that it jumps to elsewhere, in a word of the present node:
// translate/contexts.h. What it does not find there, and what is rare, the functions below do. They
// are called from translated code: so they change no vector register, take no lock and allocate
// only from the kernel.
//
// A frame is known by its canonical frame address (DWARF: the stack pointer before the call), and
// is alive as long as that is above the stack pointer: as in the collector (ShadowStacks), whose
// notion of a stack is the same, too. trace/context_nodes.h says in which context a function is
// that is called again before it has returned (Spec::recursion).
#pragma once

#include "framework/trace/context_nodes.h"

#include <cstdint>

namespace assay::driver {

struct CallFrame {
    trace::ContextNode* caller;
    std::uint64_t address;  // the canonical frame address
};

// What translated code itself uses, in the context.
struct CallState {
    trace::ContextNode* node;  // the present one
    // Of the present stack: behind the innermost frame, and behind the last one that there is room
    // for.
    CallFrame *top, *end;
    std::uint64_t stack_low;  // the stack pointer was not lower
};

// A call or a jump, as translated code tells it.
struct CallSite {
    std::uint64_t pc;      // of the call
    std::uint64_t behind;  // behind the call
    std::uint64_t target;  // 0: it is told by the call
    // Of a node: in which the node that this leads to is kept, counted from its beginning; 0: in
    // none.
    std::uint64_t word;
};

// Beside the word of an indirect jump, for assay_tree_jump().
inline constexpr std::uint64_t kIndirectJump = 1;

class CallTree {
  public:
    // Of a thread, and in memory that is zero. `nodes`: those of its slot, kContextsBytes.
    // `recursion`: Spec::recursion.
    void initialise(CallState& state, trace::ContextNodes* nodes, std::uint32_t words,
                    std::uint32_t recursion);
    // Forgets all stacks, and goes on outside of all calls: another thread, or other nodes, which
    // are empty.
    void begin_thread();

    // A call, or a jump to another range of code. `address`: the frame's.
    void call(const CallSite& site, std::uint64_t target, std::uint64_t address);
    void jump(std::uint64_t target, std::uint64_t word, bool indirect = false);
    // Control is at `pc` with that stack pointer, whatever has led there. `from_elsewhere`: the
    // stack pointer has got a value that was not computed from the one before.
    void arrive(std::uint64_t pc, std::uint64_t sp, bool from_elsewhere = false);
    // A signal's handler has been entered, on the stack of what it interrupts or another one.
    void enter_handler(std::uint64_t address, std::uint64_t interrupted, std::uint64_t handler);

    // Gives all memory back but the nodes', which must be empty where a thread begins behind that.
    void release();

  private:
    using Node = trace::ContextNode;
    struct Stack {
        std::uint64_t low, high;  // the stack pointers seen
        Node* node;               // while it is not the present one
        CallFrame* frames;        // the first one is below all
        CallFrame *top, *end;
    };
    struct Path;
    // How far beyond the stack pointers seen a stack still is taken for the same.
    struct Reach {
        std::uint64_t below, above;
    };
    static constexpr std::uint32_t kMostStacks = 65'536;
    static constexpr std::uint32_t kBeyond = 1U << 18;  // nodes kept back for them

    Node* node_at(std::uint32_t index) const;
    Node* frame_of(const Node* node) const { return node_at(node->frame); }
    Node* in_range(Node* node, std::uint64_t pc);
    Node* child(Node* parent, Node::Kind kind, std::uint64_t site, std::uint64_t target);
    Node* find_or_make(Node* parent, Node::Kind kind, std::uint64_t site, std::uint64_t target);
    Node* known(std::uint64_t key, std::uint32_t parent) const;
    Node* new_node(const Node& node);
    void remember(std::uint64_t key, std::uint32_t parent, Node* node);
    Node* beyond(std::uint64_t target);
    void push(Node* caller, std::uint64_t address);
    void move(std::uint64_t sp, const Reach& reach);
    void leave_frames(std::uint64_t sp);  // those that are gone
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
    std::uint64_t node_bytes_;
    std::uint32_t most_nodes_;
    std::uint32_t recursion_;
    // Nodes by what led to them, open addressing.
    struct Known {
        std::uint64_t key;
        std::uint32_t parent, node;  // a node of 0: none
    };
    Known* known_;
    std::uint64_t known_size_, known_used_;  // the size is a power of two
    // What child() has found lately, for calls and jumps that lead to many places.
    static constexpr std::uint32_t kFoundLately = 4096;
    struct Found {
        Node* parent;
        std::uint64_t site, target;
        Node* node;
    };
    Found found_[kFoundLately];
    std::uint64_t populated_;  // up to here, nodes have memory
    trace::RecursiveFunctions recursive_;
    // By `high`.
    Stack* stacks_;
    std::uint32_t stack_count_, stack_room_, present_;
    // Stack::high of the ones that the thread was on before the present one, the last one first.
    std::uint64_t left_last_, left_before_;
    std::uint64_t arrived_at_;  // 0, or the stack pointer with which a stack without frames began
};

}  // namespace assay::driver

// For translated code, with a thread's tree. `sp` is the program's.
extern "C" {
// A call, whose return address has been pushed.
void assay_tree_call(assay::driver::CallTree* tree, const assay::driver::CallSite* site,
                     std::uint64_t target, std::uint64_t sp);
void assay_tree_jump(assay::driver::CallTree* tree, std::uint64_t word, std::uint64_t target,
                     std::uint64_t sp);
void assay_tree_arrive(assay::driver::CallTree* tree, std::uint64_t from_elsewhere,
                       std::uint64_t target, std::uint64_t sp);
}
