// Which source files the debug information of an object names.
#pragma once

#include <string>
#include <unordered_set>

namespace assay::symbols {

// As Symbolizer names files: of all units' line tables, of the object itself or of its separate
// debug file below `debug_root`. Empty if there is no debug information; or if `build_id`
// (lower-case hexadecimal) is not empty, and not the object's.
std::unordered_set<std::string> source_names(const std::string& object_path,
                                             const std::string& build_id,
                                             const std::string& debug_root);

}  // namespace assay::symbols
