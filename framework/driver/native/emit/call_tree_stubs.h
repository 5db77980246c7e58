// The subroutines that translated code calls for what it does not find in the words of a node
// (CallTree). On Context::stub_stack are, first pushed first: the function's second argument, and
// its third. They change no register but the flags.
#pragma once

#include "framework/driver/native/emit/assembler.h"
#include "framework/driver/native/machine/call_tree.h"

namespace assay::native {

enum CallTreeStub : unsigned { kCallStub, kJumpStub, kArriveStub };
inline constexpr unsigned kCallTreeStubs = 3;

void emit_call_tree_stub(Assembler& code, CallTreeStub stub);

}  // namespace assay::native
