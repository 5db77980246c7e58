#include "framework/data_references/register_types.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace assay::data_references {
namespace {

using namespace native;
using symbols::DataType;
using symbols::DataTypeId;

constexpr std::size_t kMostSlots = 512;
constexpr int kDeepestArray = 64;  // arrays of arrays
constexpr int kMostVisits = 64;    // of one block, because values can change many times
}  // namespace

void RegisterTypes::find(const Take& take) {
    if (code_.blocks.empty()) return;
    solve();
    for (std::size_t i = 0; i < code_.blocks.size(); ++i) {
        State state = entry_[i];
        run(code_.blocks[i], state, &take);
    }
}

// Blocks without a predecessor are reached through jump tables or by exceptions. For these, little
// more than the depth of the stack is known.
void RegisterTypes::solve() {
    entry_.assign(code_.blocks.size(), {});
    entry_[code_.entry].registers[RSP] = {Value::Kind::kFrame, 0, -std::int64_t{kPointerBytes}};
    entry_[code_.entry].reached = true;
    std::set<std::uint32_t> waiting = {code_.entry};
    spread(waiting);
    State elsewhere = before_table_jumps();
    if (!elsewhere.reached) {
        elsewhere.reached = true;
        elsewhere.registers[RSP] = usual(RSP);
        elsewhere.registers[RBP] = usual(RBP);
    }
    for (std::uint32_t i = 0; i < code_.blocks.size(); ++i) {
        const FunctionCode::Block& block = code_.blocks[i];
        if (entry_[i].reached || block.has_predecessor || is_padding(block)) continue;
        entry_[i] = elsewhere;
        waiting.insert(i);
    }
    spread(waiting);
}

void RegisterTypes::spread(std::set<std::uint32_t>& waiting) {
    std::vector<int> visits(code_.blocks.size());
    while (!waiting.empty()) {
        const std::uint32_t block = waiting.extract(waiting.begin()).value();
        if (++visits[block] > kMostVisits) continue;
        State state = entry_[block];
        run(code_.blocks[block], state, nullptr);
        for (const std::uint32_t next : code_.blocks[block].successors)
            if (merge(entry_[next], state)) waiting.insert(next);
    }
}

// True if the block only aligns the following code.
bool RegisterTypes::is_padding(const FunctionCode::Block& block) const {
    return std::all_of(code_.instructions.begin() + block.first,
                       code_.instructions.begin() + block.end, [](const Instruction& instruction) {
                           return instruction.form->mnemonic == ZYDIS_MNEMONIC_NOP;
                       });
}

// The merged state at all indirect jumps.
RegisterTypes::State RegisterTypes::before_table_jumps() {
    State all;
    for (std::size_t i = 0; i < code_.blocks.size(); ++i) {
        const Instruction& last = code_.instructions[code_.blocks[i].end - 1];
        if (!entry_[i].reached || last.form->flow != Flow::kJumpIndirect) continue;
        State state = entry_[i];
        run(code_.blocks[i], state, nullptr);
        merge(all, state);
    }
    return all;
}

// The most frequent frame address in the register at the starts of reached blocks.
Value RegisterTypes::usual(unsigned reg) const {
    std::map<std::int64_t, std::size_t> counts;
    for (const State& state : entry_)
        if (state.reached && state.registers[reg].kind == Value::Kind::kFrame)
            ++counts[state.registers[reg].offset];
    const auto most =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return most == counts.end() ? Value{} : Value{Value::Kind::kFrame, 0, most->first};
}

bool RegisterTypes::merge(State& into, const State& from) {
    if (!into.reached) {
        into = from;
        return true;
    }
    bool changed = false;
    for (std::size_t i = 0; i < into.registers.size(); ++i) {
        const Value both = merged(into.registers[i], from.registers[i]);
        changed |= both != into.registers[i];
        into.registers[i] = both;
    }
    for (auto slot = into.slots.begin(); slot != into.slots.end();) {
        const auto other = from.slots.find(slot->first);
        const Value both =
            other != from.slots.end() ? merged(slot->second, other->second) : Value{};
        changed |= both != slot->second;
        slot->second = both;
        slot = both.kind == Value::Kind::kUnknown ? into.slots.erase(slot) : std::next(slot);
    }
    return changed;
}

// A value that describes both.
Value RegisterTypes::merged(const Value& a, const Value& b) {
    if (a == b) return a;
    if (a.kind == Value::Kind::kZero) return b;
    if (b.kind == Value::Kind::kZero) return a;
    const Value first = as_pointer(a), second = as_pointer(b);
    if (first.kind != Value::Kind::kPointer || second.kind != Value::Kind::kPointer ||
        first.type != second.type)
        return {};
    const bool in_array = first.in_array || second.in_array || first.offset != second.offset;
    const auto size = static_cast<std::int64_t>(types_[first.type].size);
    if (size <= 0) return first.offset == second.offset ? first : Value{};
    if (first.offset == second.offset)
        return {Value::Kind::kPointer, first.type, first.offset, in_array};
    const auto wrapped = [size](std::int64_t offset) { return (offset % size + size) % size; };
    if (wrapped(first.offset) != wrapped(second.offset)) return {};
    return {Value::Kind::kPointer, first.type, wrapped(first.offset), in_array};
}

Value RegisterTypes::pointer_to(DataTypeId type, std::int64_t offset) const {
    const bool in_array = types_[type].kind == DataType::Kind::kArray;
    for (int depth = 0; types_[type].kind == DataType::Kind::kArray && depth < kDeepestArray;
         ++depth)
        type = types_[type].element;
    return type != 0 ? Value{Value::Kind::kPointer, type, offset, in_array} : Value{};
}

// Turns the address of a static variable into a pointer to its type.
Value RegisterTypes::as_pointer(const Value& value) {
    if (value.kind == Value::Kind::kNumber) return {};
    if (value.kind != Value::Kind::kConstant) return value;
    const auto address = static_cast<std::uint64_t>(value.offset);
    const auto variable = entries_.variable_at(address);
    return variable ? pointer_to(variable->type,
                                 value.offset - static_cast<std::int64_t>(variable->address))
                    : Value{};
}

void RegisterTypes::run(const FunctionCode::Block& block, State& state, const Take* take) {
    for (std::uint32_t i = block.first; i < block.end; ++i) {
        const Instruction& instruction = code_.instructions[i];
        const Form& form = *instruction.form;
        learn_variables(state, instruction.pc);
        if (take != nullptr && form.reference_count != 0) {
            std::array<DataTarget, 2> targets;
            for (unsigned n = 0; n < form.reference_count; ++n) {
                const MemoryReference& reference = form.references[n];
                targets[n] = target_of(state, instruction.pc,
                                       address_of(state, instruction, reference), reference.bytes);
                if (targets[n].kind == DataTarget::Kind::kUnknown && reference.base == RSP)
                    targets[n].kind = DataTarget::Kind::kStack;
            }
            (*take)(instruction, targets);
        }
        execute(state, instruction);
    }
}

// A register keeps this value after the range of the variable in debug information ends.
void RegisterTypes::learn_variables(State& state, std::uint64_t pc) const {
    for (unsigned reg = 0; reg < state.registers.size(); ++reg) {
        const Value before = state.registers[reg];
        if (before.kind != Value::Kind::kUnknown) continue;
        const auto variable = variables_.in_register(reg, pc);
        if (!variable) continue;
        state.registers[reg] = pointer_to(variable->type, variable->offset);
        if (before.offset == 0) continue;
        for (Value& value : state.registers)
            if (value == before) value = state.registers[reg];
    }
}

// Chooses between debug information and the state: the larger object wins.
Value RegisterTypes::in_register(const State& state, unsigned reg, std::uint64_t pc) {
    if (reg >= state.registers.size()) return {};
    const Value& value = state.registers[reg];
    std::optional<Pointee> variable = variables_.in_register(reg, pc);
    if (!variable && value.kind == Value::Kind::kUnknown) variable = variable_of(state, value, pc);
    if (!variable || value.kind == Value::Kind::kFrame) return value;
    const Value pointer = as_pointer(value);
    const DataType& type = types_[pointer.type];
    const bool inside = pointer.kind == Value::Kind::kPointer && pointer.offset >= 0 &&
                        static_cast<std::uint64_t>(pointer.offset) < type.size;
    if (inside && type.has_members() && type.size > types_[variable->type].size) return value;
    Value result = pointer_to(variable->type, variable->offset);
    result.in_array |= pointer.type == result.type && pointer.in_array;
    return result;
}

// The variable of another register with the same value.
std::optional<Pointee> RegisterTypes::variable_of(const State& state, const Value& value,
                                                  std::uint64_t pc) const {
    if (value.offset == 0) return std::nullopt;
    for (unsigned reg = 0; reg < state.registers.size(); ++reg) {
        if (state.registers[reg] != value) continue;
        if (const auto variable = variables_.in_register(reg, pc)) return variable;
    }
    return std::nullopt;
}

Value RegisterTypes::sum(const Value& value, std::int64_t addend) {
    Value result = value;
    if (addend == 0) return value;
    if (value.kind == Value::Kind::kUnknown) return {Value::Kind::kNumber, 0, addend};
    if (value.kind == Value::Kind::kZero) result.kind = Value::Kind::kConstant;
    return __builtin_add_overflow(value.offset, addend, &result.offset) ? Value{} : result;
}

// The value after an unknown number was added: a pointer into the array at this place.
Value RegisterTypes::indexed(const State& state, std::uint64_t pc, const Value& value) {
    Value result = as_pointer(value);
    if (value.kind == Value::Kind::kFrame) {
        const auto variable = frame_variable(state, pc, value.offset);
        result = variable && !variable->indirect ? pointer_to(variable->type, variable->offset)
                                                 : Value{};
    }
    result.in_array = result.kind == Value::Kind::kPointer;
    return result;
}

Value RegisterTypes::address_of(const State& state, const Instruction& instruction,
                                const MemoryReference& reference) {
    if (reference.segment != Segment::kFlat || reference.address32) return {};
    const std::int64_t displacement =
        (reference.encoded ? instruction.displacement() : 0) + reference.bias;
    const Value constant{Value::Kind::kConstant, 0, displacement};
    if (reference.base == kRip)
        return sum(constant, static_cast<std::int64_t>(instruction.next_pc()));
    Value base = in_register(state, reference.base, instruction.pc);
    const Value index = in_register(state, reference.index, instruction.pc);
    const bool has_index = reference.index != kNoGpr;
    if (reference.base == kNoGpr && !has_index) return constant;
    // The encoding does not tell which of the two registers holds the address.
    Value number = index;
    if (as_pointer(base).kind == Value::Kind::kUnknown && has_index && reference.scale == 1 &&
        as_pointer(index).kind != Value::Kind::kUnknown)
        std::swap(base, number);
    const std::int64_t addend = displacement + constant_part(number) * reference.scale;
    if (as_pointer(base).kind == Value::Kind::kUnknown) {
        const Value array = indexed(state, instruction.pc, constant);
        if (displacement > 0 && array.kind != Value::Kind::kUnknown)
            return indexed(state, instruction.pc, sum(constant, addend - displacement));
        return sum({Value::Kind::kNumber, 0, constant_part(base)}, addend);
    }
    base = sum(base, addend);
    return has_index ? indexed(state, instruction.pc, base) : base;
}

std::optional<RegisterTypes::FrameVariable> RegisterTypes::frame_variable(const State& state,
                                                                          std::uint64_t pc,
                                                                          std::int64_t offset) {
    std::optional<FrameVariable> found;
    for (const VariableLocations::InMemory& variable : variables_.in_memory()) {
        if (pc < variable.start || pc >= variable.end) continue;
        std::int64_t begin = variable.offset;
        if (variable.base != kFrameAddress) {
            if (variable.base >= state.registers.size()) continue;
            const Value& base = state.registers[variable.base];
            if (base.kind != Value::Kind::kFrame) continue;
            begin += base.offset;
        }
        const std::uint64_t size = variable.indirect ? kPointerBytes : types_[variable.type].size;
        if (offset < begin || static_cast<std::uint64_t>(offset - begin) >= size) continue;
        if (found && types_[found->type].size >= types_[variable.type].size) continue;
        found = FrameVariable{variable.type, offset - begin, variable.indirect};
    }
    return found;
}

DataTarget RegisterTypes::target_of(const State& state, std::uint64_t pc, const Value& address,
                                    std::uint16_t bytes) {
    if (address.kind == Value::Kind::kFrame) {
        const auto variable = frame_variable(state, pc, address.offset);
        if (variable && !variable->indirect &&
            (types_[variable->type].has_members() ||
             types_[variable->type].kind == DataType::Kind::kArray))
            return {DataTarget::Kind::kObject, variable->type, variable->offset, bytes};
        return {DataTarget::Kind::kStack, 0, 0, bytes};
    }
    const Value pointer = as_pointer(address);
    if (!leads_to_object(pointer)) return {};
    return {DataTarget::Kind::kObject, pointer.type, pointer.offset, bytes};
}

// The value of a load: the target of a pointer member, or for other places in the frame, the value
// that was stored there.
Value RegisterTypes::loaded(const State& state, std::uint64_t pc, const Value& address,
                            std::uint16_t bytes) {
    if (bytes != kPointerBytes) return {};
    if (address.kind != Value::Kind::kFrame) {
        return member(as_pointer(address));
    }
    if (const auto variable = frame_variable(state, pc, address.offset)) {
        const Value found = variable->indirect ? pointer_to(variable->type, 0)
                                               : member(variable->type, variable->offset);
        if (found.kind == Value::Kind::kPointer) return found;
    }
    const auto slot = state.slots.find(address.offset);
    return slot != state.slots.end() ? slot->second : Value{};
}

Value RegisterTypes::member(DataTypeId type, std::int64_t offset) {
    return pointer_to(types_.pointed_to(type, offset), 0);
}

Value RegisterTypes::member(const Value& pointer) {
    return leads_to_object(pointer) ? member(pointer.type, pointer.offset) : Value{};
}

// False if the pointer leads beyond the object, for example to the value in a node when only its
// base class is known.
bool RegisterTypes::leads_to_object(const Value& pointer) const {
    return pointer.kind == Value::Kind::kPointer && types_[pointer.type].size != 0 &&
           (pointer.in_array || types_.is_within(pointer.type, pointer.offset));
}

// Writes through pointers to variables in the frame are ignored: they do not change the types.
void RegisterTypes::store(State& state, const Value& address, std::uint16_t bytes,
                          const Value& value) {
    if (address.kind != Value::Kind::kFrame) return;
    auto slot = state.slots.upper_bound(address.offset - kPointerBytes);
    while (slot != state.slots.end() && slot->first < address.offset + bytes)
        slot = state.slots.erase(slot);
    if (bytes == kPointerBytes && value.kind != Value::Kind::kUnknown &&
        state.slots.size() < kMostSlots)
        state.slots[address.offset] = value;
}

}  // namespace assay::data_references
