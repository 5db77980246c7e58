// What the debug information of one object has at which address: functions, and variables that stay
// where they are.
#pragma once

#include "framework/symbols/data_types.h"

#include <elfutils/libdw.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace assay::data_references {

class DebugEntries {
  public:
    // Tells `types` the scopes of all types.
    DebugEntries(Dwarf* dwarf, symbols::DataTypes& types);

    struct Variable {
        std::uint64_t address;
        symbols::DataTypeId type;
    };
    // That contains the address, which is the object's own.
    std::optional<Variable> variable_at(std::uint64_t address);
    // A DW_TAG_subprogram that has code, or null.
    const Dwarf_Die* function_at(std::uint64_t address) const;

  private:
    void add_children(Dwarf_Die& parent, const std::string& scope, int depth);
    void add_variable(Dwarf_Die& variable);
    void add_function(Dwarf_Die& function);

    struct Code {
        std::uint64_t end;
        Dwarf_Die function;
    };
    struct VariableEntry {
        Dwarf_Die die;
        symbols::DataTypeId type;
        std::uint64_t size;
        bool read;  // type and size
    };
    symbols::DataTypes& types_;
    std::map<std::uint64_t, VariableEntry> variables_;
    std::map<std::uint64_t, Code> code_;  // by its first address
};

}  // namespace assay::data_references
