#include "assay/trace_types.h"
#include "framework/driver/native/emit/record_stubs.h"
#include "framework/driver/native/machine/context.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace assay::native {
namespace {

constexpr std::int32_t kWord = 8;
constexpr std::size_t kSavedRegisters = offsetof(Context, stub_gpr);

// The place of a register of kChangedByCalls above the stack pointer.
std::int32_t saved_at(std::size_t index) {
    return static_cast<std::int32_t>(kChangedByCalls.size() - 1 - index) * kWord;
}

// `function`: assay_first_level_*. Its arguments after the first one follow the order of the psABI;
// the cursor is in rdx.
template <typename... Arguments>
void emit_call(Assembler& code, unsigned cursor,
               std::uint64_t (*function)(FirstLevel*, Arguments...)) {
    constexpr std::uint8_t kStack = RSP;
    // Above the saved registers and the return address.
    constexpr auto kArguments = static_cast<std::int32_t>(kChangedByCalls.size() + 1) * kWord;
    const auto argument = [&](unsigned reg, int index) {
        code.with_memory(kLoad, reg, Address{kStack, kNoGpr, 1, kArguments + index * kWord});
    };
    for (const unsigned reg : kChangedByCalls) code.push(reg);
    if (cursor == kNoGpr)
        code.load_context(RDX, kCursorOffset);
    else
        code.registers(kStore, RDX, cursor);
    // Room for two records: the store faults at the buffer's end, and the handler changes rdx.
    code.with_memory(kStore, RDX, Address{RDX, kNoGpr, 1, sizeof(trace_record_t)});
    code.prefetch_for_write(Address{RDX, kNoGpr, 1, kPrefetched});
    argument(RSI, 0);
    argument(RCX, 1);
    argument(R8, 2);
    code.load_context(RDI, offsetof(Context, first_level));
    code.move_imm64(RAX, reinterpret_cast<std::uint64_t>(function));
    code.registers(0xff, RAX, 2, false);  // call
    const auto* const saved = std::find(kChangedByCalls.begin(), kChangedByCalls.end(), cursor);
    if (cursor == kNoGpr)
        code.store_context(kCursorOffset, RAX);
    else if (saved == kChangedByCalls.end())
        code.registers(kStore, cursor, RAX);
    else
        code.with_memory(
            kStore, RAX,
            Address{kStack, kNoGpr, 1,
                    saved_at(static_cast<std::size_t>(saved - kChangedByCalls.begin()))});
    for (auto reg = kChangedByCalls.rbegin(); reg != kChangedByCalls.rend(); ++reg) code.pop(*reg);
    code.ret();
}

Address at(unsigned base, std::int32_t displacement) {
    return {static_cast<std::uint8_t>(base), kNoGpr, 1, displacement};
}

// `place`: the offset of a set's first way; becomes that of the least recently used way. The code
// has no branch, because the result cannot be predicted.
void emit_least_recent(Assembler& code, std::size_t cache, std::uint32_t ways, unsigned place,
                       unsigned least, unsigned other) {
    code.with_context(kLoad, least, cache + FirstLevel::kUses, true,
                      static_cast<std::uint8_t>(place));
    for (std::uint32_t way = 1; way < ways; ++way) {
        code.with_context(kLoad, other, cache + FirstLevel::kUses + way * FirstLevel::kPlaceUnit,
                          true, static_cast<std::uint8_t>(place));
        code.lea(other, at(other, static_cast<std::int32_t>(way)));
        code.registers(0x39, other, least);  // cmp
        code.move_if(kBelow, least, other);
    }
    code.group1(kAnd, least, FirstLevel::kTick - 1, false);
    code.lea(place, Address{static_cast<std::uint8_t>(place), static_cast<std::uint8_t>(least),
                            FirstLevel::kPlaceUnit, 0});
}

void emit_note_use(Assembler& code, std::size_t cache, unsigned place, unsigned time) {
    code.load_context(time, cache + FirstLevel::kClock);
    code.lea(time, at(time, FirstLevel::kTick));
    code.store_context(cache + FirstLevel::kClock, time);
    code.with_context(kStore, time, cache + FirstLevel::kUses, true,
                      static_cast<std::uint8_t>(place));
}

// Writes a record of the value in register `value`, with the site at [rsp + site]. Changes `value`.
void emit_record(Assembler& code, const trace::Spec& spec, unsigned value, unsigned cursor,
                 std::int32_t site) {
    code.load_context(cursor, kCursorOffset);
    // Faults at the end of the buffer; the handler then changes `cursor`.
    code.with_memory(kStore, value, at(cursor, 0));
    code.with_memory(kLoad, value, at(RSP, site), false);
    code.with_memory(kStore, value, at(cursor, kWord));
    if (trace::tells_contexts(spec)) {
        code.load_context(value, offsetof(Context, calls) + offsetof(CallState, node));
        code.with_memory(kLoad, value, at(value, offsetof(trace::ContextNode, number)), false);
        code.with_memory(kStore, value, at(cursor, offsetof(trace_record_t, aux)), false);
    }
    code.prefetch_for_write(at(cursor, kPrefetched));
    code.lea(cursor, at(cursor, kRecordBytes));
    code.store_context(kCursorOffset, cursor);
}

}  // namespace

void emit_first_level_reference_stub(Assembler& code, unsigned cursor) {
    emit_call(code, cursor, assay_first_level_reference);
}

void emit_first_level_series_stub(Assembler& code, unsigned cursor) {
    emit_call(code, cursor, assay_first_level_series);
}

void emit_first_level_fetch_stub(Assembler& code, unsigned cursor) {
    emit_call(code, cursor, assay_first_level_fetch);
}

std::uint64_t first_level_miss_stub_bytes(const trace::Spec& spec) {
    constexpr std::uint64_t kOfWay = 24, kOther = 336;
    return (kOther + spec.data.ways * kOfWay + 63) & ~std::uint64_t{63};
}

void emit_first_level_miss_stub(Assembler& code, const trace::Spec& spec, unsigned address,
                                unsigned spare, unsigned bytes, std::uint64_t reference_stub) {
    const auto index = static_cast<std::uint8_t>(spare);
    const auto shift = static_cast<unsigned>(std::countr_zero(spec.data.line_bytes));
    constexpr std::uint32_t kPlacesMask = FirstLevel::kPlaces - 1;
    // Two more registers are needed.
    unsigned line = RAX, other = RCX;
    while (line == address || line == spare) ++line;
    other = line + 1;
    while (other == address || other == spare) ++other;
    const auto restore = [&] {
        code.load_context(line, kSavedRegisters);
        code.load_context(other, kSavedRegisters + kWord);
    };
    code.store_context(kSavedRegisters, line);
    code.store_context(kSavedRegisters + kWord, other);
    std::uint64_t misaligned = 0;
    if (bytes != 1) {
        code.test_bits(address, bytes - 1);
        misaligned = code.jump_if(kNotEqual, code.address);
    }
    code.registers(kStore, line, address);
    code.group1(kAnd, line, -static_cast<std::int32_t>(spec.data.line_bytes), true);
    code.registers(kStore, spare, line, false);
    code.shift_right(spare, shift - 1);
    code.group1(kAnd, spare, static_cast<std::int32_t>(kPlacesMask * 2), false);
    code.load_context_word(other, kDataPlacesInContext, index);
    code.test_bits(other, FirstLevel::kAmbiguous);
    const std::uint64_t ambiguous = code.jump_if(kNotEqual, code.address);
    // Checks for another line in the cache with the same element of data_places.
    code.with_context(kLoad, other, kDataCacheInContext + FirstLevel::kLines, true,
                      static_cast<std::uint8_t>(other));
    code.registers(0x31, other, line);  // xor
    code.test_bits(other, kPlacesMask << shift);
    const std::uint64_t another = code.jump_if(kEqual, code.address);

    code.store_context(kSavedRegisters + 2 * kWord, spare);
    emit_record(code, spec, address, other, kWord);
    code.registers(kStore, address, line, false);
    code.shift_right(address, shift);
    code.group1(kAnd, address, static_cast<std::int32_t>(spec.data.sets - 1), false);
    code.multiply(address, spec.data.ways * FirstLevel::kPlaceUnit);
    emit_least_recent(code, kDataCacheInContext, spec.data.ways, address, other, spare);
    code.with_context(kStore, line, kDataCacheInContext + FirstLevel::kLines, true,
                      static_cast<std::uint8_t>(address));
    code.load_context(spare, kSavedRegisters + 2 * kWord);
    code.store_context_word(kDataPlacesInContext, address, index, 1);
    emit_note_use(code, kDataCacheInContext, address, other);
    restore();
    code.ret();

    for (const std::uint64_t jump : {misaligned, ambiguous, another})
        if (jump != 0) code.patch(jump, code.address);
    restore();
    code.push_constant(bytes);
    code.with_memory(0xff, 6, at(RSP, 2 * kWord), false);  // push
    code.push(address);
    code.call(reference_stub);
    code.lea(RSP, at(RSP, 3 * kWord));
    code.ret();
}

void emit_first_level_fetch_miss_stub(Assembler& code, const trace::Spec& spec) {
    constexpr unsigned kLine = RAX, kPlace = RCX, kLeast = RDX, kOther = RSI;
    // Above the register that is pushed here and the return address.
    constexpr std::int32_t kPc = 2 * kWord, kSite = 3 * kWord, kNumber = 4 * kWord;
    code.store_context(kSavedRegisters, kLine);
    code.store_context(kSavedRegisters + kWord, kPlace);
    code.store_context(kSavedRegisters + 2 * kWord, kLeast);
    code.push(kOther);
    code.with_memory(kLoad, kLine, at(RSP, kPc));
    emit_record(code, spec, kLine, kLeast, kSite);
    code.with_memory(kLoad, kLine, at(RSP, kNumber), false);
    code.registers(kStore, kPlace, kLine, false);
    code.group1(kAnd, kPlace, static_cast<std::int32_t>(spec.fetch.sets - 1), false);
    code.multiply(kPlace, spec.fetch.ways * FirstLevel::kPlaceUnit);
    emit_least_recent(code, kCodeCacheInContext, spec.fetch.ways, kPlace, kLeast, kOther);
    code.with_context(kLoad, kOther, kCodeCacheInContext + FirstLevel::kLines, true, kPlace);
    code.registers(0x31, kLeast, kLeast, false);  // xor
    code.store_context_word(kCodePlacesInContext, kLeast, kOther, 2);
    code.with_context(kStore, kLine, kCodeCacheInContext + FirstLevel::kLines, true, kPlace);
    code.lea(kLeast, at(kPlace, FirstLevel::kPlaceUnit), false);
    code.store_context_word(kCodePlacesInContext, kLeast, kLine, 2);
    emit_note_use(code, kCodeCacheInContext, kPlace, kLeast);
    code.pop(kOther);
    code.load_context(kLine, kSavedRegisters);
    code.load_context(kPlace, kSavedRegisters + kWord);
    code.load_context(kLeast, kSavedRegisters + 2 * kWord);
    code.ret();
}

}  // namespace assay::native
