// Where the values of an instruction (trace_vlist.h) are to be found.
#pragma once

#include "framework/trace/value_lists.h"
#include "framework/x86/instruction.h"

#include <algorithm>

namespace assay::native {

struct Value {
    enum Place : std::uint8_t {
        kNone,      // the instruction does not have it
        kAddress,   // of reference `number`
        kMemory,    // what is at the address of reference `number`
        kGpr,       // the low `bytes` of it
        kHighByte,  // bits 8 to 15 of a general-purpose register
        kVector,    // the low bytes of it
        kMask,      // of AVX-512: the low `bytes` of it
        kMmx,
        kX87,    // st(number) where it is read
        kTaken,  // of a branch
        kTarget,
        kReturn,  // the address that a call pushes
        kTime,    // how long the instruction took
    };
    Place place = kNone;
    std::uint8_t number = 0;
    std::uint8_t bytes = 8;  // 1 to 8, or up to 64 of a wide one
    bool before = false;     // it has to be read before the instruction

    bool is_wide() const { return bytes > trace::kValueRecordBytes; }
    // How many records it takes, and how many of its bytes one of them has.
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

// True if the instruction uses MMX registers, which then stand where the x87 stack does.
bool uses_mmx(const Form& form);

// True if the driver has to read it from the saved state: x87 registers, and MMX registers but
// behind an instruction that uses them. Any instruction with one empties no register and gives the
// x87 stack its initial top (SDM volume 1, 9.5.1), so that a MOVQ changes nothing there.
inline bool is_in_saved_state(const Form& form, const Value& value) {
    return value.place == Value::kX87 ||
           (value.place == Value::kMmx && (value.before || !uses_mmx(form)));
}

// True if the driver itself has to read the values: the instruction makes references that only its
// execution tells.
inline bool has_values_by_driver(const Form& form) {
    return form.special != Special::kNone;
}

// General-purpose registers that are read for a list before the instruction, and behind it.
struct ValueRegisters {
    GprMask before = 0, behind = 0;
};
ValueRegisters value_registers(const Form& form, const trace::ValueList& list);

}  // namespace assay::native
