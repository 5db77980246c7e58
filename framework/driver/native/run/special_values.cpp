#include "framework/driver/native/run/special_values.h"

#include "framework/driver/native/machine/saved_state.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/run/special_references.h"
#include "framework/driver/native/translate/values.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace assay::native {
namespace {

std::uint64_t low_bytes(std::uint64_t value, unsigned bytes) {
    return bytes >= 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

// Of a value, the lowest first.
using Bytes = std::array<std::uint64_t, trace::kMostValueBytes / sizeof(std::uint64_t)>;

std::optional<Bytes> read_memory(std::uint64_t address, unsigned bytes) {
    Bytes value{};
    if (!read_target(address, value.data(), bytes)) return {};
    return value;
}

std::optional<Bytes> read_register(const Context& context, const Value& value) {
    switch (value.place) {
        case Value::kGpr:
            return Bytes{low_bytes(context.gpr[value.number], value.bytes)};
        case Value::kHighByte:
            return Bytes{context.gpr[value.number] >> 8 & 0xff};
        case Value::kVector: {
            unsigned char bytes[trace::kMostValueBytes];
            Bytes vector;
            read_vector(context, value.number, bytes);
            std::memcpy(vector.data(), bytes, sizeof bytes);
            return vector;
        }
        case Value::kMask:
            return Bytes{low_bytes(read_opmask(context, value.number), value.bytes)};
        case Value::kMmx:
            return Bytes{read_mmx(context, value.number)};
        case Value::kX87:
            return Bytes{read_x87(context, value.number)};
        default:
            return {};
    }
}

// In the context, as translated code has them there.
void keep(Context& context, unsigned index, const Bytes& value) {
    context.values[index] = value[0];
    std::copy(value.begin(), value.end(), context.wide_values[index]);
}
Bytes kept(const Context& context, unsigned index) {
    Bytes value;
    std::copy_n(context.wide_values[index], value.size(), value.begin());
    return value;
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
        const Value value = value_of(form, *list, i);
        std::optional<Bytes> read;
        if (is_memory(value) && first) {
            const MemoryReference& reference = form.references[value.number];
            const std::uint64_t address = first->address[value.number];
            const bool now = value.before || reference.kind == TRACE_SITE_READ;
            read = value.place == Value::kMemory && now ? read_memory(address, value.bytes)
                                                        : Bytes{address};
        } else if (value.before) {
            read = read_register(context_, value);
        }
        if (!read) continue;
        keep(context_, i, *read);
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
        const Value value = value_of(form, *list, i);
        if (value.place == Value::kNone) continue;
        std::optional<Bytes> read;
        if (context_.values_present >> i & 1) read = kept(context_, i);
        const bool stored = value.place == Value::kMemory && !value.before &&
                            form.references[value.number].kind != TRACE_SITE_READ;
        if (stored && read) read = read_memory(read->front(), value.bytes);
        if (!is_memory(value) && !value.before) read = read_register(context_, value);
        for (unsigned part = 0; part < value.parts(); ++part) {
            ++site;
            if (read) records[count++] = {(*read)[part], site, 0};
        }
    }
    trace_.append({records, count});
}

void SpecialValues::read_saved(const Instruction& instruction, bool before) {
    const trace::ValueList* list = tables_.value_list(*instruction.form);
    if (list == nullptr) return;
    for (unsigned i = 0; i < list->count; ++i) {
        const Value value = value_of(*instruction.form, *list, i);
        if (value.before == before && is_in_saved_state(*instruction.form, value))
            context_.values[i] = read_register(context_, value)->front();
    }
}

}  // namespace assay::native
