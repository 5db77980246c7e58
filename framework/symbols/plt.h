// Names for entries of procedure linkage tables, which have no symbols of their own.
#pragma once

#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_store.h"

#include <span>
#include <string_view>
#include <vector>

namespace assay::symbols {

// Where an address lies in a .plt, .plt.got, .plt.sec or .iplt section and `result` has no name for
// it yet, names it "target@plt". Entries whose target cannot be told stay as they are: the first
// one of .plt, which calls the dynamic linker.
void name_plt_entries(const ElfFile& object, std::span<const Address> addresses, Names& names,
                      std::vector<FunctionName>& result);

}  // namespace assay::symbols
