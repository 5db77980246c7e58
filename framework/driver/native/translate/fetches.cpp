#include "framework/driver/native/translate/fetches.h"

#include <algorithm>

namespace assay::native {
namespace {

constexpr std::uint32_t kMostFetchSets = 1024;

}  // namespace

bool Fetches::crosses_line(unsigned instr) const {
    const std::uint64_t line = spec_.fetch.line_bytes;
    const Instruction& instruction = plan_.instructions[instr];
    return (instruction.pc - 1) / line != (instruction.next_pc() - 1) / line;
}

void Fetches::place(Placer& placer, const PlannedBlock& block, unsigned instr) {
    if (instr == block.first || !crosses_line(instr)) return;
    Item item;
    item.instr = static_cast<std::uint16_t>(instr);
    placer.place(item);
}

void Fetches::at_entry(const PlannedBlock& block, Block& record) {
    const bool flags_live = plan_.flags_live[block.first] != 0;
    if (!block.previous_fetched) {
        check(hot_, block.first, block.first, flags_live);
        if (!block.has_gate()) record.entry_fetched = hot_.address;
        return;
    }
    const std::uint64_t body = hot_.address;
    record.entry = cold_.address;
    check(cold_, block.first, block.first, flags_live);
    cold_.jump(body);
}

void Fetches::check(Assembler& code, unsigned instr, unsigned position, bool flags_live) {
    const Instruction& instruction = plan_.instructions[instr];
    const std::uint32_t line_bytes = spec_.fetch.line_bytes;
    const std::uint32_t sets = std::min(spec_.fetch.sets, kMostFetchSets);
    const std::uint64_t last = (instruction.next_pc() - 1) / line_bytes;
    const bool first_in_block = instr == plan_.blocks[writer_.block_index].first;
    const std::uint64_t first = first_in_block ? instruction.pc / line_bytes : last;
    const std::uint32_t site =
        writer_.new_site(instr, instruction.form->length, TRACE_SITE_FETCH, 0);

    // In a cold entry nothing is borrowed yet; in hot code rax may be.
    const bool rax_free = scratch_.is_free(RAX);
    const KeptFlags flags(code, flags_live, rax_free);
    std::uint64_t misses[2];
    unsigned miss_count = 0;
    for (std::uint64_t line = first; line <= last; ++line) {
        const std::size_t entry = offsetof(Context, fetch_filter) + (line & (sets - 1)) * 4;
        code.with_context(kGroup1, kCompare, entry, false);  // cmp dword, imm32
        code.u32(cache_.line_tag(line));
        misses[miss_count++] = code.jump_if(kNotEqual, code.address);
    }
    const std::uint64_t back = code.address;
    flags.restore(code);

    // Out of line, but not within the code that jumps there: the cold entry goes on first.
    const std::uint64_t skip = &code == &cold_ ? cold_.jump(cold_.address) : 0;
    for (unsigned i = 0; i < miss_count; ++i) code.patch(misses[i], cold_.address);
    for (std::uint64_t line = first; line <= last; ++line) {
        const std::size_t entry = offsetof(Context, fetch_filter) + (line & (sets - 1)) * 4;
        cold_.with_thread(kStoreConstant, 0, entry, false, 4);
        cold_.u32(cache_.line_tag(line));
    }
    record(instruction.pc, site, position);
    cold_.jump(back);
    if (skip != 0) cold_.patch(skip, cold_.address);
}

// In cold code; only moves.
void Fetches::record(std::uint64_t pc, std::uint32_t site, unsigned position) {
    const unsigned idle = scratch_.idle(position);
    if (scratch_.cached_cursor() != kNoGpr || idle != kNoGpr)
        return writer_.record_constant(pc, site, idle);
    cold_.with_thread(kStore, RCX, offsetof(Context, stub_gpr));
    writer_.record_constant(pc, site, RCX);
    cold_.with_thread(kLoad, RCX, offsetof(Context, stub_gpr));
}

}  // namespace assay::native
