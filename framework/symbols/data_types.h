// Types of data, as DWARF describes them: the layout of structs, and the member at an offset. Files
// may be damaged. Reading always ends, and all members lie within their type.
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

// The value of an attribute of an entry, or of the entry that it completes.
std::optional<std::uint64_t> number(const Dwarf_Die& of, unsigned name);
// The type that DW_AT_type refers to.
std::optional<Dwarf_Die> referred_type(const Dwarf_Die& of);
// The number of elements in each dimension of an array; 0 if it is not known.
std::vector<std::uint64_t> element_counts(Dwarf_Die array);

// A type's number in its DataTypes; 0: void, or not known.
using DataTypeId = std::uint32_t;

struct DataMember {
    std::string name;  // that of the type for a base class; empty for an unnamed struct or union
    std::uint64_t offset = 0;
    std::uint64_t size = 0;       // 0: not known, or an array without a bound
    std::uint32_t first_bit = 0;  // of a bit-field, from the lowest bit at `offset` on
    std::uint32_t bits = 0;       // 0: not a bit-field
    std::uint64_t alignment = 0;  // by alignas; 0: that of its type
    bool base_class = false;
    bool is_empty = false;  // a struct without members; it can share its byte with another member
    DataTypeId type = 0;
};

// A type without typedefs, const and other qualifiers.
struct DataType {
    enum class Kind : std::uint8_t {
        kVoid,  // or not known
        kStruct,
        kClass,
        kUnion,
        kPointer,  // or a reference
        kArray,
        kFunction,
        kOther,  // a number, an enumeration, or a struct that is only declared
    };
    Kind kind = Kind::kVoid;
    std::string name;                 // its own with namespaces, or that of a typedef
    std::uint64_t size = 0;           // 0 if not known
    std::uint64_t alignment = 0;      // by alignas; 0: that of its parts
    DataTypeId element = 0;           // of an array
    std::vector<DataMember> members;  // by offset; without virtual bases and static members
    std::string file;                 // where a struct is declared, "" if not known
    std::uint32_t line = 0;

    bool has_members() const {
        return kind == Kind::kStruct || kind == Kind::kClass || kind == Kind::kUnion;
    }
};

// The place of a part in an object: the outermost type that is not an array, and the members that
// lead to the part, outermost first. All elements of an array have the same place.
struct DataPlace {
    DataTypeId type = 0;
    struct Step {
        DataTypeId in = 0;        // the struct
        std::uint32_t first = 0;  // the member's index in it
        std::uint32_t last = 0;   // differs from `first` only if bit-fields share the bytes
    };
    std::vector<Step> members;
    DataTypeId part = 0;  // its type, which is never an array
};

// The types of one object, as far as they have been asked for.
class DataTypes {
  public:
    DataTypes();

    // `type` is a DW_TAG_..._type.
    DataTypeId of(const Dwarf_Die& type);
    // `typed` has a DW_AT_type itself, or its declaration or abstract origin has one.
    DataTypeId type_of(const Dwarf_Die& typed);
    const DataType& operator[](DataTypeId type) const { return *types_[type]; }
    // The type that a pointer points to, or that a function returns.
    DataTypeId target(DataTypeId type);

    // Tells the namespaces and classes around a type, because its entry does not know them. `scope`
    // ends with "::".
    void set_scope(const Dwarf_Die& type, const std::string& scope);

    // False if an offset from the start of an object lies outside of the object, for example in
    // another element of an array. Always true for types without members.
    bool is_within(DataTypeId type, std::int64_t offset) const;
    // The target type of the pointer at an offset; 0 if no pointer is there, or a union has
    // several.
    DataTypeId pointed_to(DataTypeId type, std::int64_t offset);
    // The place of `size` bytes at an offset from the start of an object. An offset beyond the
    // object is taken as one in an array of such objects. Empty if the place is not known.
    std::optional<DataPlace> place(DataTypeId type, std::int64_t offset, std::uint64_t size);
    // The offset within the outermost type; empty if the way to the place leads into an array.
    std::optional<std::uint64_t> offset_in(const DataPlace& place, std::int64_t offset) const;
    // In bytes, as in the System V ABI for x86-64, section 3.1.2.
    std::uint64_t alignment(DataTypeId type);
    // The type as in source code, such as "Node *" or "long".
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
