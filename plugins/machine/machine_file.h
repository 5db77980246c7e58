// Machine files: YAML, as docs/reference/machine-file.md describes it.
#pragma once

#include "plugins/machine/machine.h"

#include <string>
#include <string_view>
#include <vector>

namespace machine {

// Reads the file, or the machine that comes with assay, of that name. What has a / or ends in
// .yaml or .yml is a file. Throws std::runtime_error that names file and line.
Machine read_machine(const std::string& file_or_name);
// The same of a text; `name` is what errors call it, and own libraries lie beside it.
Machine parse_machine(const std::string& text, const std::string& name);

// Of those that come with assay.
std::vector<std::string> machine_names();

struct ShippedMachine {
    std::string_view name, text;
};
// Defined by what embed.py makes of machines/*.yaml.
extern const std::vector<ShippedMachine> kShippedMachines;

}  // namespace machine
