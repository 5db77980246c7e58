// Instrumentation of instruction fetches.
//
// Where a block begins, and where its code enters a line, a comparison with the line that was
// fetched last in the same set; see emit_references.cpp for what filters leave out and why.
//
//   fetch_filter[line % sets]         a tag of the line
#include "framework/driver/native/translate/emitter.h"

#include <algorithm>

namespace assay::native {
namespace {

constexpr std::uint32_t kMostFetchSets = 1024;

}  // namespace

void Emitter::emit_fetch_check(Assembler& code, unsigned instr, unsigned position,
                               bool flags_live) {
    const Instruction& instruction = plan_.instructions[instr];
    const std::uint32_t line_bytes = spec_.fetch.line_bytes;
    const std::uint32_t sets = std::min(spec_.fetch.sets, kMostFetchSets);
    const std::uint64_t last = (instruction.next_pc() - 1) / line_bytes;
    const bool first_in_block = instr == plan_.blocks[block_index_].first;
    const std::uint64_t first = first_in_block ? instruction.pc / line_bytes : last;
    const std::uint32_t site = new_site(instr, instruction.form->length, TRACE_SITE_FETCH, 0);

    // In a cold entry nothing is borrowed yet; in hot code rax may be.
    const bool rax_free = scratch_.is_free(RAX);
    if (flags_live) save_flags(code, rax_free);
    std::uint64_t misses[2];
    unsigned miss_count = 0;
    for (std::uint64_t line = first; line <= last; ++line) {
        const std::size_t entry = offsetof(Context, fetch_filter) + (line & (sets - 1)) * 4;
        code.with_context(0x81, 7, entry, false);  // cmp dword, imm32
        code.u32(cache_.line_tag(line));
        misses[miss_count++] = code.jump_if(kNotEqual, code.address);
    }
    const std::uint64_t back = code.address;
    if (flags_live) restore_flags(code, rax_free);

    // Out of line, but not within the code that jumps there: the cold entry goes on first.
    const std::uint64_t skip = &code == &cold_ ? cold_.jump(cold_.address) : 0;
    for (unsigned i = 0; i < miss_count; ++i) code.patch(misses[i], cold_.address);
    for (std::uint64_t line = first; line <= last; ++line) {
        const std::size_t entry = offsetof(Context, fetch_filter) + (line & (sets - 1)) * 4;
        cold_.with_thread(kStoreConstant, 0, entry, false, 4);
        cold_.u32(cache_.line_tag(line));
    }
    emit_fetch_record(instruction.pc, site, position);
    cold_.jump(back);
    if (skip != 0) cold_.patch(skip, cold_.address);
}

// In cold code; only moves.
void Emitter::emit_fetch_record(std::uint64_t pc, std::uint32_t site, unsigned position) {
    const unsigned idle = scratch_.idle(position);
    if (scratch_.cached_cursor() != kNoGpr || idle != kNoGpr)
        return emit_constant_record(pc, site, idle);
    cold_.with_thread(kStore, RCX, offsetof(Context, stub_gpr));
    emit_constant_record(pc, site, RCX);
    cold_.with_thread(kLoad, RCX, offsetof(Context, stub_gpr));
}

// `spare` holds the cursor, if no register does.
void Emitter::emit_constant_record(std::uint64_t value, std::uint32_t site, unsigned spare) {
    const bool cached = scratch_.cached_cursor() != kNoGpr;
    const auto cursor = static_cast<std::uint8_t>(cached ? scratch_.cached_cursor() : spare);
    if (!cached) cold_.with_thread(kLoad, cursor, kCursorOffset);
    // In two halves, if it is large: there is no move of a 64-bit constant to memory.
    const bool large = !fits32(static_cast<std::int64_t>(value));
    cold_.with_memory(kStoreConstant, 0, Address{cursor, kNoGpr, 1, 0}, !large);
    cold_.u32(static_cast<std::uint32_t>(value));
    if (large) {
        cold_.with_memory(kStoreConstant, 0, Address{cursor, kNoGpr, 1, 4}, false);
        cold_.u32(static_cast<std::uint32_t>(value >> 32));
    }
    cold_.with_memory(kStoreConstant, 0, Address{cursor, kNoGpr, 1, 8});
    cold_.u32(site);
    cold_.lea(cursor, Address{cursor, kNoGpr, 1, kRecordBytes});
    if (!cached) cold_.with_thread(kStore, cursor, kCursorOffset);
}

}  // namespace assay::native
