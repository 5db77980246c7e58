// The variables of DWARF that have one place each, or one in the block of each thread.
#pragma once

#include "framework/symbols/interval_map.h"

#include <elfutils/libdw.h>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace assay::symbols {

// The types of variables, as DWARF describes them. Broken descriptions end: the answer is that it
// is not known.

// In bytes; 0 if it is not known.
std::uint64_t variable_size(Dwarf_Die variable);
// As "const char *[4]"; without the namespaces that it is in. Empty if it is not known.
std::string variable_type(Dwarf_Die variable);

struct StaticVariable {
    Address address = 0;  // at link time; of a thread-local one the offset in the block
    bool is_thread_local = false;
    std::uint64_t size = 0;  // 0 if it is not known
    std::string name;
    std::string function;  // that it is in, if it is in one: without namespaces and arguments
    std::string type;      // see variable_type()
};

// By thread-locality and address. Broken debug information gives what can be read of it.
// `thread_locals` is where the file has its thread-local block: with -gsplit-dwarf, gcc gives
// addresses there instead of offsets.
std::vector<StaticVariable> read_static_variables(Dwarf* dwarf,
                                                  std::pair<Address, Address> thread_locals);

}  // namespace assay::symbols
