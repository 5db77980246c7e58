// Finds the types of the objects that registers and the stack frame point to, for each instruction
// of a function. Starts from variables that debug information places in registers, and follows the
// code: moves, sums, loads of pointers from members, and calls that return pointers.
#pragma once

#include "framework/data_references/function_code.h"
#include "framework/data_references/type_tree.h"
#include "framework/data_references/variable_locations.h"
#include "framework/symbols/data_types.h"
#include "framework/x86/instruction.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace assay::data_references {

inline constexpr std::uint16_t kPointerBytes = 8;

// The value of a register or of a slot in the frame.
struct Value {
    enum class Kind : std::uint8_t {
        kUnknown,   // `offset` is the pc of the instruction that made it, or 0
        kNumber,    // an unknown number plus offset, such as an index
        kZero,      // also null pointers
        kPointer,   // address of an object of a type, plus offset
        kConstant,  // a known number, possibly an address in the program
        kFrame,     // rsp before the call of the function (kFrameAddress), plus offset
    };
    Kind kind = Kind::kUnknown;
    symbols::DataTypeId type = 0;
    std::int64_t offset = 0;
    // For a pointer: the code steps from object to object, so there is an array of them.
    bool in_array = false;

    bool operator==(const Value&) const = default;
};

// The known part of an index, limited so that sums do not overflow.
inline std::int64_t constant_part(const Value& value) {
    constexpr std::int64_t kMost = std::int64_t{1} << 40;
    const bool is_number =
        value.kind == Value::Kind::kNumber || value.kind == Value::Kind::kConstant;
    const bool usable = is_number && value.offset < kMost && value.offset > -kMost;
    return usable ? value.offset : 0;
}

// The target of a reference to memory.
struct DataTarget {
    enum class Kind : std::uint8_t {
        kUnknown,
        kStack,  // the frame, except structs and arrays in it
        kObject,
    };
    Kind kind = Kind::kUnknown;
    symbols::DataTypeId type = 0;
    // From the start of the object. Can be outside of it, in a neighbour of the same type.
    std::int64_t offset = 0;
    std::uint16_t bytes = 0;
};

class RegisterTypes {
  public:
    RegisterTypes(const FunctionCode& code, const VariableLocations& variables,
                  DebugEntries& entries, symbols::DataTypes& types)
        : code_(code), variables_(variables), entries_(entries), types_(types) {}

    // Calls `take` for each instruction that refers to memory. `targets` are in the order of the
    // references of its form.
    using Take =
        std::function<void(const native::Instruction&, const std::array<DataTarget, 2>& targets)>;
    void find(const Take& take);

  private:
    struct State {
        std::array<Value, 16> registers;
        std::map<std::int64_t, Value> slots;  // of 8 bytes each, by offset from kFrameAddress
        bool reached = false;
    };

    void solve();
    void spread(std::set<std::uint32_t>& waiting);
    bool is_padding(const FunctionCode::Block& block) const;
    State before_table_jumps();
    Value usual(unsigned reg) const;
    bool merge(State& into, const State& from);
    Value merged(const Value& a, const Value& b);
    void run(const FunctionCode::Block& block, State& state, const Take* take);

    Value pointer_to(symbols::DataTypeId type, std::int64_t offset) const;
    void learn_variables(State& state, std::uint64_t pc) const;
    bool leads_to_object(const Value& pointer) const;
    Value as_pointer(const Value& value);
    Value in_register(const State& state, unsigned reg, std::uint64_t pc);
    std::optional<Pointee> variable_of(const State& state, const Value& value,
                                       std::uint64_t pc) const;
    static Value sum(const Value& value, std::int64_t addend);
    Value indexed(const State& state, std::uint64_t pc, const Value& value);
    Value address_of(const State& state, const native::Instruction& instruction,
                     const native::MemoryReference& reference);
    DataTarget target_of(const State& state, std::uint64_t pc, const Value& address,
                         std::uint16_t bytes);
    struct FrameVariable {
        symbols::DataTypeId type;
        std::int64_t offset;  // in the variable
        bool indirect;        // see VariableLocations::InMemory
    };
    std::optional<FrameVariable> frame_variable(const State& state, std::uint64_t pc,
                                                std::int64_t offset);
    Value loaded(const State& state, std::uint64_t pc, const Value& address, std::uint16_t bytes);
    Value member(symbols::DataTypeId type, std::int64_t offset);
    Value member(const Value& pointer);
    static void store(State& state, const Value& address, std::uint16_t bytes, const Value& value);

    void execute(State& state, const native::Instruction& instruction);
    void execute_call(State& state, const native::Instruction& instruction);
    symbols::DataTypeId returned_by(const State& state, const native::Instruction& instruction);
    void learn(State& state, const native::Instruction& instruction, const Value& stored);
    Value operand(const State& state, const native::Instruction& instruction,
                  const native::RegisterOperand& reg);
    Value source_of(const State& state, const native::Instruction& instruction);
    Value stored_by(const State& state, const native::Instruction& instruction);
    Value added(const State& state, std::uint64_t pc, Value a, Value b);
    static Value moved_number(const State& state, const native::RegisterOperand& from);
    Value result_of(const State& state, const native::Instruction& instruction);

    const FunctionCode& code_;
    const VariableLocations& variables_;
    DebugEntries& entries_;
    symbols::DataTypes& types_;
    std::vector<State> entry_;  // by block
};

}  // namespace assay::data_references
