#include "framework/isa/disassembler.h"

#include <Zydis/Zydis.h>
#include <capstone/capstone.h>
#include <dlfcn.h>
#include <elf.h>
#include <fmt/core.h>
#include <algorithm>
#include <iterator>
#include <string_view>

namespace assay::isa {
namespace {

std::string aligned(std::string_view mnemonic, std::string_view operands) {
    constexpr std::size_t kWidth = 7;
    if (operands.empty()) return std::string(mnemonic);
    return fmt::format("{:<{}} {}", mnemonic, kWidth, operands);
}

template <typename Function>
Function* function_of(void* library, const char* name) {
    return reinterpret_cast<Function*>(dlsym(library, name));
}

// How Capstone names an instruction set.
struct CapstoneKind {
    ElfKind elf;
    cs_arch arch;
    cs_mode mode;
};

const CapstoneKind* kind_of(const ElfKind& elf) {
    static const CapstoneKind kKinds[] = {
        {kX86, CS_ARCH_X86, CS_MODE_64},
        {{EM_386, ELFCLASS32, ELFDATA2LSB}, CS_ARCH_X86, CS_MODE_32},
        {{EM_AARCH64, ELFCLASS64, ELFDATA2LSB}, CS_ARCH_ARM64, CS_MODE_ARM},
        {{EM_ARM, ELFCLASS32, ELFDATA2LSB, true},
         CS_ARCH_ARM,
         static_cast<cs_mode>(CS_MODE_THUMB | CS_MODE_MCLASS)},
        {{EM_PPC64, ELFCLASS64, ELFDATA2LSB}, CS_ARCH_PPC, CS_MODE_64},
        {{EM_S390, ELFCLASS64, ELFDATA2MSB}, CS_ARCH_SYSZ, CS_MODE_BIG_ENDIAN},
#if CS_API_MAJOR >= 5
        {{EM_RISCV, ELFCLASS64, ELFDATA2LSB},
         CS_ARCH_RISCV,
         static_cast<cs_mode>(CS_MODE_RISCV64 | CS_MODE_RISCVC)},
#endif
    };
    const auto* const found =
        std::find_if(std::begin(kKinds), std::end(kKinds),
                     [&](const CapstoneKind& known) { return known.elf == elf; });
    return found == std::end(kKinds) ? nullptr : found;
}

}  // namespace

// Loads Capstone only when it is needed: its 75,000 relocations would cost every command and every
// run of a program a millisecond.
struct Disassembler::Capstone {
    static constexpr int kVersion = CS_API_MAJOR;
    const std::string name = fmt::format("libcapstone.so.{}", kVersion);
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    decltype(&cs_open) open = function_of<decltype(cs_open)>(library, "cs_open");
    decltype(&cs_option) option = function_of<decltype(cs_option)>(library, "cs_option");
    decltype(&cs_disasm) disasm = function_of<decltype(cs_disasm)>(library, "cs_disasm");
    decltype(&cs_free) free = function_of<decltype(cs_free)>(library, "cs_free");
    decltype(&cs_close) close = function_of<decltype(cs_close)>(library, "cs_close");
    decltype(&cs_version) version = function_of<decltype(cs_version)>(library, "cs_version");

    // 0 if Capstone cannot be used.
    csh begin(const ElfKind& elf, Syntax syntax) const {
        csh handle = 0;
        const CapstoneKind* const kind = kind_of(elf);
        if (kind == nullptr || library == nullptr || !open || !option || !disasm || !free ||
            !close || open(kind->arch, kind->mode, &handle) != CS_ERR_OK)
            return 0;
        if (kind->arch == CS_ARCH_X86)
            option(handle, CS_OPT_SYNTAX,
                   syntax == Syntax::kAtt ? CS_OPT_SYNTAX_ATT : CS_OPT_SYNTAX_INTEL);
        return handle;
    }
};

const Disassembler::Capstone& Disassembler::capstone() {
    static const Capstone loaded;
    return loaded;
}

std::string Disassembler::capstone_version() {
    if (capstone().library == nullptr || !capstone().version) return "none";
    int major = 0, minor = 0;
    capstone().version(&major, &minor);
    return fmt::format("{}.{}", major, minor);
}

Disassembler::Disassembler(Syntax syntax) : syntax_(syntax) {}

Disassembler::~Disassembler() {
    for (const auto& [kind, handle] : handles_) {
        csh open = handle;
        if (open != 0) capstone().close(&open);
    }
}

std::size_t Disassembler::handle_of(const ElfKind& elf) const {
    const std::uint32_t key = std::uint32_t{elf.machine} << 16 |
                              std::uint32_t{elf.word_class} << 8 |
                              std::uint32_t{elf.microcontroller} << 7 | elf.byte_order;
    const auto known = handles_.find(key);
    return known != handles_.end()
               ? known->second
               : handles_.emplace(key, capstone().begin(elf, syntax_)).first->second;
}

Disassembler::Text Disassembler::print(std::span<const std::uint8_t> code, std::uint64_t address,
                                       const ElfKind& elf) const {
    cs_insn* found = nullptr;
    const csh handle = handle_of(elf);
    if (handle == 0 || capstone().disasm(handle, code.data(), code.size(), address, 1, &found) != 1)
        return elf == kX86 ? print_with_zydis(code, address) : print_bytes(code, elf);
    Text text{aligned(found->mnemonic, found->op_str), found->size};
    capstone().free(found, 1);
    return text;
}

// The bytes of an instruction as a number. Capstone 4 does not know RISC-V, and the code of 32-bit
// ARM does not tell whether it is Thumb code.
Disassembler::Text Disassembler::print_bytes(std::span<const std::uint8_t> code,
                                             const ElfKind& elf) {
    Instruction described;
    const Architecture* const architecture = architecture_of(elf);
    const bool known =
        architecture && architecture->describe && architecture->describe(code, described);
    const std::size_t length = std::min<std::size_t>(known                   ? described.length
                                                     : elf.machine == EM_ARM ? 2
                                                                             : 4,
                                                     code.size());
    std::uint64_t number = 0;
    for (std::size_t i = length; i-- > 0;) number = number << 8 | code[i];
    return {fmt::format(".{}byte  {:#0{}x}", length, number, 2 * length + 2), length};
}

Disassembler::Text Disassembler::print_with_zydis(std::span<const std::uint8_t> code,
                                                  std::uint64_t address) const {
    ZydisDecoder decoder;
    ZydisFormatter formatter;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter, syntax_ == Syntax::kAtt ? ZYDIS_FORMATTER_STYLE_ATT
                                                           : ZYDIS_FORMATTER_STYLE_INTEL);
    // In the same style as Capstone.
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    char text[256];
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &instruction, operands)) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &instruction, operands,
                                                      instruction.operand_count_visible, text,
                                                      sizeof text, address, nullptr)))
        return {"(bad)", 0};
    const std::string_view whole = text;
    const std::size_t blank = whole.find(' ');
    const bool bare = blank == std::string_view::npos;
    return {aligned(whole.substr(0, blank), bare ? "" : whole.substr(blank + 1)),
            instruction.length};
}

}  // namespace assay::isa
