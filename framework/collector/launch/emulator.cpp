#include "framework/collector/launch/emulator.h"

#include "framework/collector/profilers/plugin_search.h"
#include "framework/driver/qemu/command.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <gelf.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace assay::collector {
namespace {

namespace fs = std::filesystem;

std::string find_qemu(const Program& program, const isa::Architecture& architecture) {
    const std::string name = fmt::format("qemu-{}", architecture.qemu);
    const char* const path = std::getenv("PATH");
    for (const std::string& folder : split(path ? path : "/usr/bin", ':'))
        if (std::string file = fmt::format("{}/{}", folder, name); access(file.c_str(), X_OK) == 0)
            return file;
    throw Error(
        fmt::format("cannot run {}: built for {}, and {} is not on PATH; install QEMU (apt-get "
                    "install qemu-user), or give its path: --qemu=PATH",
                    program.file, architecture.name, name));
}

// True if the file exports a function of QEMU's plugin interface. A QEMU that is linked statically
// cannot load plugins.
bool loads_plugins(const std::string& file) {
    constexpr std::string_view kFunction = "qemu_plugin_register_vcpu_mem_cb";
    const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return false;
    elf_version(EV_CURRENT);
    Elf* const elf = elf_begin(descriptor, ELF_C_READ, nullptr);
    bool found = false;
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNSYM) continue;
        Elf_Data* const data = elf_getdata(section, nullptr);
        GElf_Sym symbol;
        for (int i = 0; !found && gelf_getsym(data, i, &symbol) != nullptr; ++i) {
            const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
            found = name != nullptr && name == kFunction;
        }
    }
    elf_end(elf);
    close(descriptor);
    return found;
}

std::string usable_qemu(const Program& program, const isa::Architecture& architecture,
                        const std::string& wanted) {
    std::string qemu = wanted.empty() ? find_qemu(program, architecture) : wanted;
    if (access(qemu.c_str(), X_OK) != 0)
        throw Error(fmt::format("--qemu={}: {}", qemu, system_reason(errno)));
    if (!loads_plugins(qemu))
        throw Error(
            fmt::format("{} cannot load plugins, which assay needs (Debian 12's qemu-user can, "
                        "Debian 13's cannot); give another QEMU: --qemu=PATH",
                        qemu));
    return qemu;
}

// Where a program finds its libraries: in the folder that the user wants, or in Debian's if it
// exists.
std::string sysroot_of(const isa::Architecture& architecture, const std::string& wanted) {
    if (!wanted.empty()) {
        if (!fs::is_directory(wanted))
            throw Error(fmt::format("--sysroot={}: no such folder", wanted));
        return wanted;
    }
    const std::string usual = fmt::format("/usr/{}", architecture.triplet);
    return architecture.elf != isa::kHost && fs::is_directory(usual) ? usual : "";
}

// The kernel's own linker would do without a sysroot: QEMU falls back to it.
std::string find_linker(const Program& program, const isa::Architecture& architecture,
                        const std::string& sysroot) {
    const std::string& name = program.dynamic_linker;
    if (name.empty()) return name;
    for (const std::string& path : {sysroot + name, name})
        if (access(path.c_str(), R_OK) == 0) return path;
    throw Error(fmt::format(
        "cannot run {}: its dynamic linker {} is not there; install {}, or give the folder with "
        "the libraries of {}: --sysroot=DIR",
        program.file, name, architecture.library, architecture.name));
}

// The instruction set of the firmware or kernel.
const isa::Architecture& architecture_of_image(const std::string& file) {
    const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) throw Error(fmt::format("--image={}: {}", file, system_reason(errno)));
    const isa::ElfKind kind = isa::kind_of_file(descriptor);
    close(descriptor);
    if (kind == isa::ElfKind{})
        throw Error(
            fmt::format("--image={}: not an ELF file; give the file that the linker wrote, "
                        "from which .bin and .hex files are made",
                        file));
    const isa::Architecture* const architecture = isa::architecture_of(kind);
    if (architecture == nullptr || kind.byte_order != ELFDATA2LSB)
        throw Error(
            fmt::format("--image={}: cannot profile machines of this processor ({}); see "
                        "docs/guides/firmware.md",
                        file,
                        architecture ? architecture->name
                                     : fmt::format("ELF machine {}, {}-bit", kind.machine,
                                                   kind.word_class == ELFCLASS32 ? 32 : 64)));
    return *architecture;
}

DriverCommand machine_driver(Program& program, const std::string& image) {
    const isa::Architecture& architecture = architecture_of_image(image);
    if (!loads_plugins(program.file))
        throw Error(fmt::format(
            "--image: {} is no QEMU that can load plugins; after the options, write the "
            "command that starts the machine: qemu-system-{} ...",
            program.file, architecture.qemu));
    program.dynamic_linker.clear();
    return {program.file,
            qemu::words_of_machine(program.argv, find_qemu_driver(), fs::absolute(image)),
            &architecture};
}

}  // namespace

DriverCommand choose_driver(Program& program, const DriverWishes& wishes) {
    if (!wishes.image.empty()) return machine_driver(program, wishes.image);
    const isa::Architecture& architecture = *isa::architecture_of(program.elf);
    const bool is_native = isa::runs_natively(program.elf);
    if (wishes.driver.find('/') != std::string::npos) return {wishes.driver, program.argv};
    if (wishes.driver != "qemu" && (is_native || wishes.driver != "auto")) {
        if (!isa::kHasNativeDriver)
            throw Error(
                fmt::format("--driver={}: this assay has no native driver, because that "
                            "needs an x86-64 processor; leave the option out",
                            wishes.driver));
        if (!is_native)
            throw Error(
                fmt::format("cannot run {}: built for {}; the native driver runs x86-64 programs",
                            program.file, architecture.name));
        if (program.name.starts_with("qemu-system-"))
            log::remark(
                "the profile is that of QEMU itself; to profile the emulated machine, give the ELF "
                "file of its firmware: --image=FILE");
        return {find_native_driver(), program.argv};
    }
    qemu::Emulator emulator;
    emulator.path = usable_qemu(program, architecture, wishes.qemu);
    if (!isa::kHasNativeDriver)
        log::remark(
            fmt::format("{} runs under {}, because the native driver needs an x86-64 "
                        "processor",
                        program.file, emulator.path));
    emulator.plugin = find_qemu_driver();
    emulator.sysroot = sysroot_of(architecture, wishes.sysroot);
    if (std::getenv("QEMU_CPU") == nullptr) emulator.cpu = architecture.cpu;
    emulator.fixed = wishes.fixed_addresses;
    program.dynamic_linker = find_linker(program, architecture, emulator.sysroot);
    std::vector<std::string> words = qemu::words_of(emulator);
    std::vector<std::string> environment;
    for (char** variable = environ; variable && *variable; ++variable)
        environment.emplace_back(*variable);
    qemu::add_program(words, environment, program.file, program.argv);
    return {emulator.path, std::move(words), &architecture};
}

}  // namespace assay::collector
