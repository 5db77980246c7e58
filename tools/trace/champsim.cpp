#include "tools/trace/champsim.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "tools/trace/import.h"
#include "tools/trace/places.h"

#include <Zydis/Zydis.h>
#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::tracing {
namespace {

const ZydisDecoder& decoder() {
    static const ZydisDecoder decoder = [] {
        ZydisDecoder made;
        ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        return made;
    }();
    return decoder;
}

// Pin's numbers of the general registers, flags and instruction pointer. All parts of a register
// have the register's number. Vector and other registers have numbers that Pin gives to parts of
// registers. 0 for segment registers, control registers and others.
std::uint8_t number_of(ZydisRegister reg) {
    constexpr std::uint8_t kGeneral[] = {10, 9, 8, 7, kStackPointer, 5, 4, 3};  // rax, rcx, rdx...
    constexpr unsigned kR8 = 11, kVectors = 64, kMasks = 96, kMmx = 104, kX87 = 112;
    const unsigned id = static_cast<std::uint8_t>(ZydisRegisterGetId(reg));
    switch (ZydisRegisterGetClass(reg)) {
        case ZYDIS_REGCLASS_GPR8:
        case ZYDIS_REGCLASS_GPR16:
        case ZYDIS_REGCLASS_GPR32:
        case ZYDIS_REGCLASS_GPR64: {
            const ZydisRegister whole =
                ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
            const unsigned number = static_cast<std::uint8_t>(ZydisRegisterGetId(whole));
            return number < 8 ? kGeneral[number] : static_cast<std::uint8_t>(kR8 + number - 8);
        }
        case ZYDIS_REGCLASS_FLAGS:
            return kFlagsRegister;
        case ZYDIS_REGCLASS_IP:
            return kInstructionPointer;
        case ZYDIS_REGCLASS_XMM:
        case ZYDIS_REGCLASS_YMM:
        case ZYDIS_REGCLASS_ZMM:
            return static_cast<std::uint8_t>(kVectors + id);
        case ZYDIS_REGCLASS_MASK:
            return static_cast<std::uint8_t>(kMasks + id);
        case ZYDIS_REGCLASS_MMX:
            return static_cast<std::uint8_t>(kMmx + id);
        case ZYDIS_REGCLASS_X87:
            return static_cast<std::uint8_t>(kX87 + id);
        default:
            return 0;
    }
}

bool is_special(std::uint8_t reg) {
    return reg == kStackPointer || reg == kFlagsRegister || reg == kInstructionPointer;
}

// Omits registers that do not fit. The special registers of branches come first, and always fit.
void put(std::span<std::uint8_t> registers, std::uint8_t reg, bool first) {
    if (reg == 0 || std::find(registers.begin(), registers.end(), reg) != registers.end()) return;
    if (first) {
        std::rotate(registers.begin(), registers.end() - 1, registers.end());
        registers.front() = reg;
        return;
    }
    const auto free = std::find(registers.begin(), registers.end(), 0);
    if (free != registers.end()) *free = reg;
}

bool is_branch(const ZydisDecodedInstruction& instruction) {
    switch (instruction.meta.category) {
        case ZYDIS_CATEGORY_COND_BR:
        case ZYDIS_CATEGORY_UNCOND_BR:
        case ZYDIS_CATEGORY_CALL:
        case ZYDIS_CATEGORY_RET:
            return true;
        default:
            return false;
    }
}

}  // namespace

ChampsimForm champsim_form(const trace_instr_t& instr) {
    ChampsimForm form{};
    form.record.ip = instr.pc;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder(), instr.bytes, instr.length, &instruction, operands)))
        return form;
    const bool branch = is_branch(instruction);
    form.record.is_branch = branch ? 1 : 0;
    form.is_conditional = instruction.meta.category == ZYDIS_CATEGORY_COND_BR;
    const std::span sources(form.record.source_registers);
    const std::span destinations(form.record.destination_registers);
    for (unsigned i = 0; i < instruction.operand_count; ++i) {
        const ZydisDecodedOperand& operand = operands[i];
        if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
            form.memory_operands += operand.mem.type == ZYDIS_MEMOP_TYPE_MEM ? 1 : 0;
            put(sources, number_of(operand.mem.base), false);
            put(sources, number_of(operand.mem.index), false);
        }
        if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
        const std::uint8_t reg = number_of(operand.reg.value);
        // A system call counts as no branch, because it returns.
        if (reg == kInstructionPointer && !branch) continue;
        const bool first = branch && is_special(reg);
        if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) put(sources, reg, first);
        if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) put(destinations, reg, first);
    }
    return form;
}

namespace {

template <typename Consume>
void for_each_record(const std::string& path, const Consume& consume) {
    std::string partial;
    std::uint64_t number = 0;
    events::read_file(path, [&](std::string_view block) {
        partial += block;
        std::size_t at = 0;
        for (; partial.size() - at >= sizeof(ChampsimRecord); at += sizeof(ChampsimRecord)) {
            ChampsimRecord record;
            std::memcpy(&record, partial.data() + at, sizeof record);
            ++number;
            if (record.is_branch > 1 || record.branch_taken > 1)
                throw Error(
                    fmt::format("{}: record {} is not one of ChampSim's 64-byte records: their "
                                "ninth and tenth bytes are 0 or 1",
                                path, number));
            consume(record);
        }
        partial.erase(0, at);
    });
    if (!partial.empty())
        throw Error(fmt::format("{} is cut short: {} bytes follow record {}, but a record has {}",
                                path, partial.size(), number, sizeof(ChampsimRecord)));
}

template <std::size_t N>
bool has(const std::uint8_t (&registers)[N], std::uint8_t reg) {
    return std::find(std::begin(registers), std::end(registers), reg) != std::end(registers);
}

// Recognises kinds of branches as ChampSim does (inc/instruction.h), except that a branch that
// reads memory is never direct.
std::uint8_t branch_flags(const ChampsimRecord& record) {
    const bool reads_sp = has(record.source_registers, kStackPointer);
    const bool writes_sp = has(record.destination_registers, kStackPointer);
    const bool reads_ip = has(record.source_registers, kInstructionPointer);
    const bool reads_flags = has(record.source_registers, kFlagsRegister);
    const bool reads_memory =
        std::any_of(std::begin(record.source_memory), std::end(record.source_memory),
                    [](std::uint64_t address) { return address != 0; });
    const bool reads_other = std::any_of(std::begin(record.source_registers),
                                         std::end(record.source_registers), [](std::uint8_t reg) {
                                             return reg != 0 && reg != kStackPointer &&
                                                    reg != kFlagsRegister &&
                                                    reg != kInstructionPointer;
                                         });
    if (!has(record.destination_registers, kInstructionPointer)) return 0;
    if (reads_sp && writes_sp && !reads_ip) return TRACE_INSTR_RETURN;
    if (reads_sp && writes_sp)
        return reads_other || reads_memory ? TRACE_INSTR_CALL | TRACE_INSTR_INDIRECT
                                           : TRACE_INSTR_CALL;
    if (reads_flags || (reads_ip && reads_other && !reads_memory)) return TRACE_INSTR_CONDITIONAL;
    return reads_other || reads_memory ? TRACE_INSTR_INDIRECT : 0;
}

// An address that is both read and written is a modification.
std::vector<Reference> references_of(const ChampsimRecord& record, unsigned bytes) {
    std::vector<Reference> references;
    const auto size = static_cast<std::uint16_t>(bytes);
    for (const std::uint64_t address : record.source_memory)
        if (address != 0) references.push_back({address, size, TRACE_SITE_READ});
    const std::size_t reads = references.size();
    for (const std::uint64_t address : record.destination_memory) {
        if (address == 0) continue;
        std::size_t i = 0;
        while (i < reads &&
               (references[i].address != address || references[i].kind != TRACE_SITE_READ))
            ++i;
        if (i < reads)
            references[i].kind = TRACE_SITE_MODIFY;
        else
            references.push_back({address, size, TRACE_SITE_WRITE});
    }
    return references;
}

}  // namespace

void read_champsim(const Import& import, TraceMaker& maker) {
    Lengths lengths;
    std::optional<std::uint64_t> last;
    for_each_record(import.file, [&](const ChampsimRecord& record) {
        if (last) lengths.learn(*last, record.ip);
        last.reset();
        if (!record.is_branch || !record.branch_taken) last = record.ip;
    });
    for_each_record(import.file, [&](const ChampsimRecord& record) {
        // The length of a branch that is always taken is unknown. Every branch except a return has
        // at least two bytes.
        const std::uint8_t flags = record.is_branch ? branch_flags(record) : std::uint8_t{0};
        const bool longer = record.is_branch && !(flags & TRACE_INSTR_RETURN);
        maker.add({record.ip, lengths.of(record.ip, longer ? 2 : 1), flags, record.is_branch != 0},
                  references_of(record, import.reference_bytes));
    });
}

}  // namespace assay::tracing
