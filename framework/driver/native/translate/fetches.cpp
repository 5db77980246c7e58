#include "framework/driver/native/translate/fetches.h"

#include <algorithm>

namespace assay::native {

namespace {

constexpr std::uint32_t kMostFetchSets = 1024;
constexpr std::size_t kCodeClock = kCodeCacheInContext + FirstLevel::kClock;
// An element of FirstLevel::code_places is the index.
constexpr std::size_t kLastUses = kCodeCacheInContext + FirstLevel::kUses - FirstLevel::kPlaceUnit;

}  // namespace

bool Fetches::crosses_line(unsigned instr) const {
    const std::uint64_t line = spec_.fetch.line_bytes;
    const Instruction& instruction = plan_.instructions[instr];
    return (instruction.pc - 1) / line != (instruction.next_pc() - 1) / line;
}

void Fetches::place(Placer& placer, const PlannedBlock& block, unsigned instr) {
    if (are_all_recorded()) return placer.place_before(instr);
    if (instr == block.first ? !is_first_placed() : !crosses_line(instr)) return;
    Item item;
    item.instr = static_cast<std::uint16_t>(instr);
    placer.place(item);
}

void Fetches::at_entry(const PlannedBlock& block, Block& record) {
    if (is_first_placed()) return;
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

void Fetches::emit(const Item& item) {
    if (!are_all_recorded()) return check(hot_, item.instr, item.position, item.flags_live);
    const Instruction& instruction = plan_.instructions[item.instr];
    const std::uint32_t site =
        writer_.new_site(item.instr, instruction.form->length, TRACE_SITE_FETCH, 0);
    UnitWriter::append_constant(hot_, scratch_.cursor(0, item.position), instruction.pc, site);
}

void Fetches::check(Assembler& code, unsigned instr, unsigned position, bool flags_live) {
    const Instruction& instruction = plan_.instructions[instr];
    const std::uint32_t line_bytes = spec_.fetch.line_bytes;
    const std::uint64_t last = (instruction.next_pc() - 1) / line_bytes;
    const bool first_in_block = instr == plan_.blocks[writer_.block_index].first;
    const std::uint64_t first = first_in_block ? instruction.pc / line_bytes : last;
    const std::uint32_t site =
        writer_.new_site(instr, instruction.form->length, TRACE_SITE_FETCH, 0);
    const PlannedBlock& block = plan_.blocks[writer_.block_index];
    const bool in_short_block = (block.end_pc - block.pc) / line_bytes + 1 < spec_.fetch.sets;
    const Fetch fetch{
        instruction.pc, first, last, site, position, flags_live, !first_in_block && in_short_block};
    if (spec_.fetch.ways != 0)
        use_first_level(code, fetch);
    else
        filter(code, fetch);
}

void Fetches::filter(Assembler& code, const Fetch& fetch) {
    const std::uint32_t sets = std::min(spec_.fetch.sets, kMostFetchSets);
    // In a cold entry no register is borrowed yet. In hot code rax may be borrowed.
    const bool rax_free = scratch_.is_free(RAX);
    const KeptFlags flags(code, fetch.flags_live, rax_free);
    std::uint64_t misses[2];
    unsigned miss_count = 0;
    for (std::uint64_t line = fetch.first_line; line <= fetch.last_line; ++line) {
        const std::size_t entry = offsetof(Context, fetch_filter) + (line & (sets - 1)) * 4;
        code.with_context(kGroup1, kCompare, entry, false);  // cmp dword, imm32
        code.u32(cache_.line_tag(line));
        misses[miss_count++] = code.jump_if(kNotEqual, code.address);
    }
    const std::uint64_t back = code.address;
    flags.restore(code);

    // The misses go to cold code. A cold entry must first jump over them.
    const std::uint64_t skip = &code == &cold_ ? cold_.jump(cold_.address) : 0;
    for (unsigned i = 0; i < miss_count; ++i) code.patch(misses[i], cold_.address);
    for (std::uint64_t line = fetch.first_line; line <= fetch.last_line; ++line) {
        const std::size_t entry = offsetof(Context, fetch_filter) + (line & (sets - 1)) * 4;
        cold_.with_thread(kStoreConstant, 0, entry, false, 4);
        cold_.u32(cache_.line_tag(line));
    }
    record(fetch.pc, fetch.site, fetch.position);
    cold_.jump(back);
    if (skip != 0) cold_.patch(skip, cold_.address);
}

// The branch on whether a line is in the cache is predicted nearly always. The branch on whether it
// is the most recent one of its set is not. The code therefore stores each use without this check.
//
// Times must differ between lines of the same set. Consecutive lines upwards are of different sets,
// until the first set comes again. Where code continues into the next line, the time can therefore
// stay the same. A way into a block that skips its check comes from a block that has just fetched
// the line. It therefore never leads below the lines since the last new time.
void Fetches::use_first_level(Assembler& code, const Fetch& fetch) {
    const bool rax_free = scratch_.is_free(RAX);
    const KeptFlags flags(code, fetch.flags_live, rax_free);
    const unsigned way = scratch_.idle(fetch.position);
    const unsigned time = way == kNoGpr ? kNoGpr : scratch_.idle(fetch.position, way);
    const Borrowed registers{way == kNoGpr ? unsigned{RCX} : way,
                             time != kNoGpr ? time
                             : way == RDX   ? unsigned{RCX}
                                            : unsigned{RDX},
                             way == kNoGpr, time == kNoGpr};
    exchange(code, kStore, registers);
    std::uint64_t misses[2];
    unsigned miss_count = 0;
    for (std::uint64_t line = fetch.first_line; line <= fetch.last_line; ++line) {
        code.load_word(registers.place, place_of(line));
        code.registers(0x85, registers.place, registers.place, false);  // test
        misses[miss_count++] = code.jump_if(kEqual, code.address);
        code.with_context_again(kLoad, registers.time, kCodeClock);
        if (!fetch.goes_on || line % spec_.fetch.sets == 0) {
            code.lea(registers.time, Address{static_cast<std::uint8_t>(registers.time), kNoGpr, 1,
                                             FirstLevel::kTick});
            code.with_context_again(kStore, registers.time, kCodeClock);
        }
        code.with_context(kStore, registers.time, kLastUses, true,
                          static_cast<std::uint8_t>(registers.place));
    }
    exchange(code, kLoad, registers);
    const std::uint64_t back = code.address;
    flags.restore(code);

    const std::uint64_t skip = &code == &cold_ ? cold_.jump(cold_.address) : 0;
    for (unsigned i = 0; i < miss_count; ++i) code.patch(misses[i], cold_.address);
    exchange(cold_, kLoad, registers);
    call_first_level(fetch);
    cold_.jump(back);
    if (skip != 0) cold_.patch(skip, cold_.address);
}

// Saves or restores the values of live registers.
void Fetches::exchange(Assembler& code, unsigned operation, const Borrowed& registers) {
    if (registers.place_is_live)
        code.with_thread(operation, registers.place, offsetof(Context, stub_gpr));
    if (registers.time_is_live)
        code.with_thread(operation, registers.time, offsetof(Context, stub_gpr) + 8);
}

void Fetches::call_first_level(const Fetch& fetch) {
    const auto push = [this](std::uint64_t value) {
        constexpr std::int32_t kUpperHalf = 4;
        cold_.push_constant(static_cast<std::uint32_t>(value));
        cold_.with_memory(kStoreConstant, 0, Address{RSP, kNoGpr, 1, kUpperHalf}, false);
        cold_.u32(static_cast<std::uint32_t>(value >> 32));
    };
    const unsigned cursor = scratch_.cached_cursor();
    const std::uint32_t first = cache_.line_number(fetch.first_line);
    const std::uint32_t last = cache_.line_number(fetch.last_line);
    if (first != last)
        return writer_.call_stub(cache_.fetch_stub(cursor), [&] {
            push(first | std::uint64_t{last} << 32);
            cold_.push_constant(fetch.site);
            push(fetch.pc);
        });
    if (cursor != kNoGpr) cold_.store_context(kCursorOffset, cursor);
    writer_.call_stub(cache_.fetch_miss_stub(), [&] {
        cold_.push_constant(first);
        cold_.push_constant(fetch.site);
        push(fetch.pc);
    });
    if (cursor != kNoGpr) cold_.load_context(cursor, kCursorOffset);
}

std::size_t Fetches::place_of(std::uint64_t line) {
    return kCodePlacesInContext + cache_.line_number(line) * sizeof(FirstLevel::code_places[0]);
}

// In cold code. Uses only moves.
void Fetches::record(std::uint64_t pc, std::uint32_t site, unsigned position) {
    const unsigned idle = scratch_.idle(position);
    if (scratch_.cached_cursor() != kNoGpr || idle != kNoGpr)
        return writer_.record_constant(pc, site, idle);
    cold_.with_thread(kStore, RCX, offsetof(Context, stub_gpr));
    writer_.record_constant(pc, site, RCX);
    cold_.with_thread(kLoad, RCX, offsetof(Context, stub_gpr));
}

}  // namespace assay::native
