// The types of variables, as DWARF describes them. Broken descriptions end: the answer is that it
// is not known.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <string>

namespace assay::symbols {

// In bytes; 0 if it is not known.
std::uint64_t variable_size(Dwarf_Die variable);
// As "const char *[4]"; without the namespaces that it is in. Empty if it is not known.
std::string variable_type(Dwarf_Die variable);

}  // namespace assay::symbols
