// The types and members that references of a run go to, of all objects. The same struct is
// described in each object, and each compilation unit, that uses it.
#pragma once

#include "framework/symbols/data_types.h"

#include <elfutils/libdw.h>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace assay::data_references {

// What the debug information of one object has at which address: functions, and variables that stay
// where they are.

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

struct TypeNode {
    std::uint32_t parent = 0;  // a member's type, or the member that it is a part of; else 0
    bool is_member = false;
    std::string name;  // never empty
    std::uint64_t offset = 0,
                  size = 0;  // in bytes; of members, from the start of the type they are in
    std::uint32_t first_bit = 0, bits = 0;  // of a bit-field
    std::string type;                       // of a member
    std::string kind;  // of a type: "struct", "class", "union", "pointer" or "other"
    std::string file;  // where a struct is declared
    std::uint32_t line = 0;
    std::uint64_t alignment = 1;   // of its beginning, that its kind of data has
    std::uint32_t bit_fields = 1;  // more than one: several that share bytes
};

class TypeTree {
  public:
    // Its number, from 1 on. Nodes are numbered in the order of their first use, and after those
    // that they are in.
    std::uint32_t add(const symbols::DataPlace& place, symbols::DataTypes& types);
    // The same for each member of its outermost type.
    void add_members(const symbols::DataPlace& place, symbols::DataTypes& types);
    // The first stands for none.
    const std::vector<TypeNode>& nodes() const { return nodes_; }

  private:
    using Key = std::tuple<std::uint32_t, std::string, std::uint64_t, std::uint64_t, std::string,
                           std::uint32_t, std::uint32_t>;
    std::uint32_t add(TypeNode&& node);

    std::vector<TypeNode> nodes_ = {{}};
    std::map<Key, std::uint32_t> numbers_;
};

}  // namespace assay::data_references
