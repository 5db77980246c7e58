// Translated code as data: which jump goes where, and what of it changes when.
#include "framework/driver/native/code_cache/code_cache.h"

#include "framework/driver/native/emit/record_stubs.h"
#include "tests/unit/driver_parts.h"

#include <algorithm>
#include <array>
#include <map>
#include <random>

namespace code_cache_test {

using namespace assay;
using namespace assay::native;

namespace {

// Where the jump with this displacement goes.
std::uint64_t target_of(std::uint64_t site) {
    std::int32_t distance;
    std::memcpy(&distance, reinterpret_cast<const void*>(site), sizeof distance);
    return site + 4 + static_cast<std::uint64_t>(std::int64_t{distance});
}

std::uint64_t& indirect_entry(const DriverParts& parts, std::uint64_t pc) {
    return parts.context->indirect_table[kCollecting][pc % kIndirectEntries];
}

// The unit's exit to `pc`.
std::uint32_t exit_to(DriverParts& parts, const Unit& unit, std::uint64_t pc) {
    for (std::uint32_t i = unit.first_exit; i < unit.first_exit + unit.exit_count; ++i)
        if (parts.cache.exits()[i].kind == ExitKind::kDirect && parts.cache.exits()[i].target == pc)
            return i;
    FAIL("no exit goes there");
    return kNoExit;
}

Unit& unit_of(DriverParts& parts, std::uint64_t pc) {
    Block* block = parts.cache.find(pc);
    REQUIRE(block != nullptr);
    return parts.cache.units()[block->unit];
}

// A loop with a load that may miss, and what comes behind it:
//      0x00  mov rax, [rdi + rcx * 8]
//      0x04  add rcx, rax
//      0x07  dec rsi
//      0x0a  jnz 0x00
//      0x0c  jmp 0x200
std::uint64_t loop(DriverParts& parts) {
    return parts.code(0, {{"mov rax, [rdi + rcx * 8]", {0x48, 0x8b, 0x04, 0xcf}},
                          {"add rcx, rax", {0x48, 0x01, 0xc1}},
                          {"dec rsi", {0x48, 0xff, 0xce}},
                          {"jnz to the loop", {0x75, 0xf4}},
                          {"jmp 0x200", {0xe9, 0xef, 1, 0, 0}}});
}

// Fills one buffer with misses of the site, as the program would, and gives it away.
void fill_buffer(DriverParts& parts, std::uint32_t site) {
    for (std::uint32_t i = 0; i < trace::kRecordsPerBuffer; ++i)
        parts.buffers.append(0x1000 + i * 64ULL, site);
    parts.buffers.next_buffer(~std::uint64_t{0});
}

}  // namespace

TEST_CASE("blocks are found, however many there are") {
    DriverParts parts;
    std::mt19937_64 generator(5);
    std::vector<std::uint64_t> pcs;
    for (unsigned i = 0; i < 100000; ++i) {
        Block block;
        block.pc = generator() | 1;
        pcs.push_back(block.pc);
        parts.cache.blocks().push_back(block);
        parts.cache.enter_block(i);
    }
    unsigned wrong = 0;
    for (unsigned i = 0; i < pcs.size(); ++i) {
        const Block* block = parts.cache.find(pcs[i]);
        if (block == nullptr || block->pc != pcs[i]) ++wrong;
        if (parts.cache.find(pcs[i] - 1) != nullptr) ++wrong;
    }
    CHECK(wrong == 0);
    parts.cache.flush();
    CHECK(parts.cache.find(pcs[0]) == nullptr);
    CHECK(parts.cache.generation() == 2);
}

TEST_CASE("no block is found at the last address, where programs may jump by mistake") {
    DriverParts parts;
    loop(parts);
    REQUIRE(parts.translator.translate(parts.start, kCollecting, false) != nullptr);
    CHECK(parts.cache.find(UINT64_MAX) == nullptr);
    PcMap<bool> map;
    map.set(UINT64_MAX, true);
    CHECK(map.find(UINT64_MAX) == nullptr);
}

TEST_CASE("tags of lines are equal only for equal lines") {
    DriverParts parts;
    std::map<std::uint32_t, std::uint64_t> line_of;
    for (int again = 0; again < 2; ++again)
        for (std::uint64_t gib = 0; gib < 1000; ++gib)
            for (const std::uint64_t line : {gib << 24, (gib << 24) + 1, ((gib + 1) << 24) - 1}) {
                const std::uint32_t tag = parts.cache.line_tag(line);
                REQUIRE(line_of.emplace(tag, line).first->second == line);
            }
    CHECK(line_of.size() == 3000);
    // The filter's tables are 0 in the beginning.
    CHECK_FALSE(line_of.contains(0));
}

TEST_CASE("code fetches the lines that it lies in") {
    const DriverParts parts;  // lines of 64 bytes, 64 sets
    const CodeCache& cache = parts.cache;
    CHECK(cache.has_fetched(0x1000, 0x1010, 0x1030, 4));
    CHECK_FALSE(cache.has_fetched(0x1000, 0x1010, 0x103e, 4));
    CHECK(cache.has_fetched(0x1000, 0x1041, 0x103e, 4));
    CHECK_FALSE(cache.has_fetched(0x1000, 0x1040, 0x1040, 1));
    CHECK_FALSE(cache.has_fetched(0x1040, 0x1080, 0x1000, 1));
    // So long that its last lines took the place of its first.
    CHECK(cache.has_fetched(0x1000, 0x2000, 0x1000, 1));
    CHECK_FALSE(cache.has_fetched(0x1000, 0x2001, 0x1000, 1));
}

// --- Links.

TEST_CASE("a jump goes to the driver until its target is translated and linked") {
    DriverParts parts;
    const std::uint64_t pc = loop(parts), next = parts.code(0x200, {{"invalid", {0x06}}});
    REQUIRE(parts.translator.translate(pc, kCollecting, false) != nullptr);
    const std::uint32_t exit = exit_to(parts, unit_of(parts, pc), next);
    CHECK(target_of(parts.cache.exits()[exit].jump) == parts.cache.exits()[exit].stub);

    parts.code(0x200, {{"nop", {0x90}}, {"jmp rax", {0xff, 0xe0}}});
    Block* target = parts.translator.translate(next, kCollecting, false);
    REQUIRE(target != nullptr);
    CHECK(target->linked_from == kNoExit);
    parts.cache.link(exit, *target);
    // That line has not been fetched: the check before the block is not passed over.
    CHECK(target_of(parts.cache.exits()[exit].jump) == target->entry);
    CHECK(target->linked_from == exit);
    parts.cache.link(exit, *target);
    CHECK(parts.cache.exits()[exit].next_linked == kNoExit);
}

TEST_CASE("a jump to known code is linked at once, behind the fetch of a line just fetched") {
    DriverParts parts;
    const std::uint64_t pc = loop(parts);
    parts.code(0x200, {{"nop", {0x90}}, {"jmp rax", {0xff, 0xe0}}});
    Block* block = parts.translator.translate(pc, kCollecting, false);
    REQUIRE(block != nullptr);
    const std::uint32_t back = exit_to(parts, unit_of(parts, pc), pc);
    CHECK(block->entry_fetched != block->entry);
    CHECK(target_of(parts.cache.exits()[back].jump) == block->entry_fetched);
}

// --- Landings.

TEST_CASE("branches of one table index find their landings one behind the other") {
    DriverParts parts;
    // Known before an indirect branch goes there, and translated because one does.
    for (const bool by_branch : {false, true}) {
        CAPTURE(by_branch);
        parts.translator.flush();
        std::uint64_t landing = parts.cache.indirect_miss();
        for (std::uint64_t i = 0; i < 3; ++i) {
            const std::uint64_t pc =
                parts.code(i * kIndirectEntries, {{"nop", {0x90}}, {"jmp rax", {0xff, 0xe0}}});
            Block* block = parts.translator.translate(pc, kCollecting, by_branch);
            REQUIRE(block != nullptr);
            CHECK((block->landing != 0) == by_branch);
            parts.cache.add_landing(*block);
            parts.cache.add_landing(*block);
            CHECK(indirect_entry(parts, pc) == block->landing);
            CHECK(target_of(block->landing_next()) == landing);
            landing = block->landing;
        }
        CHECK(indirect_entry(parts, parts.start + 1) == parts.cache.indirect_miss());
    }
}

TEST_CASE("landings do not run over the end of the cold code") {
    constexpr std::uint64_t kPart = 128 * trace::kMiB;
    DriverParts parts;
    const std::uint64_t end = parts.cache.cold + kPart;
    Block* const block =
        parts.translator.translate(parts.code(0, {{"ret", {0xc3}}}), kCollecting, false);
    REQUIRE(block != nullptr);
    parts.cache.cold = end - 16;
    parts.cache.add_landing(*block);
    CHECK(parts.cache.cold == end - 16);
    CHECK(indirect_entry(parts, block->pc) == parts.cache.indirect_miss());
    CHECK(parts.translator.must_flush_for(parts.start + 0x100));
    parts.cache.cold = end - 8192;
    parts.cache.add_landing(*block);
    CHECK(indirect_entry(parts, block->pc) == block->landing);
}

TEST_CASE("landings disappear from any place in their list") {
    DriverParts parts;
    for (const bool by_branch : {false, true})
        for (std::uint64_t gone = 0; gone < 3; ++gone) {
            CAPTURE(by_branch);
            CAPTURE(gone);
            parts.translator.flush();
            std::vector<std::uint64_t> pcs;
            for (std::uint64_t i = 0; i < 3; ++i) {
                pcs.push_back(
                    parts.code(i * kIndirectEntries, {{"nop", {0x90}}, {"jmp rax", {0xff, 0xe0}}}));
                parts.cache.add_landing(
                    *parts.translator.translate(pcs.back(), kCollecting, by_branch));
            }
            CHECK(parts.cache.invalidate(pcs[gone] & ~4095ULL, (pcs[gone] & ~4095ULL) + 4096));
            CHECK(parts.cache.find(pcs[gone]) == nullptr);
            pcs.erase(pcs.begin() + static_cast<std::ptrdiff_t>(gone));
            CHECK(indirect_entry(parts, pcs[0]) == parts.cache.find(pcs[1])->landing);
            CHECK(target_of(parts.cache.find(pcs[1])->landing_next()) ==
                  parts.cache.find(pcs[0])->landing);
            CHECK(target_of(parts.cache.find(pcs[0])->landing_next()) ==
                  parts.cache.indirect_miss());
        }
}

// --- Places in translated code.

TEST_CASE("the unit and its blocks are found from translated code, before and after a flush") {
    DriverParts parts;
    const std::uint64_t pc = loop(parts);
    const std::uint64_t other = parts.code(0x300, {{"nop", {0x90}}, {"jmp rax", {0xff, 0xe0}}});
    parts.translator.translate(pc, kCollecting, false);
    parts.translator.translate(other, kCollecting, true);
    struct Known {
        const Unit* unit;
        std::uint64_t begin, end, entry, entry_fetched;
    };
    std::vector<Known> known;
    for (const std::uint64_t which : {pc, other}) {
        const Unit& unit = unit_of(parts, which);
        const Block& block = *parts.cache.find(which);
        known.push_back({&unit, unit.hot_begin, unit.hot_end, block.entry, block.entry_fetched});
    }
    for (const bool flushed : {false, true}) {
        CAPTURE(flushed);
        if (flushed) parts.translator.flush();
        for (const Known& one : known) {
            CHECK(parts.cache.unit_at(one.begin) == one.unit);
            CHECK(parts.cache.unit_at(one.end - 1) == one.unit);
            CHECK(parts.cache.unit_at(one.unit->cold_begin) == one.unit);
            CHECK(parts.cache.unit_at(one.unit->cold_end - 1) == one.unit);
            for (const std::uint64_t entry : {one.entry, one.entry_fetched})
                REQUIRE(parts.cache.entered_at(entry) != nullptr);
            CHECK(parts.cache.entered_at(one.entry) == parts.cache.entered_at(one.entry_fetched));
            CHECK(parts.cache.entered_at(one.entry)->entry == one.entry);
            CHECK(parts.cache.entered_at(one.entry_fetched + 1) == nullptr);
        }
        CHECK(parts.cache.unit_at(parts.cache.indirect_miss()) == nullptr);
        CHECK(parts.cache.unit_at(pc) == nullptr);
    }
    // The flush after the next has their memory used again.
    parts.translator.flush();
    CHECK(parts.cache.unit_at(known[0].begin) == nullptr);
}

TEST_CASE("displacements that are changed lie within an aligned quadword") {
    DriverParts parts;
    // Blocks of different lengths put their jumps anywhere.
    std::uint64_t at = 0;
    for (unsigned length = 0; length < 200; ++length) {
        const std::uint64_t pc = parts.start + at;
        for (unsigned i = 0; i < length % 29; ++i) parts.code(at++, {{"nop", {0x90}}});
        parts.code(at, {{"jz", {0x0f, 0x84, 0, 0, 0, 0}}, {"jrcxz", {0xe3, 0x00}}});
        parts.code(at + 8, {{"jmp rax", {0xff, 0xe0}}});
        parts.cache.add_landing(*parts.translator.translate(pc, kCollecting, length % 2 == 0));
        at += 64;
    }
    unsigned looked_at = 0, across = 0;
    const auto look_at = [&](std::uint64_t site) {
        ++looked_at;
        if (site % 8 > 4) ++across;
    };
    for (const Exit& exit : parts.cache.exits())
        if (exit.kind == ExitKind::kDirect) look_at(exit.jump);
    for (const Block& block : parts.cache.blocks()) {
        if (block.landing != 0) look_at(block.landing_next());
        if (block.to_landing_jump != 0) look_at(block.landing_jump());
    }
    CHECK(looked_at > 400);
    CHECK(across == 0);
}

// --- Forgetting.

TEST_CASE("code that has changed is forgotten, and nothing leads to it any more") {
    DriverParts parts;
    const std::uint64_t pc = loop(parts);
    parts.code(0x200, {{"nop", {0x90}}, {"jmp rax", {0xff, 0xe0}}});
    const std::uint64_t from =
        parts.code(0x2000, {{"jmp to the loop", {0xe9, 0xfb, 0xdf, 0xff, 0xff}}});
    Block* block = parts.translator.translate(pc, kCollecting, false);
    parts.cache.add_landing(*block);
    REQUIRE(parts.translator.translate(from, kCollecting, false) != nullptr);
    const Exit back = parts.cache.exits()[exit_to(parts, unit_of(parts, pc), pc)];
    const Exit into = parts.cache.exits()[exit_to(parts, unit_of(parts, from), pc)];
    CHECK(target_of(into.jump) != into.stub);
    const std::uint64_t page = parts.start / 4096;
    CHECK(parts.cache.has_code(page));
    CHECK_FALSE(parts.cache.has_code(page + 1));

    CHECK_FALSE(parts.cache.invalidate(parts.start + 4096, parts.start + 8192));
    CHECK(parts.cache.find(pc) == block);
    CHECK(parts.cache.invalidate(parts.start, parts.start + 4096));
    CHECK(parts.cache.find(pc) == nullptr);
    CHECK(parts.cache.find(from) != nullptr);
    CHECK(target_of(into.jump) == into.stub);
    CHECK(target_of(back.jump) == back.stub);
    CHECK(indirect_entry(parts, pc) == parts.cache.indirect_miss());
    CHECK_FALSE(parts.cache.has_code(page));
    CHECK_FALSE(parts.cache.invalidate(parts.start, parts.start + 4096));

    // What is translated instead is a block of its own.
    parts.code(0, {{"ret", {0xc3}}});
    block = parts.translator.translate(pc, kCollecting, false);
    REQUIRE(block != nullptr);
    CHECK(block->instr_count == 1);
    CHECK(parts.cache.find(pc) == block);
    // All of a large range at once.
    CHECK(parts.cache.invalidate(0, 1ULL << 47));
    CHECK(parts.cache.find(from) == nullptr);
}

TEST_CASE("a unit is forgotten that only reaches into what has changed") {
    DriverParts parts;
    const std::uint64_t pc =
        parts.code(4094, {{"mov eax, 1", {0xb8, 1, 0, 0, 0}}, {"ret", {0xc3}}});
    REQUIRE(parts.translator.translate(pc, kCollecting, false) != nullptr);
    CHECK(parts.cache.has_code(parts.start / 4096 + 1));
    CHECK(parts.cache.invalidate(parts.start + 4096, parts.start + 8192));
    CHECK(parts.cache.find(pc) == nullptr);
}

// --- Translating again.

TEST_CASE("a forgotten unit that is translated again has the same rows of the trace's tables") {
    DriverParts parts;
    const std::uint64_t pc = loop(parts);
    const std::uint32_t id = parts.translator.translate(pc, kCollecting, false)->id;
    const TableRows end = parts.trace.next();
    SUBCASE("after a flush") {
        parts.translator.flush();
    }
    SUBCASE("alone") {
        parts.translator.invalidate(pc, pc + 1);
    }
    REQUIRE(parts.cache.find(pc) == nullptr);
    CHECK(parts.translator.translate(pc, kCollecting, false)->id == id);
    CHECK(parts.trace.next() == end);
}

TEST_CASE("a unit of other code, or of another file, has other rows") {
    DriverParts parts;
    const std::uint64_t pc = loop(parts);
    const std::uint32_t id = parts.translator.translate(pc, kCollecting, false)->id;
    const TableRows end = parts.trace.next();
    parts.translator.flush();
    SUBCASE("other code") {
        parts.code(0, {{"xchg ax, ax", {0x66, 0x90}}, {"ret", {0xc3}}});
    }
    SUBCASE("another file") {
        parts.cache.forget_rows();
    }
    SUBCASE("another version") {
        CHECK(parts.translator.translate(pc, kPlain, false)->id != id);
        CHECK(parts.trace.next() != end);
        return;
    }
    CHECK(parts.translator.translate(pc, kCollecting, false)->id != id);
    CHECK(parts.trace.next() != end);
}

TEST_CASE("a unit whose loads miss often is replaced, and everything leads to the new one") {
    for (const bool by_branch : {false, true}) {
        CAPTURE(by_branch);
        DriverParts parts;
        const std::uint64_t pc = loop(parts);
        const std::uint64_t next = parts.code(0x200, {{"nop", {0x90}}, {"jmp rax", {0xff, 0xe0}}});
        Block* block = parts.translator.translate(pc, kCollecting, by_branch);
        REQUIRE(block != nullptr);
        parts.cache.add_landing(*block);
        const std::uint64_t from =
            parts.code(0x400, {{"jmp to the loop", {0xe9, 0xfb, 0xfb, 0xff, 0xff}}});
        parts.translator.translate(from, kCollecting, false);
        block = parts.cache.find(pc);
        const Unit old = unit_of(parts, pc);
        const Block before = *block;
        const std::uint32_t back = exit_to(parts, old, pc);
        const Exit exit_before = parts.cache.exits()[back];

        std::uint32_t site = unit_of(parts, pc).first_site;
        while (parts.trace.is_fetch(site)) ++site;
        fill_buffer(parts, site);
        const std::size_t units = parts.cache.units().size();
        parts.translator.adapt(parts.buffers.last_buffer());
        REQUIRE(parts.cache.units().size() == units + 1);
        const Unit& unit = unit_of(parts, pc);
        REQUIRE(parts.cache.often_missed(unit).size() == 1);
        CHECK(parts.cache.often_missed(unit)[0] == site);
        CHECK(&unit == &parts.cache.units().back());
        CHECK(block->entry >= unit.hot_begin);
        CHECK(block->entry < unit.hot_end);
        CHECK(parts.cache.unit_at(block->entry) == &unit);
        // Its own jump back, another unit's jump, and indirect branches.
        CHECK(target_of(parts.cache.exits()[back].jump) == block->entry_fetched);
        CHECK(parts.cache.exits()[back].jump != exit_before.jump);
        const std::uint32_t into = exit_to(parts, unit_of(parts, from), pc);
        CHECK(target_of(parts.cache.exits()[into].jump) == block->entry);
        if (by_branch) {
            CHECK(indirect_entry(parts, pc) == block->landing);
            CHECK(block->landing >= unit.hot_begin);
            CHECK(block->landing < block->entry);
        } else {
            CHECK(indirect_entry(parts, pc) == before.landing);
            CHECK(target_of(block->landing_jump()) == block->entry);
        }
        // Whoever executes the old code leaves it at its next jump.
        CHECK(target_of(exit_before.jump) == exit_before.stub);
        CHECK(parts.cache.find(next) != nullptr);
        // What is known already changes nothing.
        fill_buffer(parts, site);
        parts.translator.adapt(parts.buffers.last_buffer());
        CHECK(parts.cache.units().size() == units + 1);
    }
}

TEST_CASE("each instruction that may fault is recognised, before and after translating again") {
    DriverParts parts;
    const std::uint64_t pc = loop(parts);
    parts.code(0x200, {{"push rax", {0x50}}, {"call [rax]", {0xff, 0x10}}});
    Block* block = parts.translator.translate(pc, kCollecting, true);
    REQUIRE(block != nullptr);
    std::uint32_t site = unit_of(parts, pc).first_site;
    while (parts.trace.is_fetch(site)) ++site;
    const Unit old = unit_of(parts, pc);
    fill_buffer(parts, site);
    parts.translator.adapt(parts.buffers.last_buffer());
    const Unit replaced = unit_of(parts, pc);
    REQUIRE(replaced.hot_begin != old.hot_begin);
    const std::vector<std::uint64_t> expected = {pc, parts.start + 0x200, parts.start + 0x201};
    for (const Unit& unit : {old, replaced}) {
        std::vector<std::uint64_t> found;
        for (std::uint64_t host = unit.hot_begin; host < unit.hot_end; ++host) {
            const RecoveryPoint* point = parts.cache.point_at(host);
            if (point == nullptr) continue;
            const Block& there = parts.cache.block_at(host, point->block);
            const std::uint64_t at = there.pc + point->pc_offset;
            if (!found.empty() && found.back() == at) continue;
            found.push_back(at);
            CHECK(point->rcx_is_target == (at == parts.start + 0x201));
            CHECK(parts.trace.instr(there.first_instr + point->executed - 1).pc == at);
        }
        CHECK(found == expected);
        CHECK(parts.cache.point_at(unit.cold_begin) == nullptr);
    }
    CHECK(parts.cache.point_at(pc) == nullptr);
}

TEST_CASE("every stub of a miss has room where it lies") {
    for (const std::uint32_t line : {64U, 256U}) {
        trace::Spec spec{};
        spec.data = {line, 64};
        for (unsigned address = 0; address < 16; ++address) {
            for (unsigned spare = 0; spare < 16; ++spare) {
                if (address == spare || address == RSP || spare == RSP) continue;
                for (const unsigned bytes : {1U, 2U, 4U, 8U}) {
                    std::array<std::uint8_t, 2 * kMissStubBytes> code{};
                    Assembler assembler;
                    assembler.out = code.data();
                    emit_miss_stub(assembler, spec, address, spare, bytes, 0);
                    CHECK(assembler.address <= kMissStubBytes);
                }
            }
        }
    }
}

TEST_CASE("a flush forgets everything, and the next one uses the memory again") {
    DriverParts parts;
    const std::uint64_t pc = loop(parts);
    const std::uint64_t hot = parts.cache.hot, cold = parts.cache.cold;
    parts.code(0x200, {{"nop", {0x90}}, {"jmp rax", {0xff, 0xe0}}});
    Block* block = parts.translator.translate(pc, kCollecting, true);
    REQUIRE(block != nullptr);
    parts.cache.add_landing(*block);
    const Exit back = parts.cache.exits()[exit_to(parts, unit_of(parts, pc), pc)];
    const std::uint32_t id = kFirstExit + parts.cache.exit_number(0);
    const std::uint64_t first_target = parts.cache.exit(id).target;
    CHECK(parts.cache.is_current(id));
    CHECK(parts.cache.hot > hot);
    parts.translator.flush();
    CHECK(parts.cache.find(pc) == nullptr);
    CHECK(indirect_entry(parts, pc) == parts.cache.indirect_miss());
    CHECK_FALSE(parts.cache.nearly_full());
    // Who still runs there finds the driver, which knows why.
    CHECK(target_of(back.jump) == back.stub);
    CHECK_FALSE(parts.cache.is_current(id));
    CHECK(parts.cache.exit(id).target == first_target);
    CHECK(parts.cache.hot != hot);
    parts.translator.flush();
    CHECK(parts.cache.hot == hot);
    CHECK(parts.cache.cold == cold);
}

}  // namespace code_cache_test
