#include "tools/trace/import_formats.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "tools/trace/champsim.h"
#include "tools/trace/lengths.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::tracing {
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
                    fmt::format("{}: record {} is none of ChampSim's, which have 64 bytes: "
                                "the ninth and the tenth are 0 or 1",
                                path, number));
            consume(record);
        }
        partial.erase(0, at);
    });
    if (!partial.empty())
        throw Error(fmt::format("{} is cut off: {} bytes behind record {}, and a record has {}",
                                path, partial.size(), number, sizeof(ChampsimRecord)));
}

template <std::size_t N>
bool has(const std::uint8_t (&registers)[N], std::uint8_t reg) {
    return std::find(std::begin(registers), std::end(registers), reg) != std::end(registers);
}

// As ChampSim tells kinds of branches (inc/instruction.h); but one that reads memory is no direct
// one.
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

// An address that is written and read is modified.
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
        // Of a branch that has always been taken the length is not known. None has one byte but
        // returns.
        const std::uint8_t flags = record.is_branch ? branch_flags(record) : std::uint8_t{0};
        const bool longer = record.is_branch && !(flags & TRACE_INSTR_RETURN);
        maker.add({record.ip, lengths.of(record.ip, longer ? 2 : 1), flags, record.is_branch != 0},
                  references_of(record, import.reference_bytes));
    });
}

}  // namespace assay::tracing
