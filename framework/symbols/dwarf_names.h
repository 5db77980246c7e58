// Names of DWARF functions.
#pragma once

#include "framework/symbols/dwarf_walk.h"

#include <elfutils/libdw.h>

#include <string>

namespace assay::symbols {

// The mangled name of a function if it or what it is an instance of has one, else the names of
// its namespaces, classes and its own joined by "::" (gcc records no mangled names of functions
// that cannot be seen outside of their file). Empty if it has no name.
std::string function_name(Dwarf_Die* function, Children& children);

}  // namespace assay::symbols
