// Finds the file that holds an object's debug information, where that is not the object itself.
#pragma once

#include "framework/symbols/elf_file.h"

#include <memory>
#include <string>

namespace assay::symbols {

bool has_dwarf(const ElfFile& file);

// The separate debug file of `object`, or null: by build id below DEBUG_ROOT/.build-id, else by
// the name in .gnu_debuglink beside the object, in .debug/ beside it, or below
// DEBUG_ROOT/<folder of the object>. That is where gdb looks, too. A file that belongs to
// another build is not taken: build ids must agree, or without them the checksum.
std::unique_ptr<ElfFile> find_debug_file(const ElfFile& object, const std::string& debug_root);

// The file named by .gnu_debugaltlink of `file` (written by dwz, with what several debug files
// share), or null.
std::unique_ptr<ElfFile> find_alternate_file(const ElfFile& file, const std::string& debug_root);

}  // namespace assay::symbols
