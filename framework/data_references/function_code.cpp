#include "framework/data_references/function_code.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

namespace assay::data_references {
namespace {

using native::Flow;
using native::Instruction;

constexpr int kMostRanges = 256;
constexpr std::uint64_t kMostBytes = 1 << 24;

std::span<const std::uint8_t> bytes_of(const symbols::ElfFile& file, std::uint64_t start,
                                       std::uint64_t end) {
    const symbols::Section* section = file.section_at(start);
    const Elf_Data* data = section != nullptr ? file.data(*section) : nullptr;
    if (data == nullptr || data->d_buf == nullptr) return {};
    const std::uint64_t first = start - section->header.sh_addr;
    if (first >= data->d_size || end - start > data->d_size - first) return {};
    return {static_cast<const std::uint8_t*>(data->d_buf) + first, end - start};
}

bool has_target(const Instruction& instruction) {
    const Flow flow = instruction.form->flow;
    return flow == Flow::kJump || flow == Flow::kConditional || flow == Flow::kCounted;
}

bool goes_on(const Instruction& instruction, const std::unordered_set<std::uint64_t>& never) {
    switch (instruction.form->flow) {
        case Flow::kJump:
        case Flow::kJumpIndirect:
        case Flow::kReturn:
        case Flow::kInterruptReturn:
        case Flow::kTrap:
            return false;
        default:
            return !never.contains(instruction.next_pc());
    }
}

void decode(FunctionCode& code, std::span<const std::uint8_t> bytes, std::uint64_t pc,
            native::Decoder& decoder) {
    while (!bytes.empty()) {
        Instruction instruction;
        std::size_t length = 1;
        if (decoder.decode(bytes, pc, instruction)) {
            code.instructions.push_back(instruction);
            length = instruction.form->length;
        }
        if (length > bytes.size()) return;
        bytes = bytes.subspan(length);
        pc += length;
    }
}

std::optional<std::uint32_t> index_of(const FunctionCode& code, std::uint64_t pc) {
    const auto at = std::lower_bound(code.instructions.begin(), code.instructions.end(), pc,
                                     [](const Instruction& instruction, std::uint64_t wanted) {
                                         return instruction.pc < wanted;
                                     });
    if (at == code.instructions.end() || at->pc != pc) return std::nullopt;
    return static_cast<std::uint32_t>(at - code.instructions.begin());
}

void divide(FunctionCode& code, const std::unordered_set<std::uint64_t>& never) {
    const std::size_t count = code.instructions.size();
    std::vector<bool> begins(count);
    for (std::size_t i = 0; i < count; ++i) {
        const Instruction& instruction = code.instructions[i];
        if (i == 0 || code.instructions[i - 1].next_pc() != instruction.pc) begins[i] = true;
        if (has_target(instruction)) {
            if (const auto target = index_of(code, instruction.target())) begins[*target] = true;
        }
        const bool ends = has_target(instruction) || !goes_on(instruction, never);
        if (ends && i + 1 < count) begins[i + 1] = true;
    }
    std::vector<std::uint32_t> block_of(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        if (begins[i]) code.blocks.push_back({i, i, {}, false});
        code.blocks.back().end = i + 1;
        block_of[i] = static_cast<std::uint32_t>(code.blocks.size() - 1);
    }
    for (FunctionCode::Block& block : code.blocks) {
        const Instruction& last = code.instructions[block.end - 1];
        const auto add = [&](std::uint64_t pc) {
            const auto target = index_of(code, pc);
            if (!target) return;
            block.successors.push_back(block_of[*target]);
            code.blocks[block_of[*target]].has_predecessor = true;
        };
        if (has_target(last)) add(last.target());
        if (goes_on(last, never)) add(last.next_pc());
    }
}

}  // namespace

FunctionCode read_code(const Dwarf_Die& function, const symbols::ElfFile& file,
                       native::Decoder& decoder, const std::unordered_set<std::uint64_t>& never) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    Dwarf_Die die = function;
    std::ptrdiff_t offset = 0;
    Dwarf_Addr base = 0;
    Dwarf_Addr start = 0;
    Dwarf_Addr end = 0;
    std::uint64_t bytes = 0;
    for (int i = 0; i < kMostRanges; ++i) {
        offset = dwarf_ranges(&die, offset, &base, &start, &end);
        if (offset <= 0) break;
        if (start >= end || end - start > kMostBytes - bytes) continue;
        bytes += end - start;
        ranges.emplace_back(start, end);
    }
    std::sort(ranges.begin(), ranges.end());
    FunctionCode code;
    std::uint64_t decoded = 0;
    for (const auto& [first, last] : ranges) {
        if (first < decoded) continue;  // overlaps the range before
        decode(code, bytes_of(file, first, last), first, decoder);
        decoded = last;
    }
    divide(code, never);
    // If a function has several ranges, DWARF may not give the entry. Compilers then write the
    // range of the entry first, even if a cold range has lower addresses.
    Dwarf_Addr entry = 0;
    if (dwarf_entrypc(&die, &entry) == 0 || dwarf_ranges(&die, 0, &base, &entry, &end) > 0) {
        const auto first = index_of(code, entry);
        const auto block = std::find_if(code.blocks.begin(), code.blocks.end(),
                                        [&](const auto& b) { return first && b.first == *first; });
        if (block != code.blocks.end())
            code.entry = static_cast<std::uint32_t>(block - code.blocks.begin());
    }
    return code;
}

}  // namespace assay::data_references
