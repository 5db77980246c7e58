// The plugin that QEMU loads: it registers callbacks for what the trace specification asks for.
//
// Executions of a block are counted where QEMU's version can do that without a call, as long as the
// program has one thread. Callbacks do the rest. QEMU calls them in the thread of the vCPU.
#include "framework/driver/qemu/command.h"
#include "framework/driver/qemu/guest.h"
#include "framework/driver/qemu/plugin_interface.h"

#include <dlfcn.h>
#include <pthread.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
extern __attribute__((visibility("default"))) int qemu_plugin_version;
int qemu_plugin_version = 1;
__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id,
                                                               const qemu_info_t* info, int argc,
                                                               char** argv);
}

namespace assay::qemu {
namespace {

// QEMU refuses a plugin of a version that it does not offer. It reads the version after this.
__attribute__((constructor)) void choose_version() {
    if (dlsym(RTLD_DEFAULT, kOfVersion2) != nullptr) qemu_plugin_version = 2;
}

// Never destroyed: callbacks can come until the process has ended.
Guest* guest = nullptr;
ExecInline exec_inline = nullptr;
InstructionInline instruction_inline = nullptr;

// --- Callbacks of executions and fetches.

enum class Filtered { kNot, kRecent, kFirstWrites, kMisses };

bool in_order = false;  // the specification asks for the order of blocks

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
    const auto& block = *static_cast<const GuestBlock*>(data);
    GuestThread& thread = *threads[vcpu];
    ++thread.counters()[block.index];
    fetch<Kind>(thread, *block.fetch);
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
void refer_to_part(GuestThread& thread, Operation& operation, qemu_plugin_meminfo_t info,
                   std::uint64_t address) {
    if (operation.operand_count == 0) {
        const Operation::Seen seen =
            guest->seen(operation, info, 1U << qemu_plugin_mem_size_shift(info),
                        qemu_plugin_mem_is_store(info));
        return refer<Kind>(thread, address, seen.bytes, seen.writes, seen.site);
    }
    GuestThread::Parts& parts = thread.parts;
    if (parts.operation != &operation) {
        thread.end_execution();
        parts.operation = &operation;
    }
    const isa::Operand& operand = operation.operands[parts.operand];
    const unsigned bytes = 1U << qemu_plugin_mem_size_shift(info);
    const bool is_first = !parts.begun;
    if (is_first) {
        parts.begun = true;
        parts.address = address;
        if (parts.operand == 0) ++parts.references;
        refer<Kind>(thread, address, operand.bytes, operand.kind != TRACE_SITE_READ,
                    operation.site + parts.operand);
    }
    const bool complete = address + bytes >= parts.address + operand.bytes &&
                          (operand.kind == TRACE_SITE_READ || qemu_plugin_mem_is_store(info));
    if (!complete) return;
    parts.begun = false;
    parts.operand = (parts.operand + 1) % operation.operand_count;
    if (operation.variable || parts.operand != 0) return;
    parts = {};
    if (is_first && operation.operand_count == 1)
        __atomic_store_n(&operation.whole, info, __ATOMIC_RELAXED);
}

template <Filtered Kind>
[[gnu::noinline]] void refer_slowly(GuestThread& thread, qemu_plugin_meminfo_t info,
                                    std::uint64_t address, Operation& operation) {
    if (__atomic_load_n(&operation.whole, __ATOMIC_ACQUIRE) == info)
        refer<Kind>(thread, address, operation.bytes, operation.writes, operation.site);
    else
        refer_to_part<Kind>(thread, operation, info, address);
}

// Nearly all references end here if there is a filter.
template <Filtered Kind>
void on_reference(unsigned vcpu, qemu_plugin_meminfo_t info, std::uint64_t address, void* data) {
    auto& operation = *static_cast<Operation*>(data);
    GuestThread& thread = *threads[vcpu];
    if constexpr (Kind == Filtered::kRecent || Kind == Filtered::kMisses)
        if (__atomic_load_n(&operation.whole, __ATOMIC_ACQUIRE) == info &&
            thread.is_recent(address, operation.bytes)) [[likely]]
            return;
    refer_slowly<Kind>(thread, info, address, operation);
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

// --- What is registered.

struct Callbacks {
    qemu_plugin_vcpu_udata_cb block_with_fetch = nullptr, fetch = nullptr, code = nullptr;
    qemu_plugin_vcpu_udata_cb cleared_line = nullptr;
    qemu_plugin_mem_cb reference = nullptr;
};
Callbacks callbacks;

template <Filtered Kind>
void use_fetches() {
    callbacks.block_with_fetch = on_fetched_block<Kind>;
    callbacks.fetch = on_fetch<Kind>;
}

template <Filtered Kind>
void use_references() {
    callbacks.reference = on_reference<Kind>;
    callbacks.code = on_code<Kind>;
    callbacks.cleared_line = on_known_cleared_line<Kind>;
}

void choose_callbacks(const trace::Spec& spec) {
    if (spec.captures & trace::kCaptureFetches) {
        if (spec.fetch.ways != 0)
            use_fetches<Filtered::kMisses>();
        else if (spec.fetch.sets != 0)
            use_fetches<Filtered::kRecent>();
        else
            use_fetches<Filtered::kNot>();
    }
    constexpr std::uint32_t kInOrder = trace::kCapturePredictions | trace::kCaptureBranches |
                                       trace::kCaptureBlocks | trace::kCaptureIntervals |
                                       trace::kCaptureCalls | trace::kCaptureContexts;
    in_order = spec.captures & kInOrder;
    if (!(spec.captures & trace::kCaptureReferences)) return;
    if (spec.data.ways != 0)
        use_references<Filtered::kMisses>();
    else if (spec.data.sets == 0 || spec.data.footprints() || spec.data.runs())
        use_references<Filtered::kNot>();
    else if (spec.data.first_writes())
        use_references<Filtered::kFirstWrites>();
    else
        use_references<Filtered::kRecent>();
}

// What to call when the block begins; nullptr: its executions can be counted without a call.
qemu_plugin_vcpu_udata_cb callback_of(const GuestBlock& block) {
    if (in_order) return on_block_in_order;
    if (block.fetch != nullptr) return callbacks.block_with_fetch;
    return exec_inline == nullptr || guest->parallel() ? on_block : nullptr;
}

void register_block(qemu_plugin_tb* translated, GuestBlock& block) {
    if (const auto callback = callback_of(block))
        qemu_plugin_register_vcpu_tb_exec_cb(translated, callback, QEMU_PLUGIN_CB_NO_REGS, &block);
    else
        exec_inline(translated, QEMU_PLUGIN_INLINE_ADD_U64,
                    guest->counters_of_only_thread() + block.index, 1);
}

// The same for a block inside a translation.
void register_block(qemu_plugin_insn* first, GuestBlock& block) {
    if (const auto callback = callback_of(block))
        qemu_plugin_register_vcpu_insn_exec_cb(first, callback, QEMU_PLUGIN_CB_NO_REGS, &block);
    else
        instruction_inline(first, QEMU_PLUGIN_INLINE_ADD_U64,
                           guest->counters_of_only_thread() + block.index, 1);
}

void register_instruction(qemu_plugin_insn* instruction, const GuestBlock::Part& part,
                          bool is_first, bool follows_variable) {
    const auto before = [&](qemu_plugin_vcpu_udata_cb callback, void* data) {
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, callback, QEMU_PLUGIN_CB_NO_REGS, data);
    };
    if (follows_variable) before(on_end_of_variable, nullptr);
    if (part.fetch != nullptr && (!is_first || in_order)) before(callbacks.fetch, part.fetch);
    if (part.code != nullptr) before(callbacks.code, part.code);
    if (part.clears_line && callbacks.reference != nullptr && part.operation == nullptr)
        before(on_cleared_line, nullptr);
    if (part.operation == nullptr) return;
    if (part.clears_line)
        return qemu_plugin_register_vcpu_insn_exec_cb(instruction, callbacks.cleared_line,
                                                      QEMU_PLUGIN_CB_R_REGS, part.operation);
    if (part.operation->variable) before(on_variable, part.operation);
    qemu_plugin_register_vcpu_mem_cb(instruction, callbacks.reference, QEMU_PLUGIN_CB_NO_REGS,
                                     QEMU_PLUGIN_MEM_RW, part.operation);
}

// The instructions of a block. On x86, QEMU takes the last one back if it would cross the end of a
// page, but versions before 8.1 still show its first bytes.
std::vector<GuestCode::Piece> pieces_of(const qemu_plugin_tb* translated) {
    std::vector<GuestCode::Piece> pieces(qemu_plugin_tb_n_insns(translated));
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const qemu_plugin_insn* const instruction = qemu_plugin_tb_get_insn(translated, i);
        const void* const host = qemu_plugin_insn_haddr(instruction);
        pieces[i] = {qemu_plugin_insn_vaddr(instruction),
                     {static_cast<const std::uint8_t*>(host), qemu_plugin_insn_size(instruction)}};
    }
    if (pieces.size() > 1 && guest->code.is_incomplete(pieces.back())) pieces.pop_back();
    return pieces;
}

GuestBlock& block_of(std::span<const GuestCode::Piece> pieces) {
    GuestBlock* const block = guest->code.block_of(pieces);
    if (block == nullptr)
        guest->refuse("the program has more code than the trace segment can hold");
    return *block;
}

// A translation can have several blocks.
void register_all(qemu_plugin_tb* translated, std::span<GuestCode::Piece> pieces,
                  bool faults_anywhere) {
    std::size_t i = 0;
    const Operation* before = nullptr;
    for (const std::span<const GuestCode::Piece> part :
         guest->code.divide(pieces, faults_anywhere)) {
        GuestBlock& block = block_of(part);
        qemu_plugin_insn* const first = qemu_plugin_tb_get_insn(translated, i);
        if (i == 0)
            register_block(translated, block);
        else
            register_block(first, block);
        for (const GuestBlock::Part& instruction : block.parts) {
            register_instruction(qemu_plugin_tb_get_insn(translated, i++), instruction,
                                 &instruction == &block.parts.front(),
                                 before != nullptr && before->variable);
            before = instruction.operation;
        }
    }
}

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* translated) {
    const std::lock_guard locked(guest->lock);
    std::vector<GuestCode::Piece> pieces = pieces_of(translated);
    const auto host = reinterpret_cast<std::uint64_t>(pieces.front().bytes.data());
    guest->set_base(host - pieces.front().pc);
    guest->mappings.need(pieces.front().pc, host);
    register_all(translated, pieces, false);
}

// --- Whole machines.

PointToData point_to_data = nullptr;
CopyData copy_data = nullptr;

void on_translation_in_machine(qemu_plugin_id_t, qemu_plugin_tb* translated) {
    constexpr std::size_t kLongestInstruction = 16;
    const std::lock_guard locked(guest->lock);
    std::vector<std::array<std::uint8_t, kLongestInstruction>> copies(
        qemu_plugin_tb_n_insns(translated));
    std::vector<GuestCode::Piece> pieces(copies.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const qemu_plugin_insn* const instruction = qemu_plugin_tb_get_insn(translated, i);
        std::size_t bytes = std::min(qemu_plugin_insn_size(instruction), kLongestInstruction);
        if (copy_data != nullptr)
            bytes = copy_data(instruction, copies[i].data(), bytes);
        else
            std::memcpy(copies[i].data(), point_to_data(instruction), bytes);
        pieces[i] = {qemu_plugin_insn_vaddr(instruction), {copies[i].data(), bytes}};
    }
    register_all(translated, pieces, true);
}

// --- Threads and system calls.

void on_thread(qemu_plugin_id_t, unsigned vcpu) {
    guest->begin_thread(vcpu);
}

void on_thread_end(qemu_plugin_id_t, unsigned vcpu) {
    guest->end_thread(vcpu);
}

void on_call(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::uint64_t a, std::uint64_t b,
             std::uint64_t c, std::uint64_t d, std::uint64_t e, std::uint64_t f, std::uint64_t,
             std::uint64_t) {
    guest->before_call(vcpu, number, {{a, b, c, d, e, f}});
}

void on_call_end(qemu_plugin_id_t, unsigned, std::int64_t number, std::int64_t) {
    guest->after_call(number);
}

void on_exit(qemu_plugin_id_t, void*) {
    guest->ends();
}

void before_fork() {
    guest->lock.lock();
}

void after_fork_in_parent() {
    guest->lock.unlock();
}

void after_fork_in_child() {
    guest->lock.unlock();
    guest->become_child();
}

int fail(const char* why) {
    std::fprintf(stderr, "assay: %s\n", why);
    return -1;
}

}  // namespace

// Refuses an image that this emulator does not run. That of AArch64 runs 32-bit machines too.
void check_target(const GuestImage& image, const std::string& path, const qemu_info_t& info) {
    const isa::Architecture& architecture = *image.architecture();
    const std::string target = info.target_name;
    if (!info.system_emulation)
        guest->refuse("--image is for the emulator of a whole machine: qemu-system-" +
                      std::string(architecture.qemu));
    if (architecture.qemu != target && !(architecture.qemu == "arm" && target == "aarch64"))
        guest->refuse(path + " is built for " + std::string(architecture.name) +
                      ", but this QEMU emulates " + target + "; start qemu-system-" +
                      std::string(architecture.qemu));
}

void find_functions(const qemu_info_t& info) {
    exec_inline = reinterpret_cast<ExecInline>(dlsym(RTLD_DEFAULT, kExecInline));
    instruction_inline =
        reinterpret_cast<InstructionInline>(dlsym(RTLD_DEFAULT, kInstructionInline));
    void* const data = dlsym(RTLD_DEFAULT, kInstructionData);
    if (info.version.cur >= kCopiesData)
        copy_data = reinterpret_cast<CopyData>(data);
    else
        point_to_data = reinterpret_cast<PointToData>(data);
}

int install_in_machine(qemu_plugin_id_t id, const qemu_info_t& info, const trace::Launch& launch,
                       const std::string& path) {
    const GuestImage image(path);
    if (image.architecture() == nullptr) return fail("the image cannot be read");
    guest = new Guest(*image.architecture(), nullptr);
    if (!guest->attach(launch)) return fail("the trace segment cannot be mapped");
    check_target(image, path, info);
    find_functions(info);
    choose_callbacks(guest->tables.spec());
    guest->set_machine(image, info.max_vcpus > 1);
    guest->tables.set_pid(getpid());
    qemu_plugin_register_vcpu_init_cb(id, on_thread);
    qemu_plugin_register_vcpu_exit_cb(id, on_thread_end);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation_in_machine);
    qemu_plugin_register_atexit_cb(id, on_exit, nullptr);
    guest->tables.set_state(trace::DriverState::kRunning);
    return 0;
}

// Called by QEMU. Returns 0 if the plugin works.
int install(qemu_plugin_id_t id, const qemu_info_t& info, std::span<char* const> arguments) {
    const char* const variable = std::getenv("ASSAY_DRIVER");
    const auto launch =
        variable ? trace::launch_from((std::string(trace::kLaunchVariable) + variable).c_str())
                 : std::nullopt;
    if (!launch) return fail("this plugin of QEMU cannot run alone; start `assay` instead");
    for (const std::string_view argument : arguments)
        if (argument.starts_with(kImageArgument))
            return install_in_machine(id, info, *launch,
                                      std::string(argument.substr(kImageArgument.size())));
    const auto all = isa::architectures();
    const auto architecture = std::find_if(
        all.begin(), all.end(), [&](const auto& known) { return known.qemu == info.target_name; });
    const CallNumbers* const numbers = call_numbers(info.target_name);
    if (architecture == all.end() || numbers == nullptr || info.system_emulation)
        return fail("this QEMU runs programs that assay does not know");
    guest = new Guest(*architecture, numbers);
    if (!guest->attach(*launch)) return fail("the trace segment cannot be mapped");
    find_functions(info);
    choose_callbacks(guest->tables.spec());
    // The size is that of the processor in the table of architectures.
    constexpr unsigned kClearedBytes = 64;
    if (std::getenv("QEMU_CPU") == nullptr && registers.find_functions())
        guest->code.set_cleared_bytes(kClearedBytes);
    guest->tables.set_pid(getpid());
    qemu_plugin_register_vcpu_init_cb(id, on_thread);
    qemu_plugin_register_vcpu_exit_cb(id, on_thread_end);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_call_end);
    qemu_plugin_register_atexit_cb(id, on_exit, nullptr);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    guest->tables.set_state(trace::DriverState::kRunning);
    return 0;
}

}  // namespace assay::qemu

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc, char** argv) {
    return assay::qemu::install(id, *info, {argv, static_cast<std::size_t>(argc)});
}
