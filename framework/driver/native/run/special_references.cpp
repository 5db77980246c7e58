// References that have to be computed when the instruction runs: repeated string instructions,
// gathers and scatters, bit strings, xlat, clzero. The functions run right before the instruction.
#include "framework/driver/native/run/special_references.h"

#include "framework/driver/native/machine/saved_state.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/run/special_instructions.h"
#include "framework/driver/native/translate/values.h"

#include <Zydis/Zydis.h>
#include <algorithm>
#include <array>
#include <cstring>

namespace assay::native {
namespace {

std::uint64_t address_of(const Context& context, const Instruction& instruction,
                         const MemoryReference& reference) {
    std::uint64_t address = static_cast<std::uint64_t>(
        (reference.encoded ? instruction.displacement() : 0) + reference.bias);
    if (reference.base == kRip)
        address += instruction.next_pc();
    else if (reference.base != kNoGpr)
        address += context.gpr[reference.base];
    if (reference.index != kNoGpr) address += context.gpr[reference.index] * reference.scale;
    if (reference.address32) address = static_cast<std::uint32_t>(address);
    return address + context.segment_base(reference.segment);
}

void record_stretch(ReferenceRecorder& recorder, const Form& form,
                    const RepeatedString::Stretch& stretch, std::int64_t step, std::uint32_t site) {
    const unsigned bytes = form.references[0].bytes;
    const bool two = form.reference_count == 2;
    for (std::uint64_t i = 0; i < stretch.iterations; ++i) {
        const std::uint64_t offset = static_cast<std::uint64_t>(step) * i;
        recorder.reference(stretch.addresses[0] + offset, bytes, site);
        if (two) recorder.reference(stretch.addresses[1] + offset, bytes, site + 1);
    }
}

// The byte at a bit offset in a register (SDM, BT): signed, in units of the operand size.
std::uint64_t bit_string_address(const Context& context, const Instruction& instruction) {
    const Form& form = *instruction.form;
    const std::uint8_t modrm = instruction.bytes[form.modrm_offset];
    std::uint8_t rex = 0;
    for (unsigned i = 0; i + 2U < form.modrm_offset + 0U; ++i)
        if ((instruction.bytes[i] & 0xf0) == 0x40) rex = instruction.bytes[i];
    std::uint64_t value = context.gpr[(modrm >> 3 & 7) | (rex & 4) << 1];
    std::int64_t offset = static_cast<std::int64_t>(value);
    if (form.references[0].bytes == 4) offset = static_cast<std::int32_t>(value);
    if (form.references[0].bytes == 2) offset = static_cast<std::int16_t>(value);
    return address_of(context, instruction, form.references[0]) +
           static_cast<std::uint64_t>(offset >> 3);
}

std::uint64_t translate_address(const Context& context, const Instruction& instruction) {
    const MemoryReference& reference = instruction.form->references[0];
    const std::uint64_t offset = context.gpr[RBX] + (context.gpr[RAX] & 0xff);
    return (reference.address32 ? static_cast<std::uint32_t>(offset) : offset) +
           context.segment_base(reference.segment);
}

std::uint64_t cleared_address(const Context& context, const Instruction& instruction) {
    return address_of(context, instruction, instruction.form->references[0]) &
           ~std::uint64_t{kClearedBytes - 1};
}

struct Gather {
    unsigned index_reg = 0, index_bytes = 4, elements = 0, element_bytes = 4;
    unsigned char mask[64] = {};  // sign bits tell which elements are accessed
    std::uint64_t opmask = 0;
    bool by_opmask = false;
};

// Decodes again, because gathers are too rare to keep their operands in every form.
bool describe_gather(const Context& context, const Instruction& instruction, Gather& out) {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecodedInstruction zydis;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, instruction.bytes, 15, &zydis, operands)))
        return false;
    unsigned index_width = 0, data_width = 0;
    for (unsigned i = 0; i < zydis.operand_count; ++i) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) {
            const ZydisRegister index = operands[i].mem.index;
            out.index_reg = static_cast<std::uint8_t>(ZydisRegisterGetId(index));
            index_width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, index) / 8;
            out.element_bytes = operands[i].element_size / 8;
        } else if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER) {
            const ZydisRegister reg = operands[i].reg.value;
            const unsigned id = static_cast<std::uint8_t>(ZydisRegisterGetId(reg));
            if (ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_MASK) {
                out.by_opmask = true;
                out.opmask = read_opmask(context, id);
            } else {
                data_width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) / 8;
                if (!out.by_opmask) read_vector(context, id, out.mask);  // the last one: VEX mask
            }
        }
    }
    switch (zydis.mnemonic) {
        case ZYDIS_MNEMONIC_VGATHERQPS:
        case ZYDIS_MNEMONIC_VGATHERQPD:
        case ZYDIS_MNEMONIC_VPGATHERQD:
        case ZYDIS_MNEMONIC_VPGATHERQQ:
        case ZYDIS_MNEMONIC_VSCATTERQPS:
        case ZYDIS_MNEMONIC_VSCATTERQPD:
        case ZYDIS_MNEMONIC_VPSCATTERQD:
        case ZYDIS_MNEMONIC_VPSCATTERQQ:
            out.index_bytes = 8;
            break;
        default:
            out.index_bytes = 4;
            break;
    }
    if (out.element_bytes == 0) out.element_bytes = 4;
    out.elements = std::min(index_width / out.index_bytes, data_width / out.element_bytes);
    return true;
}

// Calls `visit` with the address and the size of each accessed element.
template <typename Visit>
void for_each_element(const Context& context, const Instruction& instruction, const Visit& visit) {
    const MemoryReference& reference = instruction.form->references[0];
    Gather gather;
    if (!describe_gather(context, instruction, gather)) return;
    unsigned char indexes[64];
    read_vector(context, gather.index_reg, indexes);
    const std::uint64_t base = address_of(context, instruction, reference);
    for (unsigned i = 0; i < gather.elements; ++i) {
        const bool wanted = gather.by_opmask
                                ? gather.opmask >> i & 1
                                : gather.mask[(i + 1) * gather.element_bytes - 1] & 0x80;
        if (!wanted) continue;
        std::int64_t index = 0;
        if (gather.index_bytes == 8) {
            std::memcpy(&index, indexes + i * 8ULL, 8);
        } else {
            std::int32_t narrow;
            std::memcpy(&narrow, indexes + i * 4ULL, 4);
            index = narrow;
        }
        visit(base + static_cast<std::uint64_t>(index) * reference.scale, gather.element_bytes);
    }
}

}  // namespace

std::optional<FirstAccess> first_access(const Context& context, const Instruction& instruction) {
    const Form& form = *instruction.form;
    std::optional<FirstAccess> first;
    switch (form.special) {
        case Special::kString: {
            std::uint64_t iterations = context.gpr[RCX];
            if (form.references[0].address32) iterations = static_cast<std::uint32_t>(iterations);
            if (iterations == 0) return {};
            first.emplace();
            for (unsigned r = 0; r < form.reference_count; ++r)
                first->address[r] = address_of(context, instruction, form.references[r]);
            return first;
        }
        case Special::kGather:
            for_each_element(context, instruction, [&](std::uint64_t address, unsigned) {
                if (!first) first = FirstAccess{{address, 0}};
            });
            return first;
        case Special::kBitString:
            return FirstAccess{{bit_string_address(context, instruction), 0}};
        case Special::kTranslate:
            return FirstAccess{{translate_address(context, instruction), 0}};
        case Special::kClearLine:
            return FirstAccess{{cleared_address(context, instruction), 0}};
        case Special::kFlushLine:
            return FirstAccess{{address_of(context, instruction, form.references[0]), 0}};
        case Special::kNone:
            return {};
    }
    return {};
}

void SpecialReferences::record(const Instruction& instruction, std::uint32_t first_site) {
    switch (instruction.form->special) {
        case Special::kString:
            return record_string(instruction, first_site);
        case Special::kGather:
            return record_gather(instruction, first_site);
        case Special::kBitString:
            return record_single(instruction, bit_string_address(context_, instruction), 1,
                                 first_site);
        case Special::kTranslate:
            return record_single(instruction, translate_address(context_, instruction), 1,
                                 first_site);
        case Special::kClearLine:
            return record_single(instruction, cleared_address(context_, instruction), kClearedBytes,
                                 first_site);
        case Special::kFlushLine:
            return forget_recent_lines();
        case Special::kNone:
            return record_large(instruction, first_site);
    }
}

void SpecialReferences::record_string(const Instruction& instruction, std::uint32_t site) {
    const Form& form = *instruction.form;
    const bool references = tables_.captures(trace::kCaptureReferences);
    ReferenceRecorder recorder = this->recorder(instruction, site);
    RepeatedString string(context_, instruction, watch_, lock_);
    while (const auto stretch = string.next())
        if (references) record_stretch(recorder, form, *stretch, string.step(), site);
    if (references) site += form.reference_count;
    const bool ended_early = string.ends_by_comparison() || string.faults();
    trace_.append(string.iterations(), site, ended_early ? 1 : 0);
    if (tables_.captures(trace::kCapturePredictions))
        predict_iterations(instruction, string, site + 1);
}

// Follows Valgrind (VEX/priv/guest_amd64_toIR.c, dis_REP_op). It has a branch for the check of rcx
// before each iteration, which is taken to continue with the instruction. A second branch is for
// the result of a comparison, back to the instruction.
void SpecialReferences::predict_iterations(const Instruction& instruction,
                                           const RepeatedString& string, std::uint32_t site) {
    const trace::PredictorShape& shape = tables_.spec().predictor;
    Predictor& predictor = context_.predictor;
    std::uint64_t branches = string.iterations();
    if (compares(*instruction.form) && branches != 0) {
        const bool goes_on = !string.ends_by_comparison() && !string.faults();
        branches += string.iterations() - 1 + (goes_on ? 1 : 0);
    }
    std::uint32_t mispredicted = predictor.taken_in_a_row(shape, instruction.pc, branches);
    if (!string.faults()) {
        ++branches;
        mispredicted += predictor.conditional(shape, instruction.pc, false);
    }
    trace_.append(branches, site, mispredicted);
}

void SpecialReferences::record_gather(const Instruction& instruction, std::uint32_t site) {
    ReferenceRecorder recorder = this->recorder(instruction, site);
    std::uint64_t accessed = 0;
    for_each_element(context_, instruction, [&](std::uint64_t address, unsigned bytes) {
        recorder.reference(address, bytes, site);
        ++accessed;
    });
    trace_.append(accessed, site + 1);
}

void SpecialReferences::record_single(const Instruction& instruction, std::uint64_t address,
                                      unsigned bytes, std::uint32_t site) {
    recorder(instruction, site).reference(address, bytes, site);
}

// After a flush of a line, the most recent line of a set may be in no cache, or clean.
void SpecialReferences::forget_recent_lines() {
    trace_.forget_recent_lines();
    std::memset(context_.fetch_filter, 0, sizeof context_.fetch_filter);
}

// References to more than two lines.
void SpecialReferences::record_large(const Instruction& instruction, std::uint32_t site) {
    ReferenceRecorder recorder = this->recorder(instruction, site);
    for (unsigned r = 0; r < instruction.form->reference_count; ++r) {
        const MemoryReference& reference = instruction.form->references[r];
        recorder.reference(address_of(context_, instruction, reference), reference.bytes, site + r);
    }
}

namespace {

std::uint64_t low_bytes(std::uint64_t value, unsigned bytes) {
    return bytes >= 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

// A value in words, the lowest first.
using Bytes = std::array<std::uint64_t, trace::kMostValueBytes / sizeof(std::uint64_t)>;

std::optional<Bytes> read_memory(std::uint64_t address, unsigned bytes) {
    Bytes value{};
    if (!read_target(address, value.data(), bytes)) return {};
    return value;
}

std::optional<Bytes> read_register(const Context& context, const Value& value) {
    switch (value.place) {
        case Value::kGpr:
            return Bytes{low_bytes(context.gpr[value.number], value.bytes)};
        case Value::kHighByte:
            return Bytes{context.gpr[value.number] >> 8 & 0xff};
        case Value::kVector: {
            unsigned char bytes[trace::kMostValueBytes];
            Bytes vector;
            read_vector(context, value.number, bytes);
            std::memcpy(vector.data(), bytes, sizeof bytes);
            return vector;
        }
        case Value::kMask:
            return Bytes{low_bytes(read_opmask(context, value.number), value.bytes)};
        case Value::kMmx:
            return Bytes{read_mmx(context, value.number)};
        case Value::kX87:
            return Bytes{read_x87(context, value.number)};
        default:
            return {};
    }
}

// Stores a value in the context, in the same places as translated code.
void keep(Context& context, unsigned index, const Bytes& value) {
    context.values[index] = value[0];
    std::copy(value.begin(), value.end(), context.wide_values[index]);
}
Bytes kept(const Context& context, unsigned index) {
    Bytes value;
    std::copy_n(context.wide_values[index], value.size(), value.begin());
    return value;
}

bool is_memory(const Value& value) {
    return value.place == Value::kMemory || value.place == Value::kAddress;
}

}  // namespace

// For a value that the instruction stores, keeps its address instead.
void SpecialValues::read(const Instruction& instruction) {
    const Form& form = *instruction.form;
    const trace::ValueList* list = tables_.value_list(form.opcode, form.trace_flags);
    context_.values_present = 0;
    if (list == nullptr) return;
    const std::optional<FirstAccess> first = first_access(context_, instruction);
    for (unsigned i = 0; i < list->count; ++i) {
        const Value value = value_of(form, *list, i);
        std::optional<Bytes> read;
        if (is_memory(value) && first) {
            const MemoryReference& reference = form.references[value.number];
            const std::uint64_t address = first->address[value.number];
            const bool now = value.before || reference.kind == TRACE_SITE_READ;
            read = value.place == Value::kMemory && now ? read_memory(address, value.bytes)
                                                        : Bytes{address};
        } else if (value.before) {
            read = read_register(context_, value);
        }
        if (!read) continue;
        keep(context_, i, *read);
        context_.values_present |= std::uint64_t{1} << i;
    }
}

void SpecialValues::record(const Instruction& instruction, std::uint32_t first_site) {
    const Form& form = *instruction.form;
    const trace::ValueList* list = tables_.value_list(form.opcode, form.trace_flags);
    if (list == nullptr) return;
    trace_record_t records[ThreadTrace::kMostTogether] = {{0, first_site, 0}};
    unsigned count = 1;
    std::uint32_t site = first_site;
    for (unsigned i = 0; i < list->count; ++i) {
        const Value value = value_of(form, *list, i);
        if (value.place == Value::kNone) continue;
        std::optional<Bytes> read;
        if (context_.values_present >> i & 1) read = kept(context_, i);
        const bool stored = value.place == Value::kMemory && !value.before &&
                            form.references[value.number].kind != TRACE_SITE_READ;
        if (stored && read) read = read_memory(read->front(), value.bytes);
        if (!is_memory(value) && !value.before) read = read_register(context_, value);
        for (unsigned part = 0; part < value.parts(); ++part) {
            ++site;
            if (read) records[count++] = {(*read)[part], site, 0};
        }
    }
    trace_.append({records, count});
}

void SpecialValues::read_saved(const Instruction& instruction, bool before) {
    const trace::ValueList* list =
        tables_.value_list(instruction.form->opcode, instruction.form->trace_flags);
    if (list == nullptr) return;
    for (unsigned i = 0; i < list->count; ++i) {
        const Value value = value_of(*instruction.form, *list, i);
        if (value.before == before && is_in_saved_state(*instruction.form, value))
            context_.values[i] = read_register(context_, value)->front();
    }
}

}  // namespace assay::native
