// Readable names of functions of D.
#pragma once

#include <optional>
#include <string>

namespace assay::symbols {

// "names.Vec.dot(const(names.Vec)) const" for a symbol of D; none if `symbol` is not one, or could
// take long: what a short symbol stands for can be as long as one likes. What compilers append to
// a copy stays, as [clone .cold].
std::optional<std::string> d_name(const std::string& symbol);

}  // namespace assay::symbols
