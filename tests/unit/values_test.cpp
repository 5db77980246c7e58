// Values of instructions: what has which, and how profilers get theirs.
#include "framework/driver/native/translate/values.h"
#include "assay/trace_parse.h"
#include "framework/collector/profilers/trace_parser.h"
#include "framework/trace/captures.h"
#include "framework/x86/decoder.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <vector>

namespace values_test {

using namespace assay::native;
using assay::trace::add;
using assay::trace::kReadBefore;
using assay::trace::ValueLists;

namespace {

struct Row {
    const char* text;
    std::vector<std::uint8_t> bytes;
    std::uint8_t value;
    Value::Place place;
    unsigned number, size;
    bool before;
};

// A list of these values for all instructions.
ValueLists lists_of(std::initializer_list<trace_value_t> values) {
    const std::unique_ptr<trace_vlist_table, void (*)(void*)> table(trace_vlist_table_alloc(),
                                                                    std::free);
    const std::unique_ptr<trace_vlist, void (*)(void*)> list(trace_vlist_alloc(), std::free);
    for (const trace_value_t value : values)
        REQUIRE(trace_add_value_to_vlist(list.get(), value) == 0);
    const auto all = [](std::uint16_t, std::uint32_t) -> int { return 1; };
    REQUIRE(trace_add_vlist_by_select(table.get(), all, list.get()) == 0);
    return *assay::trace::value_lists(*table);
}

}  // namespace

TEST_CASE("values: where those of an instruction are") {
    const std::uint8_t before = kReadBefore;
    const std::uint8_t destination = TRACE_DESTINATION, loaded = TRACE_LOADED,
                       stored = TRACE_STORED, first = TRACE_SOURCE0, second = TRACE_SOURCE1;
    const std::vector<Row> rows = {
        {"mov rax, [rdi]", {0x48, 0x8b, 0x07}, loaded, Value::kGpr, RAX, 8, false},
        {"mov al, [rdi]", {0x8a, 0x07}, loaded, Value::kMemory, 0, 1, false},
        {"add rax, [rdi]", {0x48, 0x03, 0x07}, loaded, Value::kMemory, 0, 8, false},
        {"add [rdi], eax", {0x01, 0x07}, loaded, Value::kMemory, 0, 4, true},
        {"add [rdi], eax", {0x01, 0x07}, stored, Value::kMemory, 0, 4, false},
        {"mov [rdi], eax", {0x89, 0x07}, loaded, Value::kNone, 0, 8, false},
        {"mov [rdi], eax", {0x89, 0x07}, std::uint8_t(stored | before), Value::kMemory, 0, 4, true},
        {"mov [rdi], ah", {0x88, 0x27}, first, Value::kHighByte, RAX, 1, false},
        {"mov [rdi], spl", {0x40, 0x88, 0x27}, first, Value::kGpr, RSP, 1, false},
        {"push rbx", {0x53}, first, Value::kGpr, RBX, 8, false},
        {"push rbx", {0x53}, destination, Value::kNone, 0, 8, false},
        {"pop r12", {0x41, 0x5c}, destination, Value::kGpr, R12, 8, false},
        {"add bx, ax", {0x66, 0x01, 0xc3}, first, Value::kGpr, RBX, 2, false},
        {"add bx, ax", {0x66, 0x01, 0xc3}, std::uint8_t(first | before), Value::kGpr, RBX, 2, true},
        {"add bx, ax",
         {0x66, 0x01, 0xc3},
         std::uint8_t(second | before),
         Value::kGpr,
         RAX,
         2,
         false},
        {"movsd xmm9, [rax]",
         {0xf2, 0x44, 0x0f, 0x10, 0x08},
         destination,
         Value::kVector,
         9,
         8,
         false},
        {"vmovups zmm0{k1}, [rax]",
         {0x62, 0xf1, 0x7c, 0x49, 0x10, 0x00},
         loaded,
         Value::kNone,
         0,
         8,
         false},
        {"vmovups zmm0, [rax]",
         {0x62, 0xf1, 0x7c, 0x48, 0x10, 0x00},
         loaded,
         Value::kMemory,
         0,
         8,
         false},
        // x87: numbers are those of where it is read.
        {"fld st(1)", {0xd9, 0xc1}, first, Value::kX87, 2, 8, false},
        {"fld st(1)", {0xd9, 0xc1}, std::uint8_t(first | before), Value::kX87, 1, 8, true},
        {"fld st(1)", {0xd9, 0xc1}, destination, Value::kX87, 0, 8, false},
        {"fld st(1)", {0xd9, 0xc1}, std::uint8_t(destination | before), Value::kX87, 7, 8, true},
        {"faddp st(2), st", {0xde, 0xc2}, destination, Value::kX87, 1, 8, false},
        {"faddp st(2), st", {0xde, 0xc2}, second, Value::kX87, 7, 8, false},
        {"fsincos", {0xd9, 0xfb}, destination, Value::kX87, 1, 8, false},
        {"fstp [rax]", {0xdd, 0x18}, destination, Value::kNone, 0, 8, false},
        {"fstp st(1)", {0xdd, 0xd9}, destination, Value::kX87, 0, 8, false},
        {"ftst", {0xd9, 0xe4}, destination, Value::kNone, 0, 8, false},
        {"ftst", {0xd9, 0xe4}, TRACE_ST0 + 3, Value::kX87, 3, 8, false},
        {"ret", {0xc3}, TRACE_ST0, Value::kX87, 0, 8, true},
        {"paddb mm3, mm1", {0x0f, 0xfc, 0xd9}, destination, Value::kMmx, 3, 8, false},
        {"paddb mm3, mm1",
         {0x0f, 0xfc, 0xd9},
         std::uint8_t(first | before),
         Value::kMmx,
         3,
         8,
         true},
        {"paddb mm3, mm1",
         {0x0f, 0xfc, 0xd9},
         std::uint8_t(second | before),
         Value::kMmx,
         1,
         8,
         false},
        {"nop", {0x90}, std::uint8_t((TRACE_MMX0 + 7) | before), Value::kMmx, 7, 8, true},
        {"ret", {0xc3}, loaded, Value::kTarget, 0, 8, false},
        {"call rax", {0xff, 0xd0}, stored, Value::kReturn, 0, 8, false},
        {"call rax", {0xff, 0xd0}, TRACE_LATENCY, Value::kNone, 0, 8, false},
        {"rep movsb", {0xf3, 0xa4}, TRACE_LATENCY, Value::kNone, 0, 8, false},
        {"nop", {0x90}, TRACE_LATENCY, Value::kTime, 0, 8, false},
    };
    Decoder decoder;
    for (const Row& row : rows) {
        CAPTURE(std::string(row.text));
        std::vector<std::uint8_t> code = row.bytes;
        code.resize(15, 0x90);
        Instruction instruction;
        REQUIRE(decoder.decode(code, 0x1000, instruction));
        CHECK(instruction.form->length == row.bytes.size());
        const Value value = value_of(*instruction.form, row.value);
        CHECK(value.place == row.place);
        if (value.place == Value::kNone) continue;
        CHECK(value.number == row.number);
        CHECK(value.bytes == row.size);
        CHECK(value.before == row.before);
    }
}

TEST_CASE("values: all bytes where they are asked for") {
    const auto bytes = [](std::vector<std::uint8_t> code, unsigned what, bool wide = true) {
        Decoder decoder;
        Instruction instruction;
        code.resize(15, 0x90);
        REQUIRE(decoder.decode(code, 0x1000, instruction));
        const Value value = value_of(*instruction.form, static_cast<std::uint8_t>(what), wide);
        return value.place == Value::kNone ? 0U : unsigned{value.bytes};
    };
    const std::vector<std::uint8_t> ymm_store = {0xc5, 0xfc, 0x11, 0x0e};  // vmovups [rsi], ymm1
    CHECK(bytes(ymm_store, TRACE_STORED) == 32);
    CHECK(bytes(ymm_store, TRACE_STORED | kReadBefore) == 32);
    CHECK(bytes(ymm_store, TRACE_SOURCE0) == 32);
    CHECK(bytes(ymm_store, TRACE_STORED, false) == 8);
    CHECK(bytes(ymm_store, TRACE_EFFECTIVE_ADDRESS) == 8);
    CHECK(bytes({0x62, 0xf1, 0x7c, 0x48, 0x10, 0x07}, TRACE_LOADED) == 64);  // vmovups zmm0, [rdi]
    CHECK(bytes({0xf2, 0x44, 0x0f, 0x10, 0x08}, TRACE_DESTINATION) == 16);   // movsd xmm9, [rax]
    CHECK(bytes({0xf2, 0x44, 0x0f, 0x10, 0x08}, TRACE_LOADED) == 8);
    CHECK(bytes({0x48, 0x89, 0x06}, TRACE_STORED) == 8);         // mov [rsi], rax
    CHECK(bytes({0xdb, 0x3e}, TRACE_STORED) == 10);              // fstp tbyte [rsi]
    CHECK(bytes({0xd9, 0x36}, TRACE_STORED) == 28);              // fnstenv [rsi]
    CHECK(bytes({0x66, 0xd9, 0x36}, TRACE_STORED) == 8);         // of 14 bytes
    CHECK(bytes({0x0f, 0xae, 0x06}, TRACE_STORED) == 8);         // fxsave [rsi]
    CHECK(bytes({0x48, 0x0f, 0xc7, 0x0e}, TRACE_LOADED) == 16);  // cmpxchg16b [rsi]
    CHECK(bytes({0xd9, 0xc1}, TRACE_DESTINATION) == 8);          // fld st(1)
    // vmovups [rsi]{k1}, zmm1
    CHECK(bytes({0x62, 0xf1, 0x7c, 0x49, 0x11, 0x0e}, TRACE_STORED) == 0);
}

TEST_CASE("values: of mask registers, where the processor has them") {
    const bool has = __builtin_cpu_supports("avx512bw");
    const auto value = [](std::vector<std::uint8_t> code, unsigned what) {
        Decoder decoder;
        Instruction instruction;
        code.resize(15, 0x90);
        REQUIRE(decoder.decode(code, 0x1000, instruction));
        return value_of(*instruction.form, static_cast<std::uint8_t>(what));
    };
    const auto is_mask = [has](const Value& found, unsigned number) {
        return has ? found.place == Value::kMask && found.number == number && found.bytes == 8
                   : found.place == Value::kNone;
    };
    CHECK(is_mask(value({0xc5, 0xec, 0x41, 0xcb}, TRACE_DESTINATION), 1));  // kandw k1, k2, k3
    CHECK(is_mask(value({0xc5, 0xec, 0x41, 0xcb}, TRACE_SOURCE1), 3));
    CHECK(is_mask(value({0x90}, TRACE_MASK0 + 6), 6));
    // vaddpd zmm0{k1}, zmm1, zmm2: what it works under is no operand.
    const std::vector<std::uint8_t> masked = {0x62, 0xf1, 0xf5, 0x49, 0x58, 0xc2};
    CHECK(value(masked, TRACE_SOURCE0).number == 0);
    CHECK(value(masked, TRACE_SOURCE1).number == 1);
    CHECK(value(masked, TRACE_SOURCE1).place == Value::kVector);
}

TEST_CASE("values: lists of several profilers are united") {
    ValueLists both = lists_of({TRACE_LOADED, TRACE_DESTINATION});
    add(both, lists_of({TRACE_DESTINATION, TRACE_STORED | TRACE_BEFORE}));
    const assay::trace::ValueList* list = both.find(TRACE_OPCODE(0, 0x8b), TRACE_INSTR_LOAD);
    REQUIRE(list != nullptr);
    REQUIRE(list->count == 3);
    CHECK(list->values[0] == TRACE_LOADED);
    CHECK(list->values[2] == (TRACE_STORED | kReadBefore));
    CHECK(both.find(TRACE_OPCODE(0x42, 0), 0) == nullptr);
    for (unsigned i = 0; i < 16; i += 4)
        add(both, lists_of({TRACE_GPR0 + i, TRACE_GPR0 + i + 1, TRACE_GPR0 + i + 2,
                            TRACE_GPR0 + i + 3, TRACE_VECTOR0 + i, TRACE_VECTOR0 + i + 1}));
    CHECK_THROWS(add(both, lists_of({TRACE_VECTOR0 + 30, TRACE_VECTOR0 + 31, TRACE_VECTOR0 + 29,
                                     TRACE_VECTOR0 + 28})));
}

TEST_CASE("values: captured wide where one profiler wants that") {
    ValueLists both = lists_of({TRACE_STORED, TRACE_LOADED});
    add(both, lists_of({TRACE_LOADED | TRACE_WIDE, TRACE_SOURCE0 | TRACE_WIDE | TRACE_BEFORE}));
    const assay::trace::ValueList* list = both.find(TRACE_OPCODE(1, 0x11), TRACE_INSTR_STORE);
    REQUIRE(list != nullptr);
    REQUIRE(list->count == 3);
    CHECK_FALSE(list->is_wide(0));
    CHECK(list->is_wide(1));
    CHECK(list->is_wide(2));
    CHECK(list->values[2] == (TRACE_SOURCE0 | kReadBefore));
    for (unsigned i = TRACE_VECTOR0; i < TRACE_VECTOR0 + 12; i += 4)
        add(both, lists_of({i | TRACE_WIDE, (i + 1) | TRACE_WIDE, (i + 2) | TRACE_WIDE,
                            (i + 3) | TRACE_WIDE}));
    CHECK_THROWS(add(both, lists_of({TRACE_STORED | TRACE_WIDE})));
}

TEST_CASE("values: each profiler gets its own, execution by execution") {
    const auto site = [](std::uint32_t instr, unsigned kind, unsigned operand) {
        return trace_site_t{instr, 8, static_cast<std::uint8_t>(kind),
                            static_cast<std::uint8_t>(operand)};
    };
    const trace_site_t sites[] = {
        site(0, TRACE_SITE_VALUE, TRACE_LOADED),
        site(0, TRACE_SITE_VALUE, TRACE_DESTINATION),
        site(1, TRACE_SITE_VALUE, TRACE_NONE),
        site(1, TRACE_SITE_VALUE, TRACE_DESTINATION),
        site(1, TRACE_SITE_READ, 0),
    };
    trace_instr_t instrs[2] = {};
    instrs[0].pc = 0x1000;
    instrs[0].opcode = instrs[1].opcode = TRACE_OPCODE(0, 0x8b);
    instrs[1].pc = 0x2000;
    // Twice the first one, in between a reference; then the second one, whose value is there only
    // the first time.
    const trace_record_t records[] = {{10, 0, 0}, {11, 1, 0}, {12, 0, 0}, {13, 1, 0}, {99, 4, 0},
                                      {0, 2, 0},  {20, 3, 0}, {0, 2, 0},  {0, 2, 0}};
    const ValueLists wanted = lists_of({TRACE_DESTINATION, TRACE_LOADED});
    trace_parser parser{};
    parser.records = records;
    parser.code = {{}, instrs, sites};
    parser.wanted = &wanted;
    std::uint32_t instr = 0;
    std::uint64_t pc = 0, values[2] = {};
    const auto next = [&](int max) {
        return trace_parser_next(&parser, &instr, &pc, nullptr, nullptr, max, values);
    };
    CHECK(next(2) == 2);
    CHECK(pc == 0x1000);
    CHECK(values[0] == 11);
    CHECK(values[1] == 10);
    CHECK(next(1) == 1);
    CHECK(values[0] == 13);
    CHECK(trace_parser_has_value(&parser, 0));
    CHECK_FALSE(trace_parser_has_value(&parser, 1));  // not asked for
    CHECK(next(2) == 2);
    CHECK(instr == 1);
    CHECK(values[0] == 20);
    CHECK(values[1] == 0);
    CHECK_FALSE(trace_parser_has_value(&parser, 1));
    CHECK(next(2) == 2);
    CHECK_FALSE(trace_parser_has_value(&parser, 0));
    CHECK(next(2) == 2);
    CHECK(next(2) == -1);
    CHECK(next(2) == -1);

    parser.next = 0;
    parser.wanted = nullptr;
    CHECK(next(2) == -1);
}

TEST_CASE("values: their bytes") {
    const auto site = [](unsigned bytes, unsigned kind, unsigned operand) {
        return trace_site_t{0, static_cast<std::uint16_t>(bytes), static_cast<std::uint8_t>(kind),
                            static_cast<std::uint8_t>(operand)};
    };
    const trace_site_t sites[] = {
        site(8, TRACE_SITE_VALUE, TRACE_STORED),
        site(8, TRACE_SITE_VALUE_REST, TRACE_STORED),
        site(8, TRACE_SITE_VALUE, TRACE_STORED | kReadBefore),
        site(2, TRACE_SITE_VALUE_REST, TRACE_STORED | kReadBefore),
        site(4, TRACE_SITE_VALUE, TRACE_SOURCE0),
    };
    trace_instr_t instrs[1] = {};
    instrs[0].opcode = TRACE_OPCODE(1, 0x11);
    const std::uint64_t low = 0x0807060504030201, high = 0x100f0e0d0c0b0a09;
    // The second execution has no source.
    const trace_record_t records[] = {{low, 0, 0}, {high, 1, 0}, {high, 2, 0}, {low, 3, 0},
                                      {low, 4, 0}, {high, 0, 0}, {low, 1, 0}};
    const ValueLists wide = lists_of({TRACE_SOURCE0 | TRACE_WIDE, TRACE_STORED | TRACE_WIDE,
                                      TRACE_STORED | TRACE_BEFORE | TRACE_WIDE});
    const ValueLists narrow = lists_of({TRACE_STORED});
    trace_parser parser{};
    parser.records = records;
    parser.code = {{}, instrs, sites};
    parser.wanted = &wide;
    std::uint64_t values[3] = {};
    const auto next = [&] {
        return trace_parser_next(&parser, nullptr, nullptr, nullptr, nullptr, 3, values);
    };
    std::uint8_t bytes[64] = {};
    const auto bytes_of = [&](std::uint32_t index, std::uint32_t room) {
        std::fill(std::begin(bytes), std::end(bytes), std::uint8_t{0xee});
        return trace_parser_value_bytes(&parser, index, bytes, room);
    };
    CHECK(bytes_of(0, 64) == 0);  // nothing has been found yet
    REQUIRE(next() == 3);
    CHECK(values[1] == low);
    CHECK(values[2] == high);
    CHECK(bytes_of(0, 64) == 4);
    CHECK(bytes[3] == 4);
    CHECK(bytes[4] == 0xee);
    CHECK(bytes_of(1, 64) == 16);
    for (unsigned i = 0; i < 16; ++i) CHECK(bytes[i] == i + 1);
    CHECK(bytes[16] == 0xee);
    CHECK(bytes_of(1, 11) == 16);
    CHECK(bytes[10] == 11);
    CHECK(bytes[11] == 0xee);
    CHECK(bytes_of(2, 64) == 10);
    CHECK(bytes[9] == 2);
    CHECK(bytes_of(3, 64) == 0);
    REQUIRE(next() == 3);
    CHECK(bytes_of(0, 64) == 0);
    CHECK(bytes_of(1, 64) == 16);
    CHECK(bytes_of(2, 64) == 0);
    CHECK(next() == -1);

    // Who does not ask for them has the low 8.
    parser.next = 0;
    parser.wanted = &narrow;
    CHECK(next() == 1);
    CHECK(values[0] == low);
    CHECK(bytes_of(0, 64) == 8);
    CHECK(next() == 1);
    CHECK(values[0] == high);
    CHECK(next() == -1);
}

}  // namespace values_test
