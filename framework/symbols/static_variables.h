// Static and thread-local variables, from DWARF.
#pragma once

#include "framework/symbols/interval_map.h"

#include <elfutils/libdw.h>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay::symbols {

// Types of variables. Types in broken files may refer to one another in circles; they count as not
// known.

// In bytes; 0 if not known.
std::uint64_t variable_size(Dwarf_Die variable);
// For example "const char *[4]", without namespaces. Empty if not known.
std::string variable_type(Dwarf_Die variable);

struct StaticVariable {
    Address address = 0;  // at link time; for a thread-local variable, the offset in the block
    bool is_thread_local = false;
    std::uint64_t size = 0;  // 0 if not known
    std::string name;
    std::string function;  // around the variable, without namespaces and arguments; or empty
    std::string type;      // see variable_type()
};

// Sorted by thread-locality and address. From broken debug information, returns the readable part.
// `thread_locals` is the address range of the thread-local block in the file: with -gsplit-dwarf,
// gcc gives addresses in it instead of offsets.
std::vector<StaticVariable> read_static_variables(Dwarf* dwarf,
                                                  std::pair<Address, Address> thread_locals);

}  // namespace assay::symbols
