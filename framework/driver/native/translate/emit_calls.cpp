// Instrumentation of calls, returns, and whatever else gives the stack pointer a new value.
//
// The records are made of moves and lea: no flag changes.
#include "framework/driver/native/translate/emitter.h"

namespace assay::native {

// The stack pointer as it is there, before a call or behind another instruction.
void Emitter::emit_stack_pointer(unsigned position, unsigned kind) {
    const GprMask changed = plan_.instructions[position].form->writes;
    const unsigned cursor = scratch_.cursor(changed, position);
    emit_append(hot_, cursor, RSP, new_site(position, 0, kind, 0));
    hot_.lea(cursor, Address{static_cast<std::uint8_t>(cursor), kNoGpr, 1, kRecordBytes});
}

// Within an indirect branch: rax, whose value waits in the context, is free, and no register is
// borrowed.
void Emitter::emit_flow_record(unsigned position, unsigned kind, unsigned value) {
    if (!plan_.collects() || !(spec_.captures & trace::kCaptureCalls)) return;
    emit_record_in_rax(new_site(position, 0, kind, 0), value);
}

void Emitter::emit_record_in_rax(std::uint32_t site, unsigned value, std::uint32_t aux) {
    hot_.load_context(RAX, kCursorOffset);
    emit_append(hot_, RAX, value, site, aux);
    hot_.lea(RAX, Address{RAX, kNoGpr, 1, kRecordBytes});
    hot_.store_context(kCursorOffset, RAX);
}

}  // namespace assay::native
