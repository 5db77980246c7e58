// The types and members that a run refers to, for all objects together. Each object and each
// compilation unit describes the structs that it uses, so a struct can occur many times.
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

// The functions and static variables of one object by address, from its debug information.

class DebugEntries {
  public:
    // Sets the scopes of all types in `types`.
    DebugEntries(Dwarf* dwarf, symbols::DataTypes& types);

    struct Variable {
        std::uint64_t address;
        symbols::DataTypeId type;
    };
    // The variable that contains the link-time address.
    std::optional<Variable> variable_at(std::uint64_t address);
    // The DW_TAG_subprogram that contains the address, or null.
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
        bool read;  // `type` and `size` are set
    };
    symbols::DataTypes& types_;
    std::map<std::uint64_t, VariableEntry> variables_;
    std::map<std::uint64_t, Code> code_;  // by start
};

struct TypeNode {
    std::uint32_t parent = 0;  // a member's type, or the member around it; 0 for types
    bool is_member = false;
    std::string name;  // never empty
    // In bytes. The offset of a member counts from the start of the outermost type.
    std::uint64_t offset = 0, size = 0;
    std::uint32_t first_bit = 0, bits = 0;  // of a bit-field
    std::string type;                       // of a member
    std::string kind;  // of a type: "struct", "class", "union", "pointer" or "other"
    std::string file;  // where a struct is declared
    std::uint32_t line = 0;
    std::uint64_t alignment = 1;   // of this kind of data, in bytes
    std::uint32_t bit_fields = 1;  // more than 1 if several share bytes
};

class TypeTree {
  public:
    // Returns the number of the node, from 1. Nodes are numbered by their first use, and parents
    // before children.
    std::uint32_t add(const symbols::DataPlace& place, symbols::DataTypes& types);
    // Adds all members of the outermost type of `place`.
    void add_members(const symbols::DataPlace& place, symbols::DataTypes& types);
    // The first node is unused.
    const std::vector<TypeNode>& nodes() const { return nodes_; }

  private:
    using Key = std::tuple<std::uint32_t, std::string, std::uint64_t, std::uint64_t, std::string,
                           std::uint32_t, std::uint32_t>;
    std::uint32_t add(TypeNode&& node);

    std::vector<TypeNode> nodes_ = {{}};
    std::map<Key, std::uint32_t> numbers_;
};

}  // namespace assay::data_references
