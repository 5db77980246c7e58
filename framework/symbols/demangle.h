// Names of functions as people write them.
#pragma once

#include <string>

namespace assay::symbols {

// The name that a symbol of C++, Rust or D stands for; the symbol itself if it is of none of them.
std::string demangled(const std::string& symbol);

}  // namespace assay::symbols
