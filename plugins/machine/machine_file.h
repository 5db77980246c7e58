// Reads machine files: YAML, described in docs/reference/machine-file.md.
#pragma once

#include "plugins/machine/changes.h"
#include "plugins/machine/machine.h"

#include <string>
#include <string_view>
#include <vector>

namespace machine {

// Reads a file, or the built-in machine of that name. A name with a / or with the ending .yaml or
// .yml is a file. Throws std::runtime_error with file and line.
Machine read_machine(const std::string& file_or_name, const std::vector<Change>& changes = {});
// Reads a machine from a text. `name` stands for the file in messages, and libraries are searched
// beside it.
Machine parse_machine(const std::string& text, const std::string& name,
                      const std::vector<Change>& changes = {});

// The names of the built-in machines.
std::vector<std::string> machine_names();

struct ShippedMachine {
    std::string_view name, text;
};
// embed.py makes the definition from machines/*.yaml.
extern const std::vector<ShippedMachine> kShippedMachines;

}  // namespace machine
