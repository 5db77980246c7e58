// What DWARF says of types of data: where the members of a struct lie, and which of them is at an
// offset. Files may be damaged: whatever they say, all of it ends, and members that come out lie
// within their type.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::symbols {

// The value of an attribute, or of the same attribute of the entry that this one completes.
std::optional<std::uint64_t> number(const Dwarf_Die& of, unsigned name);
// What its DW_AT_type refers to.
std::optional<Dwarf_Die> referred_type(const Dwarf_Die& of);
// Of each dimension of an array; 0 where it is not known.
std::vector<std::uint64_t> element_counts(Dwarf_Die array);

// A type's number in its DataTypes; 0: void, or not known.
using DataTypeId = std::uint32_t;

struct DataMember {
    std::string name;  // a base class has its type's; empty for an unnamed struct or union
    std::uint64_t offset = 0;
    std::uint64_t size = 0;       // 0: not known, or an array without a bound
    std::uint32_t first_bit = 0;  // of a bit-field, from the lowest bit at `offset` on
    std::uint32_t bits = 0;       // 0: no bit-field
    std::uint64_t alignment = 0;  // by alignas; 0: that of its type
    bool base_class = false;
    bool is_empty = false;  // a struct that holds nothing; it can share its byte with a member
    DataTypeId type = 0;
};

// Typedefs, const and the like are looked through.
struct DataType {
    enum class Kind : std::uint8_t {
        kVoid,  // or not known
        kStruct,
        kClass,
        kUnion,
        kPointer,  // or a reference
        kArray,
        kFunction,
        kOther,  // a number, an enumeration, or a struct of which only the name is known
    };
    Kind kind = Kind::kVoid;
    std::string name;                 // its own, or that of a typedef; with namespaces
    std::uint64_t size = 0;           // 0 if not known
    std::uint64_t alignment = 0;      // by alignas; 0: that of what it consists of
    DataTypeId element = 0;           // of an array
    std::vector<DataMember> members;  // by offset; those that are virtual or static left out
    std::string file;                 // where a struct is declared, "" if not known
    std::uint32_t line = 0;

    bool has_members() const {
        return kind == Kind::kStruct || kind == Kind::kClass || kind == Kind::kUnion;
    }
};

// Where a part of an object is: its outermost type, which is no array, and the members that lead to
// it, from the outside. Elements of arrays are not told apart.
struct DataPlace {
    DataTypeId type = 0;
    struct Step {
        DataTypeId in = 0;        // the struct
        std::uint32_t first = 0;  // the member's index in it
        std::uint32_t last = 0;   // another one only where bit-fields share the bytes
    };
    std::vector<Step> members;
    DataTypeId part = 0;  // the type of what was reached, which is no array
};

// The types of one object, as far as they have been asked for.
class DataTypes {
  public:
    DataTypes();

    // Of a DW_TAG_..._type.
    DataTypeId of(const Dwarf_Die& type);
    // Of what has a DW_AT_type, also that of a declaration or of an abstract origin.
    DataTypeId type_of(const Dwarf_Die& typed);
    const DataType& operator[](DataTypeId type) const { return *types_[type]; }
    // What a pointer points to, or a function returns.
    DataTypeId target(DataTypeId type);

    // The namespaces and classes that a type is in, which its entry does not know: with a "::" at
    // the end.
    void set_scope(const Dwarf_Die& type, const std::string& scope);

    // Whether what is at an offset from the beginning of an object of the type is part of the
    // object, as far as it has members; else it can be that of another element of an array.
    bool is_within(DataTypeId type, std::int64_t offset) const;
    // What the pointer there points to; 0 if there is none, or several in a union.
    DataTypeId pointed_to(DataTypeId type, std::int64_t offset);
    // What `size` bytes at an offset from the beginning of an object of the type are, or of one of
    // several objects that follow one another. None if that is not known.
    std::optional<DataPlace> place(DataTypeId type, std::int64_t offset, std::uint64_t size);
    // How far that is from the beginning of the outermost type; none if the way there leads into an
    // array.
    std::optional<std::uint64_t> offset_in(const DataPlace& place, std::int64_t offset) const;
    // What addresses of the type's objects are multiples of: System V ABI for x86-64,
    // section 3.1.2.
    std::uint64_t alignment(DataTypeId type);
    // As its users would write it: "Node *", "long".
    std::string full_name(DataTypeId type);

  private:
    DataTypeId add(Dwarf_Die type, const std::string& alias, int depth);
    DataTypeId of(Dwarf_Die type, int depth);
    void add_targets(DataTypeId type, std::int64_t offset, int depth, std::set<DataTypeId>& to);
    void read_members(Dwarf_Die& type, DataType& into, int depth);
    std::optional<DataMember> read_member(Dwarf_Die die, bool in_union, int depth);

    std::vector<std::unique_ptr<DataType>> types_;
    std::unordered_map<DataTypeId, Dwarf_Die> targets_;
    std::unordered_map<DataTypeId, std::uint64_t> alignments_;
    std::unordered_map<const void*, DataTypeId> known_;
    std::unordered_map<const void*, std::string> scopes_;
};

}  // namespace assay::symbols
