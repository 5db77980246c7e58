// The code of a profile's objects, read from the current files. Also finds targets of branches, and
// variables that values point to.
#pragma once

#include "framework/events/header.h"
#include "framework/isa/disassembler.h"
#include "framework/symbols/dwarf_resolver.h"
#include "framework/symbols/elf_file.h"
#include "framework/symbols/symbol_table.h"
#include "framework/x86/decoder.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

class ObjectCode {
  public:
    // `path` is the current path of the object; "" if it is still the path in the profile.
    ObjectCode(const events::Object& object, const std::string& path);

    // Why there is no code, with a remedy; "" if the code is there.
    const std::string& problem() const { return problem_; }
    const std::string& path() const { return path_; }
    const isa::ElfKind& elf() const { return elf_; }

    // The bytes from an address to the end of its section; empty if there is no code. Valid as long
    // as this object.
    std::span<const std::uint8_t> bytes(std::uint64_t address) const;
    // The functions that contain at least one of the sorted addresses: see symbols/symbol_table.h.
    std::vector<symbols::FunctionRange> functions(std::span<const std::uint64_t> addresses);
    // The names of the symbols at sorted addresses, including entries of procedure linkage tables.
    std::vector<std::string_view> names(std::span<const std::uint64_t> addresses);

  private:
    std::string path_, problem_;
    isa::ElfKind elf_ = isa::kX86;
    std::unique_ptr<symbols::ElfFile> file_, debug_file_;
    symbols::Names names_;
};

// The code of all objects. `program`, unless it is "", replaces the object with the same build id,
// or else with the same file name. Throws Error if no object matches.
std::vector<std::unique_ptr<ObjectCode>> open_objects(const std::vector<events::Object>& objects,
                                                      const std::string& program);

// The link-time address that a direct jump or call leads to; 0 for other instructions.
std::uint64_t branch_target(const native::Instruction& instruction);

using isa::Disassembler;
using isa::Syntax;

// An instruction as text, and its target.
struct CodeText {
    std::string text;
    std::size_t length = 0;
    std::uint64_t target = 0;  // see branch_target()
};
CodeText print_code(const Disassembler& disassembler, native::Decoder& decoder,
                    const ObjectCode& code, std::uint64_t address);
// Appends " <name>" or " <name+0x12>" to each text with a target for which a symbol is known.
void name_targets(std::span<CodeText* const> texts, ObjectCode& code);

// Names values that are addresses in a program's files: functions, variables, sections. The profile
// contains the address of each file (`load` in docs/reference/events-file.md). A file is used only
// if it has not changed since the profile. An integer that equals an address by chance is also
// named.
class ValueSymbols {
  public:
    ValueSymbols(const std::vector<events::Object>& objects, std::vector<std::uint64_t> values);

    // "name", "name+0x8", ".bss+0x10 in libx.so"; "" if the value is no known address. The file is
    // omitted for the first object, which usually is the program.
    std::string_view name(std::uint64_t value) const;

  private:
    void add(const events::Object& object, bool is_first, const std::vector<std::uint64_t>& values);

    std::map<std::uint64_t, std::string> names_;
};

}  // namespace assay
