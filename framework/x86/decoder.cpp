#include "framework/x86/decoder.h"

#include "framework/x86/form_operands.h"
#include "framework/x86/make_form.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace assay::native {
namespace {

// nop [rax + rax + "assy"]
constexpr std::array<std::uint8_t, kMarkerBytes> kMarker{0x0f, 0x1f, 0x84, 0x00,
                                                         'a',  's',  's',  'y'};
constexpr std::uint16_t kLongNop = TRACE_OPCODE(1, 0x1f);

bool is_marker(std::span<const std::uint8_t> code) {
    return code.size() >= kMarker.size() &&
           std::equal(kMarker.begin(), kMarker.end(), code.begin());
}

// An int with a vector that programs may not use: the processor reports it as it reports hlt.
// Programs may use 3 and 4, which are reported after the instruction, and 0x80, the system calls of
// 32-bit programs.
constexpr std::array<std::uint8_t, 2> kForbiddenInt{0xcd, 0xff};

bool is_forbidden_int(const std::uint8_t* code) {
    return code[0] == kForbiddenInt[0] && code[1] != 3 && code[1] != 4 && code[1] != 0x80;
}

}  // namespace

struct Decoder::Impl {
    struct alignas(64) Entry {
        FormKey key;
        Form form;
    };
    static constexpr std::size_t kSlots = 1U << 15;
    static constexpr std::size_t kMostForms = kSlots / 4 * 3;

    static constexpr std::size_t kRecent = 1U << 12;
    static constexpr std::size_t kLongest = 15;

    ZydisDecoder zydis;
    // The last instructions, by the low bits of their addresses. A translator decodes most
    // instructions several times: it looks ahead from the blocks before.
    std::vector<Instruction> recent = std::vector<Instruction>(kRecent);
    // Open addressing. A slot holds 1 + the index of an entry, or 0. Entries lie together and never
    // move.
    std::vector<std::uint16_t> slots = std::vector<std::uint16_t>(kSlots);
    std::vector<Entry> entries;
    std::unordered_map<std::uint64_t, Form> unkeyed;  // by pc: forms without a key, or without room
                                                      // in `entries`
    Form marker, forbidden_int;

    Impl() {
        ZydisDecoderInit(&zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        entries.reserve(kMostForms);
        decode_form(kMarker, marker);
        marker.flow = Flow::kMarker;
        decode_form(kForbiddenInt, forbidden_int);
        forbidden_int.flow = Flow::kTrap;
    }

    bool decode_form(std::span<const std::uint8_t> code, Form& form) const;
    // The slot of the key, or the free slot where it belongs.
    std::uint16_t& slot_of(const FormKey& key);
    // The form of the instruction at `code`, whose address is `pc`. Null if the bytes are no
    // instruction.
    const Form* form_of(std::span<const std::uint8_t> code, std::uint64_t pc);
};

bool Decoder::Impl::decode_form(std::span<const std::uint8_t> code, Form& form) const {
    ZydisDecodedInstruction instruction;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis, code.data(), code.size(), &instruction,
                                             operands.data())))
        return false;
    form = make_form(instruction, operands.data());
    if (form.disp_bytes != 1) return true;
    // The scale of an EVEX displacement byte: the displacement that a byte of 1 encodes.
    std::array<std::uint8_t, 15> probe{};
    std::memcpy(probe.data(), code.data(), std::min(code.size(), probe.size()));
    probe[form.disp_offset] = 1;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&zydis, probe.data(), probe.size(), &instruction,
                                             operands.data())))
        return false;
    for (unsigned i = 0; i < instruction.operand_count; ++i)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY && operands[i].mem.disp.has_displacement)
            form.disp_scale = static_cast<std::uint8_t>(operands[i].mem.disp.value);
    return true;
}

std::uint16_t& Decoder::Impl::slot_of(const FormKey& key) {
    std::size_t at = key.hash() % kSlots;
    while (slots[at] != 0 && !(entries[slots[at] - 1U].key == key)) at = (at + 1) % kSlots;
    return slots[at];
}

Decoder::Decoder() : impl_(new Impl) {}
Decoder::~Decoder() {
    delete impl_;
}

const Form* Decoder::Impl::form_of(std::span<const std::uint8_t> code, std::uint64_t pc) {
    const std::optional<FormKey> key = form_key(code);
    std::uint16_t* const slot = key ? &slot_of(*key) : nullptr;
    if (slot != nullptr && *slot != 0) return &entries[*slot - 1U].form;
    Form form;
    if (!decode_form(code, form)) return nullptr;
    if (slot == nullptr || entries.size() == kMostForms) return &(unkeyed[pc] = form);
    entries.push_back({*key, form});
    *slot = static_cast<std::uint16_t>(entries.size());
    return &entries.back().form;
}

bool Decoder::decode(std::span<const std::uint8_t> code, std::uint64_t pc, Instruction& out) {
    const std::size_t available = std::min(code.size(), Impl::kLongest);
    Instruction& recent = impl_->recent[pc % Impl::kRecent];
    if (recent.pc == pc && recent.form != nullptr && available == Impl::kLongest &&
        std::memcmp(recent.bytes, code.data(), Impl::kLongest) == 0) {
        out = recent;
        return true;
    }
    out.pc = pc;
    out.form = impl_->form_of(code.first(available), pc);
    if (out.form == nullptr || out.form->length > available) return false;
    std::memcpy(out.bytes, code.data(), available);
    if (out.form->opcode == kLongNop && is_marker(code)) out.form = &impl_->marker;
    if (is_forbidden_int(out.bytes)) out.form = &impl_->forbidden_int;
    recent = available == Impl::kLongest ? out : Instruction{};
    return true;
}

}  // namespace assay::native
