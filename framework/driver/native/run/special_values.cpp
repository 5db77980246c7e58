#include "framework/driver/native/run/special_values.h"

#include "framework/driver/native/machine/saved_state.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/run/special_references.h"
#include "framework/driver/native/translate/values.h"

#include <cstring>

namespace assay::native {
namespace {

std::uint64_t low_bytes(std::uint64_t value, unsigned bytes) {
    return bytes >= 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

std::optional<std::uint64_t> read_memory(std::uint64_t address, unsigned bytes) {
    std::uint64_t value = 0;
    if (!read_target(address, &value, bytes)) return {};
    return value;
}

std::optional<std::uint64_t> read_register(const Context& context, const Value& value) {
    switch (value.place) {
        case Value::kGpr:
            return low_bytes(context.gpr[value.number], value.bytes);
        case Value::kHighByte:
            return context.gpr[value.number] >> 8 & 0xff;
        case Value::kVector: {
            unsigned char bytes[64];
            std::uint64_t low;
            read_vector(context, value.number, bytes);
            std::memcpy(&low, bytes, sizeof low);
            return low;
        }
        case Value::kMask:
            return low_bytes(read_opmask(context, value.number), value.bytes);
        case Value::kMmx:
            return read_mmx(context, value.number);
        case Value::kX87:
            return read_x87(context, value.number);
        default:
            return {};
    }
}

bool is_memory(const Value& value) {
    return value.place == Value::kMemory || value.place == Value::kAddress;
}

}  // namespace

// For what is stored, its address waits.
void SpecialValues::read(const Instruction& instruction) {
    const Form& form = *instruction.form;
    const trace::ValueList* list = tables_.value_list(form);
    context_.values_present = 0;
    if (list == nullptr) return;
    const std::optional<FirstAccess> first = first_access(context_, instruction);
    for (unsigned i = 0; i < list->count; ++i) {
        const Value value = value_of(form, list->values[i]);
        std::optional<std::uint64_t> read;
        if (is_memory(value) && first) {
            const MemoryReference& reference = form.references[value.number];
            read = first->address[value.number];
            const bool now = value.before || reference.kind == TRACE_SITE_READ;
            if (value.place == Value::kMemory && now) read = read_memory(*read, value.bytes);
        } else if (value.before) {
            read = read_register(context_, value);
        }
        if (!read) continue;
        context_.values[i] = *read;
        context_.values_present |= std::uint64_t{1} << i;
    }
}

void SpecialValues::record(const Instruction& instruction, std::uint32_t first_site) {
    const Form& form = *instruction.form;
    const trace::ValueList* list = tables_.value_list(form);
    if (list == nullptr) return;
    trace_record_t records[ThreadTrace::kMostTogether] = {{0, first_site, 0}};
    unsigned count = 1;
    std::uint32_t site = first_site;
    for (unsigned i = 0; i < list->count; ++i) {
        const Value value = value_of(form, list->values[i]);
        if (value.place == Value::kNone) continue;
        ++site;
        std::optional<std::uint64_t> read;
        if (context_.values_present >> i & 1) read = context_.values[i];
        const bool stored = value.place == Value::kMemory && !value.before &&
                            form.references[value.number].kind != TRACE_SITE_READ;
        if (stored && read) read = read_memory(*read, value.bytes);
        if (!is_memory(value) && !value.before) read = read_register(context_, value);
        if (read) records[count++] = {*read, site, 0};
    }
    trace_.append({records, count});
}

void SpecialValues::read_saved(const Instruction& instruction, bool before) {
    const trace::ValueList* list = tables_.value_list(*instruction.form);
    if (list == nullptr) return;
    for (unsigned i = 0; i < list->count; ++i) {
        const Value value = value_of(*instruction.form, list->values[i]);
        if (value.before == before && is_in_saved_state(*instruction.form, value))
            context_.values[i] = *read_register(context_, value);
    }
}

}  // namespace assay::native
