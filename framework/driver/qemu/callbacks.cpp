#include "framework/driver/qemu/callbacks.h"

#include "framework/driver/qemu/guest.h"

#include <dlfcn.h>
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace assay::qemu {
namespace {

enum class Filtered { kNot, kRecent, kFirstWrites, kMisses };

// --- Callbacks of executions and fetches.

void on_block_in_order(unsigned vcpu, void* data) {
    threads[vcpu]->enter(*static_cast<const GuestBlock*>(data));
}

void on_block(unsigned vcpu, void* data) {
    const auto& block = *static_cast<const GuestBlock*>(data);
    ++threads[vcpu]->counters()[block.index];
}

template <Filtered Kind>
void fetch(GuestThread& thread, const Fetch& of) {
    if constexpr (Kind == Filtered::kMisses)
        thread.fetch_misses(of.pc, of.first, of.last, of.site);
    else if constexpr (Kind == Filtered::kRecent)
        thread.fetch_recent(of.pc, of.first, of.last, of.site);
    else
        thread.append(of.pc, of.site);
}

template <Filtered Kind>
void on_fetched_block(unsigned vcpu, void* data) {
    const auto& first = *static_cast<const Fetch*>(data);
    GuestThread& thread = *threads[vcpu];
    ++thread.counters()[first.block];
    fetch<Kind>(thread, first);
}

template <Filtered Kind>
void on_fetch(unsigned vcpu, void* data) {
    fetch<Kind>(*threads[vcpu], *static_cast<const Fetch*>(data));
}

// --- Callbacks of references.

template <Filtered Kind>
void refer(GuestThread& thread, std::uint64_t address, unsigned bytes, bool write,
           std::uint32_t site) {
    if constexpr (Kind == Filtered::kMisses)
        thread.refer_misses(address, bytes, site);
    else if constexpr (Kind == Filtered::kRecent)
        thread.refer_recent(address, bytes, site);
    else if constexpr (Kind == Filtered::kFirstWrites)
        thread.refer_first_writes(address, bytes, write, site);
    else
        thread.refer(address, site);
}

// A reference that is not known to be all that its instruction does. Adjacent parts of an operand
// are one reference, and so are a read and the following write of an operand that is modified.
template <Filtered Kind>
[[gnu::noinline]] void refer_to_part(GuestThread& thread, qemu_plugin_meminfo_t info,
                                     std::uint64_t address, Operation& operation) {
    GuestThread::Access& access = thread.last_access;
    if (access.info != info)
        access = {info, 1U << qemu_plugin_mem_size_shift(info), qemu_plugin_mem_is_store(info)};
    if (operation.operand_count == 0) {
        const Operation::Seen seen = guest->seen(operation, info, access.bytes, access.writes);
        return refer<Kind>(thread, address, seen.bytes, seen.writes, seen.site);
    }
    GuestThread::Parts& parts = thread.parts;
    if (parts.operation != &operation) {
        thread.end_execution();
        parts.operation = &operation;
    }
    const isa::Operand& operand = operation.operands[parts.operand];
    const bool is_first = !parts.begun;
    if (is_first) {
        parts.begun = true;
        parts.address = address;
        if (parts.operand == 0) ++parts.references;
        refer<Kind>(thread, address, operand.bytes, operand.kind != TRACE_SITE_READ,
                    operation.site + parts.operand);
    }
    const bool complete = address + access.bytes >= parts.address + operand.bytes &&
                          (operand.kind == TRACE_SITE_READ || access.writes);
    if (!complete) return;
    parts.begun = false;
    if (++parts.operand == operation.operand_count) parts.operand = 0;
    if (operation.variable || parts.operand != 0) return;
    parts = {};
    if (is_first && operation.operand_count == 1)
        __atomic_store_n(&operation.whole, info, __ATOMIC_RELAXED);
}

// Nearly all references end here if there is a filter.
template <Filtered Kind>
void on_reference(unsigned vcpu, qemu_plugin_meminfo_t info, std::uint64_t address, void* data) {
    auto& operation = *static_cast<Operation*>(data);
    GuestThread& thread = *threads[vcpu];
    if (__atomic_load_n(&operation.whole, __ATOMIC_ACQUIRE) != info) [[unlikely]]
        return refer_to_part<Kind>(thread, info, address, operation);
    if constexpr (Kind == Filtered::kRecent || Kind == Filtered::kMisses)
        if (thread.is_recent(address, operation.bytes)) [[likely]]
            return;
    refer<Kind>(thread, address, operation.bytes, operation.writes, operation.site);
}

template <Filtered Kind>
void on_code(unsigned vcpu, void* data) {
    GuestThread& thread = *threads[vcpu];
    for (const CodeFetches::Piece& piece : static_cast<const CodeFetches*>(data)->pieces)
        refer<Kind>(thread, piece.pc, piece.bytes, false, piece.site);
}

// Before an instruction of which executions can differ in their references.
void on_variable(unsigned vcpu, void* data) {
    GuestThread& thread = *threads[vcpu];
    thread.end_execution();
    thread.parts.operation = static_cast<const Operation*>(data);
}

// After it.
void on_end_of_variable(unsigned vcpu, void*) {
    threads[vcpu]->end_execution();
}

void on_cleared_line(unsigned, void*) {
    guest->note_cleared_line();
}

// Reads general registers of AArch64.
class Registers {
  public:
    // False if this QEMU does not show registers.
    bool find_functions() {
        get_ = reinterpret_cast<GetRegisters>(dlsym(RTLD_DEFAULT, "qemu_plugin_get_registers"));
        read_ = reinterpret_cast<ReadRegister>(dlsym(RTLD_DEFAULT, "qemu_plugin_read_register"));
        new_ = reinterpret_cast<NewByteArray>(dlsym(RTLD_DEFAULT, "g_byte_array_new"));
        resize_ = reinterpret_cast<SetArraySize>(dlsym(RTLD_DEFAULT, "g_byte_array_set_size"));
        return get_ != nullptr && read_ != nullptr && new_ != nullptr && resize_ != nullptr;
    }
    // Called in the thread of a vCPU.
    std::uint64_t read(unsigned number) const {
        thread_local const std::vector<void*> handles = handles_of_thread();
        thread_local Array* const bytes = new_();
        std::uint64_t value = 0;
        resize_(bytes, 0);
        if (number < handles.size() && read_(handles[number], bytes) >= 0)
            std::memcpy(&value, bytes->data, std::min<std::size_t>(bytes->count, sizeof value));
        return value;
    }

  private:
    std::vector<void*> handles_of_thread() const {
        std::vector<void*> handles;
        const Array* const all = get_();
        const auto* const rows = reinterpret_cast<const Register*>(all->data);
        for (unsigned i = 0; i < all->count; ++i)
            if (std::string("x") + std::to_string(handles.size()) == rows[i].name)
                handles.push_back(rows[i].handle);
        return handles;
    }

    GetRegisters get_ = nullptr;
    ReadRegister read_ = nullptr;
    NewByteArray new_ = nullptr;
    SetArraySize resize_ = nullptr;
};
Registers registers;

template <Filtered Kind>
void on_known_cleared_line(unsigned vcpu, void* data) {
    const auto& operation = *static_cast<const Operation*>(data);
    const std::uint64_t address = registers.read(operation.address_register);
    refer<Kind>(*threads[vcpu], address & -std::uint64_t{operation.bytes}, operation.bytes, true,
                operation.site);
}

// --- The choice of callbacks.

// Calls `Callback` if the thread executes a profiled part of the program.
template <auto Callback, typename... Rest>
void in_regions(unsigned vcpu, Rest... rest) {
    if (threads[vcpu]->is_profiled()) Callback(vcpu, rest...);
}

// A run without regions does not pay for the check.
template <auto Callback, typename Type>
void use(Type*& callback, bool has_regions) {
    callback = Callback;
    if (has_regions) callback = in_regions<Callback>;
}

template <Filtered Kind>
void use_fetches(Callbacks& callbacks, bool has_regions) {
    callbacks.block_with_fetch = on_fetched_block<Kind>;
    use<on_fetch<Kind>>(callbacks.fetch, has_regions);
}

template <Filtered Kind>
void use_references(Callbacks& callbacks, bool has_regions) {
    use<on_reference<Kind>>(callbacks.reference, has_regions);
    use<on_code<Kind>>(callbacks.code, has_regions);
    use<on_known_cleared_line<Kind>>(callbacks.cleared_line, has_regions);
    use<on_variable>(callbacks.variable, has_regions);
    use<on_end_of_variable>(callbacks.end_of_variable, has_regions);
    use<on_cleared_line>(callbacks.unknown_cleared_line, has_regions);
}

}  // namespace

Callbacks callbacks_for(const trace::Spec& spec, bool has_regions) {
    Callbacks callbacks;
    callbacks.block_in_order = on_block_in_order;
    callbacks.block = on_block;
    if (spec.captures & trace::kCaptureFetches) {
        if (spec.fetch.ways != 0)
            use_fetches<Filtered::kMisses>(callbacks, has_regions);
        else if (spec.fetch.sets != 0)
            use_fetches<Filtered::kRecent>(callbacks, has_regions);
        else
            use_fetches<Filtered::kNot>(callbacks, has_regions);
    }
    constexpr std::uint32_t kInOrder = trace::kCapturePredictions | trace::kCaptureBranches |
                                       trace::kCaptureBlocks | trace::kCaptureIntervals |
                                       trace::kCaptureCalls | trace::kCaptureContexts;
    callbacks.in_order = has_regions || spec.captures & kInOrder;
    if (!(spec.captures & trace::kCaptureReferences)) return callbacks;
    if (spec.data.ways != 0)
        use_references<Filtered::kMisses>(callbacks, has_regions);
    else if (spec.data.sets == 0 || spec.data.footprints() || spec.data.runs())
        use_references<Filtered::kNot>(callbacks, has_regions);
    else if (spec.data.first_writes())
        use_references<Filtered::kFirstWrites>(callbacks, has_regions);
    else
        use_references<Filtered::kRecent>(callbacks, has_regions);
    return callbacks;
}

bool find_registers() {
    return registers.find_functions();
}

}  // namespace assay::qemu
