// Says where an instruction's values (trace_vlist.h) are.
#pragma once

#include "framework/trace/value_lists.h"
#include "framework/x86/instruction.h"

#include <algorithm>

namespace assay::native {

struct Value {
    enum Place : std::uint8_t {
        kNone,      // the instruction does not have the value
        kAddress,   // of reference `number`
        kMemory,    // the memory at the address of reference `number`
        kGpr,       // the low `bytes` of a general-purpose register
        kHighByte,  // bits 8 to 15 of a general-purpose register
        kVector,    // the low bytes of a vector register
        kMask,      // the low `bytes` of an AVX-512 mask register
        kMmx,
        kX87,    // st(number) at the time of reading
        kTaken,  // of a branch
        kTarget,
        kReturn,  // the address that a call pushes
        kTime,    // the time that the instruction took
    };
    Place place = kNone;
    std::uint8_t number = 0;
    std::uint8_t bytes = 8;  // 1 to 8; up to 64 for a wide value
    bool before = false;     // must be read before the instruction

    bool is_wide() const { return bytes > trace::kValueRecordBytes; }
    // The number of records of the value, and how many of its bytes each one has.
    unsigned parts() const {
        return (bytes + trace::kValueRecordBytes - 1) / trace::kValueRecordBytes;
    }
    unsigned part_bytes(unsigned part) const {
        return std::min(bytes - part * trace::kValueRecordBytes, trace::kValueRecordBytes);
    }
};

// `value`: a byte of trace::ValueList; `wide`: with TRACE_WIDE.
Value value_of(const Form& form, std::uint8_t value, bool wide = false);
inline Value value_of(const Form& form, const trace::ValueList& list, unsigned index) {
    return value_of(form, list.values[index], list.is_wide(index));
}

// True if the instruction uses MMX registers, which are part of the x87 registers.
bool uses_mmx(const Form& form);

// True if the driver must read the value from the saved state. This holds for x87 registers, and
// for MMX registers except after an instruction that uses them. Each MMX instruction marks all
// registers as used and sets the x87 stack to its initial top (SDM volume 1, 9.5.1). A MOVQ then
// changes nothing there.
inline bool is_in_saved_state(const Form& form, const Value& value) {
    return value.place == Value::kX87 ||
           (value.place == Value::kMmx && (value.before || !uses_mmx(form)));
}

// True if the driver must read the values, because only the execution shows the instruction's
// references.
inline bool has_values_by_driver(const Form& form) {
    return form.special != Special::kNone;
}

// The general-purpose registers that are read for a list before and after the instruction.
struct ValueRegisters {
    GprMask before = 0, behind = 0;
};
ValueRegisters value_registers(const Form& form, const trace::ValueList& list);

}  // namespace assay::native
