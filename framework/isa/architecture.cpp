#include "framework/isa/architecture.h"

#include <elf.h>
#include <algorithm>
#include <iterator>

namespace assay::isa {
namespace {

constexpr Architecture kArchitectures[] = {
    {.elf = kX86,
     .name = "x86-64",
     .qemu = "x86_64",
     .triplet = "x86_64-linux-gnu",
     .library = "libc6",
     .describe = describe_x86},
    // A fixed processor, so that programs choose the same functions with each version of QEMU.
    {.elf = {EM_AARCH64, ELFCLASS64, ELFDATA2LSB},
     .name = "AArch64",
     .qemu = "aarch64",
     .triplet = "aarch64-linux-gnu",
     .library = "libc6-arm64-cross",
     .cpu = "neoverse-n1",
     .describe = describe_aarch64},
    {.elf = {EM_RISCV, ELFCLASS64, ELFDATA2LSB},
     .name = "RISC-V 64",
     .qemu = "riscv64",
     .triplet = "riscv64-linux-gnu",
     .library = "libc6-riscv64-cross",
     .describe = describe_riscv},
    {.elf = {EM_ARM, ELFCLASS32, ELFDATA2LSB},
     .name = "32-bit ARM",
     .qemu = "arm",
     .triplet = "arm-linux-gnueabihf",
     .library = "libc6-armhf-cross"},
    {.elf = {EM_ARM, ELFCLASS32, ELFDATA2LSB, true},
     .name = "Arm Cortex-M",
     .qemu = "arm",
     .describe = describe_thumb},
    {.elf = {EM_386, ELFCLASS32, ELFDATA2LSB},
     .name = "i386",
     .qemu = "i386",
     .triplet = "i686-linux-gnu",
     .library = "libc6-i386-cross",
     .describe = describe_i386},
    {.elf = {EM_PPC64, ELFCLASS64, ELFDATA2LSB},
     .name = "ppc64le",
     .qemu = "ppc64le",
     .triplet = "powerpc64le-linux-gnu",
     .library = "libc6-ppc64el-cross"},
    {.elf = {EM_S390, ELFCLASS64, ELFDATA2MSB},
     .name = "s390x",
     .qemu = "s390x",
     .triplet = "s390x-linux-gnu",
     .library = "libc6-s390x-cross"},
};

}  // namespace

const Architecture* architecture_of(const ElfKind& elf) {
    const auto* const found =
        std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                     [&](const Architecture& known) { return known.elf == elf; });
    return found == std::end(kArchitectures) ? nullptr : found;
}

std::span<const Architecture> architectures() {
    return kArchitectures;
}

}  // namespace assay::isa
