#include "framework/driver/qemu/translation.h"

#include "framework/driver/qemu/callbacks.h"
#include "framework/driver/qemu/guest.h"

#include <dlfcn.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <span>
#include <vector>

namespace assay::qemu {
namespace {

Callbacks callbacks;
ExecInline exec_inline = nullptr;
InstructionInline instruction_inline = nullptr;
PointToData point_to_data = nullptr;
CopyData copy_data = nullptr;

// The function to call when the block begins, and its argument. No function: QEMU counts the
// executions itself.
struct Call {
    qemu_plugin_vcpu_udata_cb function;
    void* argument;
};
Call call_of(GuestBlock& block) {
    if (callbacks.in_order) return {callbacks.block_in_order, &block};
    if (block.fetch != nullptr) return {callbacks.block_with_fetch, block.fetch};
    if (exec_inline == nullptr || guest->parallel()) return {callbacks.block, &block};
    return {};
}

void register_block(qemu_plugin_tb* translated, GuestBlock& block) {
    if (const Call call = call_of(block); call.function != nullptr)
        qemu_plugin_register_vcpu_tb_exec_cb(translated, call.function, QEMU_PLUGIN_CB_NO_REGS,
                                             call.argument);
    else
        exec_inline(translated, QEMU_PLUGIN_INLINE_ADD_U64,
                    guest->counters_of_only_thread() + block.index, 1);
}

// The same for a block inside a translation.
void register_block(qemu_plugin_insn* first, GuestBlock& block) {
    if (const Call call = call_of(block); call.function != nullptr)
        qemu_plugin_register_vcpu_insn_exec_cb(first, call.function, QEMU_PLUGIN_CB_NO_REGS,
                                               call.argument);
    else
        instruction_inline(first, QEMU_PLUGIN_INLINE_ADD_U64,
                           guest->counters_of_only_thread() + block.index, 1);
}

void register_instruction(qemu_plugin_insn* instruction, const GuestBlock::Part& part,
                          bool is_first, bool follows_variable) {
    const auto before = [&](qemu_plugin_vcpu_udata_cb callback, void* data) {
        qemu_plugin_register_vcpu_insn_exec_cb(instruction, callback, QEMU_PLUGIN_CB_NO_REGS, data);
    };
    if (follows_variable) before(callbacks.end_of_variable, nullptr);
    if (part.fetch != nullptr && (!is_first || callbacks.in_order))
        before(callbacks.fetch, part.fetch);
    if (part.code != nullptr) before(callbacks.code, part.code);
    if (part.clears_line && callbacks.reference != nullptr && part.operation == nullptr)
        before(callbacks.unknown_cleared_line, nullptr);
    if (part.operation == nullptr) return;
    if (part.clears_line)
        return qemu_plugin_register_vcpu_insn_exec_cb(instruction, callbacks.cleared_line,
                                                      QEMU_PLUGIN_CB_R_REGS, part.operation);
    if (part.operation->variable) before(callbacks.variable, part.operation);
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

}  // namespace

void prepare_translation(const trace::Spec& spec, const qemu_info_t& info) {
    callbacks = callbacks_for(spec, guest->regions.wanted());
    exec_inline = reinterpret_cast<ExecInline>(dlsym(RTLD_DEFAULT, kExecInline));
    instruction_inline =
        reinterpret_cast<InstructionInline>(dlsym(RTLD_DEFAULT, kInstructionInline));
    void* const data = dlsym(RTLD_DEFAULT, kInstructionData);
    if (info.version.cur >= kCopiesData)
        copy_data = reinterpret_cast<CopyData>(data);
    else
        point_to_data = reinterpret_cast<PointToData>(data);
}

void on_translation(qemu_plugin_id_t, qemu_plugin_tb* translated) {
    const std::lock_guard locked(guest->lock);
    std::vector<GuestCode::Piece> pieces = pieces_of(translated);
    const auto host = reinterpret_cast<std::uint64_t>(pieces.front().bytes.data());
    guest->set_base(host - pieces.front().pc);
    guest->mappings.need(pieces.front().pc, host);
    register_all(translated, pieces, false);
}

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
    if (pieces.back().bytes.empty()) pieces.pop_back();
    if (pieces.empty()) return;
    guest->check(pieces.front().pc, pieces.front().bytes);
    register_all(translated, pieces, true);
}

}  // namespace assay::qemu
