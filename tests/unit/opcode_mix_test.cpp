// What instructions are, and what opcode_mix takes them for.
#include "framework/x86/instruction_facts.h"
#include "plugins/opcode_mix/classify.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace opcode_mix_test {

using namespace opcode_mix;
using assay::native::find_facts;

namespace {

trace_instr_facts_t facts_of(std::initializer_list<std::uint8_t> bytes) {
    const std::vector<std::uint8_t> code(bytes);
    trace_instr_facts_t facts{};
    REQUIRE(find_facts(code, facts));
    return facts;
}

}  // namespace

TEST_CASE("opcode_mix: facts of a packed instruction under a mask") {
    // vfmadd231pd zmm2{k1}, zmm1, [rax]
    const auto facts = facts_of({0x62, 0xf2, 0xf5, 0x49, 0xb8, 0x10});
    CHECK(std::string(facts.mnemonic) == "vfmadd231pd");
    CHECK(std::string(facts.extension) == "AVX512EVEX");
    CHECK(facts.vector_bits == 512);
    CHECK(facts.element_type == TRACE_ELEMENT_FLOAT);
    CHECK(facts.element_bits == 64);
    CHECK(facts.elements == 8);
    CHECK(facts.loaded_bytes == 64);
    CHECK(facts.stored_bytes == 0);
    CHECK(facts.flags == TRACE_FACT_MASKED);
    CHECK(flops_of(facts).count == 16);
    CHECK(flops_of(facts).part == kFlD8);
    CHECK(part_of(facts, TRACE_INSTR_LOAD) == kVfp);
    CHECK(width_of(facts) == kW512);
    CHECK(set_of(facts) == kAvx512);
}

TEST_CASE("opcode_mix: masks of other registers than opmasks are masks, too") {
    // vpgatherdd ymm1, [rax + ymm2], ymm3; vpmaskmovd ymm1, ymm2, [rax]; maskmovdqu xmm0, xmm1
    CHECK(facts_of({0xc4, 0xe2, 0x65, 0x90, 0x0c, 0x10}).flags == TRACE_FACT_MASKED);
    CHECK(facts_of({0xc4, 0xe2, 0x6d, 0x8c, 0x08}).flags == TRACE_FACT_MASKED);
    CHECK(facts_of({0x66, 0x0f, 0xf7, 0xc1}).flags == TRACE_FACT_MASKED);
    CHECK(facts_of({0xc5, 0xed, 0xfe, 0x08}).flags == 0);  // vpaddd ymm1, ymm2, [rax]
}

TEST_CASE("opcode_mix: scalar instructions compute one element, whatever the register") {
    const auto facts = facts_of({0xc5, 0xf2, 0x58, 0xc2});  // vaddss xmm0, xmm1, xmm2
    CHECK(facts.elements == 1);
    CHECK(facts.element_bits == 32);
    CHECK(flops_of(facts).count == 1);
    CHECK(flops_of(facts).part == kFlS1);
    CHECK(part_of(facts, 0) == kFop);
    CHECK(width_of(facts) == kWs);
    const auto integers = facts_of({0x66, 0x0f, 0xf6, 0xc1});  // psadbw: no packed w
    CHECK(integers.elements > 1);
    CHECK(part_of(integers, 0) == kVint);
    const auto broadcast = facts_of({0xc4, 0xe2, 0x7d, 0x18, 0x00});  // vbroadcastss ymm0, [rax]
    CHECK(broadcast.elements == 8);
    CHECK(part_of(broadcast, TRACE_INSTR_LOAD) == kVshuf);
}

TEST_CASE("opcode_mix: locked instructions, strings of memory and moves of a string's name") {
    const auto locked = facts_of({0xf0, 0x01, 0x18});  // lock add [rax], ebx
    CHECK(locked.flags == TRACE_FACT_LOCKED);
    CHECK(locked.loaded_bytes == 4);
    CHECK(locked.stored_bytes == 4);
    CHECK(part_of(locked, TRACE_INSTR_LOAD | TRACE_INSTR_STORE) == kAtom);
    CHECK(facts_of({0x87, 0x18}).flags == TRACE_FACT_LOCKED);  // xchg [rax], ebx
    CHECK(facts_of({0x87, 0xd8}).flags == 0);                  // xchg eax, ebx
    const auto string = facts_of({0xa5});                      // movsd, of the general registers
    CHECK(part_of(string, TRACE_INSTR_LOAD | TRACE_INSTR_STORE) == kStr);
    CHECK(width_of(string) == std::nullopt);
    CHECK(part_of(facts_of({0xf2, 0x0f, 0x10, 0x00}), TRACE_INSTR_LOAD) == kFmov);  // movsd
}

TEST_CASE("opcode_mix: branches by what they are and where they get their target") {
    const auto jump = facts_of({0xff, 0xe0});  // jmp rax
    CHECK(part_of(jump, TRACE_INSTR_INDIRECT) == kIjmp);
    CHECK(part_of(facts_of({0xeb, 0x00}), 0) == kJmp);
    CHECK(part_of(facts_of({0xff, 0xd0}), TRACE_INSTR_INDIRECT | TRACE_INSTR_CALL) == kIcall);
    CHECK(part_of(facts_of({0xe2, 0x00}), TRACE_INSTR_CONDITIONAL) == kJcc);  // loop
    CHECK(group_of(kIjmp) == kCtl);
}

TEST_CASE("opcode_mix: each part is in the group whose column it follows") {
    for (std::uint32_t part = kFirstPart; part <= kLastPart; ++part) {
        const Event group = group_of(static_cast<Event>(part));
        CHECK(group >= kMov);
        CHECK(group <= kOth);
        if (part > kFirstPart) CHECK(group >= group_of(static_cast<Event>(part - 1)));
    }
}

TEST_CASE("opcode_mix: bytes that are no instruction have no facts") {
    trace_instr_facts_t facts{};
    const std::vector<std::uint8_t> invalid{0x06};
    CHECK_FALSE(find_facts(invalid, facts));
    CHECK_FALSE(find_facts({}, facts));
}

TEST_CASE("opcode_mix: the summary") {
    std::vector<std::uint64_t> totals(kEvents);
    totals[kIr] = 1000;
    totals[kVec] = 250;
    totals[kFlops] = 3000;
    totals[kLdB] = 1500;
    const std::string text = summarise(totals, {{"mov", 400}, {"add", 100}});
    CHECK(text.find("40.0%") != std::string::npos);
    CHECK(text.find("25.0%") != std::string::npos);
    CHECK(text.find("2.000") != std::string::npos);  // flops per byte
    CHECK(in_one_line({{"mov", 400}, {"add", 100}}, 1000) == "mov 40.0%, add 10.0%");
}

}  // namespace opcode_mix_test
