// What the driver learns of an instruction, against Zydis over many encodings: an answer is
// remembered for all instructions of one form.
#include "framework/x86/decoder.h"
#include "tests/unit/decoder_bytes.h"

#include <Zydis/Zydis.h>

#include <doctest/doctest.h>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace decoder_memory_test {

using namespace assay::native;

namespace {

struct Reference {
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

bool decode_by_zydis(const Bytes& bytes, Reference& out) {
    static const ZydisDecoder the_decoder = [] {
        ZydisDecoder made;
        ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        return made;
    }();
    return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&the_decoder, bytes.data(), bytes.size(),
                                               &out.instruction, out.operands));
}

// A decoder that remembers nothing any more: its table is filled with other forms.
Decoder& forgetful_decoder() {
    static const std::unique_ptr<Decoder> the_decoder = [] {
        auto made = std::make_unique<Decoder>();
        // mov r, [base + index * scale + disp] with prefixes that change nothing.
        constexpr std::uint8_t kIdle[] = {0x2e, 0x36, 0x3e, 0x26};
        Instruction instruction;
        for (const std::uint8_t first : kIdle)
            for (const std::uint8_t second : kIdle)
                for (unsigned modrm = 0x04; modrm < 0xc0; modrm += 8)
                    for (unsigned sib = 0; sib < 0x100; ++sib)
                        made->decode(padded({first, second, 0x8b, static_cast<std::uint8_t>(modrm),
                                             static_cast<std::uint8_t>(sib)}),
                                     kPc, instruction);
        return made;
    }();
    return *the_decoder;
}

class RandomCode {
  public:
    std::uint8_t byte() { return static_cast<std::uint8_t>(generator_()); }
    bool one_in(unsigned count) { return generator_() % count == 0; }

    // 15 bytes, more often an instruction of every map than chance would have it.
    Bytes next() {
        Bytes bytes;
        constexpr std::uint8_t kPrefixes[] = {0x66, 0x67, 0xf0, 0xf2, 0xf3, 0x2e, 0x64};
        while (one_in(3) && bytes.size() < 3) bytes.push_back(kPrefixes[byte() % 7]);
        if (one_in(2)) bytes.push_back(0x40 | (byte() & 0xf));
        const unsigned map = byte() % 8;
        constexpr std::uint8_t kEscapes[] = {0xc5, 0xc4, 0x62};
        if (map >= 2 && map <= 4) bytes.push_back(0x0f);
        if (map == 3) bytes.push_back(0x38);
        if (map == 4) bytes.push_back(0x3a);
        if (map >= 5) bytes.push_back(kEscapes[map - 5]);
        while (bytes.size() < 15) bytes.push_back(byte());
        return bytes;
    }
    // The same form with another displacement and immediate.
    Bytes other(Bytes bytes, const ZydisDecodedInstruction& zydis) {
        const auto fill = [&](unsigned offset, unsigned bits) {
            for (unsigned i = 0; i < bits / 8; ++i) bytes[offset + i] = byte();
        };
        fill(zydis.raw.disp.offset, zydis.raw.disp.size);
        for (const auto& immediate : zydis.raw.imm) fill(immediate.offset, immediate.size);
        return bytes;
    }

  private:
    std::mt19937_64 generator_{20211};
};

std::string hexadecimal(const Bytes& bytes) {
    std::string text;
    for (const std::uint8_t byte : bytes) {
        constexpr char kDigits[] = "0123456789abcdef";
        text += {kDigits[byte >> 4], kDigits[byte & 15], ' '};
    }
    return text;
}

GprMask mask_of(ZydisRegister reg) {
    const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15) return 0;
    return bit(static_cast<unsigned>(whole - ZYDIS_REGISTER_RAX));
}

// What must hold of every register operand and of those in addresses, by Zydis's list.
void check_registers(const Form& form, const Reference& zydis) {
    GprMask named = 0, written = 0;
    for (unsigned i = 0; i < zydis.instruction.operand_count; ++i) {
        const ZydisDecodedOperand& operand = zydis.operands[i];
        if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
            const auto address =
                static_cast<GprMask>(mask_of(operand.mem.base) | mask_of(operand.mem.index));
            named |= address;
            CHECK((form.reads & address) == address);
            // Of cmps and scas, too, whatever Zydis says.
            if (zydis.instruction.meta.category == ZYDIS_CATEGORY_STRINGOP) written |= address;
        }
        if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
        const GprMask reg = mask_of(operand.reg.value);
        named |= reg;
        if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) written |= reg;
        if (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) CHECK((form.reads & reg) == reg);
        if (operand.actions & ZYDIS_OPERAND_ACTION_CONDWRITE || operand.size < 32)
            CHECK((form.reads & reg) == reg);
    }
    CHECK(form.writes == written);
    CHECK((form.reads & ~named) == 0);
    CHECK((form.kills & ~written) == 0);
    // What is written but not surely as a whole is live before.
    CHECK((written & ~(form.kills | form.reads)) == 0);
}

void check_operands(const Instruction& instruction, const Reference& zydis) {
    const Form& form = *instruction.form;
    unsigned at = 0;
    bool displaced = false, relative = false;
    for (unsigned i = 0; i < zydis.instruction.operand_count; ++i) {
        const ZydisDecodedOperand& operand = zydis.operands[i];
        ZyanU64 address = 0;
        if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand.imm.is_relative) {
            relative = true;
            REQUIRE(ZYAN_SUCCESS(
                ZydisCalcAbsoluteAddress(&zydis.instruction, &operand, instruction.pc, &address)));
            CHECK(instruction.target() == address);
        }
        if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
        if (operand.mem.disp.has_displacement && !displaced) {
            displaced = true;
            CHECK(instruction.displacement() == operand.mem.disp.value);
        }
        if (operand.mem.base == ZYDIS_REGISTER_RIP) {
            CHECK(form.rip_relative);
            CHECK(instruction.rip_address() ==
                  instruction.next_pc() + static_cast<std::uint64_t>(operand.mem.disp.value));
        }
        ++at;
    }
    CHECK(form.reference_count <= at);
    if (relative && form.flow != Flow::kUnsupported) CHECK(form.flow != Flow::kNone);
}

void check_same(const Instruction& found, const Instruction& expected) {
    const Form &a = *found.form, &b = *expected.form;
    CHECK(a.length == b.length);
    CHECK(a.opcode_offset == b.opcode_offset);
    CHECK(a.modrm_offset == b.modrm_offset);
    CHECK(a.disp_offset == b.disp_offset);
    CHECK(a.disp_bytes == b.disp_bytes);
    CHECK(a.disp_scale == b.disp_scale);
    CHECK(a.imm_offset == b.imm_offset);
    CHECK(a.imm_bytes == b.imm_bytes);
    CHECK(a.flow == b.flow);
    CHECK(a.special == b.special);
    CHECK(a.trace_flags == b.trace_flags);
    CHECK(a.opcode == b.opcode);
    CHECK(a.mnemonic == b.mnemonic);
    CHECK(a.rip_relative == b.rip_relative);
    CHECK(a.sets_base == b.sets_base);
    CHECK(a.reads == b.reads);
    CHECK(a.writes == b.writes);
    CHECK(a.kills == b.kills);
    CHECK(a.flags_read == b.flags_read);
    CHECK(found.flags_killed() == expected.flags_killed());
    CHECK(found.stack_change() == expected.stack_change());
    for (unsigned i = 0; i < 2; ++i) {
        CHECK(a.sources[i].kind == b.sources[i].kind);
        CHECK(a.sources[i].number == b.sources[i].number);
    }
    REQUIRE(a.reference_count == b.reference_count);
    for (unsigned i = 0; i < a.reference_count; ++i) {
        const MemoryReference &x = a.references[i], &y = b.references[i];
        CHECK(x.kind == y.kind);
        CHECK(x.base == y.base);
        CHECK(x.index == y.index);
        CHECK(x.scale == y.scale);
        CHECK(x.bytes == y.bytes);
        CHECK(x.bias == y.bias);
        CHECK(x.encoded == y.encoded);
        CHECK(x.segment == y.segment);
        CHECK(x.address32 == y.address32);
        CHECK(displacement_of(found, x) == displacement_of(expected, y));
    }
}

void check_against_zydis(Decoder& remembering, const Bytes& bytes, const Reference& zydis) {
    CAPTURE(hexadecimal(bytes));
    Instruction found, expected;
    REQUIRE(remembering.decode(bytes, kPc, found));
    REQUIRE(forgetful_decoder().decode(bytes, kPc, expected));
    CHECK(found.form->length == zydis.instruction.length);
    check_same(found, expected);
    check_registers(*found.form, zydis);
    check_operands(found, zydis);
}

}  // namespace

TEST_CASE("an answer that is remembered is the one that Zydis would give") {
    Decoder remembering;
    RandomCode code;
    unsigned checked = 0;
    for (unsigned i = 0; i < 12000; ++i) {
        const Bytes bytes = code.next();
        Reference zydis;
        Instruction instruction;
        if (!decode_by_zydis(bytes, zydis)) {
            CAPTURE(hexadecimal(bytes));
            CHECK_FALSE(remembering.decode(bytes, kPc, instruction));
            continue;
        }
        ++checked;
        check_against_zydis(remembering, bytes, zydis);
        const Bytes again = code.other(bytes, zydis.instruction);
        Reference other;
        if (decode_by_zydis(again, other)) check_against_zydis(remembering, again, other);
    }
    CHECK(checked > 3000);
}

TEST_CASE("a prefix behind REX makes it void, and is not taken for an opcode") {
    Decoder remembering;
    // add ax, 0x1234 and mov word ptr [rax], 0x5678, both with a REX prefix that has no effect.
    for (const Bytes& bytes : std::vector<Bytes>{{0x48, 0x66, 0x05, 0x34, 0x12},
                                                 {0x48, 0x66, 0xc7, 0x00, 0x78, 0x56},
                                                 {0x48, 0x40, 0x89, 0xc8},
                                                 {0x48, 0x40, 0x83, 0xc0, 0x01}}) {
        Reference zydis;
        REQUIRE(decode_by_zydis(padded(bytes), zydis));
        check_against_zydis(remembering, padded(bytes), zydis);
    }
}

}  // namespace decoder_memory_test
