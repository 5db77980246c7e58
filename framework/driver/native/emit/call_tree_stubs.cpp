#include "framework/driver/native/emit/call_tree_stubs.h"

#include "framework/driver/native/machine/context.h"

namespace assay::native {
namespace {

std::uint64_t function_of(CallTreeStub stub) {
    switch (stub) {
        case kCallStub:
            return reinterpret_cast<std::uint64_t>(assay_tree_call);
        case kJumpStub:
            return reinterpret_cast<std::uint64_t>(assay_tree_jump);
        default:
            return reinterpret_cast<std::uint64_t>(assay_tree_arrive);
    }
}

}  // namespace

void emit_call_tree_stub(Assembler& code, CallTreeStub stub) {
    // Above what is saved and the return address.
    constexpr auto kArguments = static_cast<std::int32_t>((kChangedByCalls.size() + 1) * 8);
    for (const unsigned reg : kChangedByCalls) code.push(reg);
    code.with_memory(kLoad, RDX, Address{RSP, kNoGpr, 1, kArguments});
    code.with_memory(kLoad, RSI, Address{RSP, kNoGpr, 1, kArguments + 8});
    code.load_context(RDI, offsetof(Context, call_tree));
    code.load_context(RCX, offsetof(Context, target_sp));
    code.move_imm64(RAX, function_of(stub));
    code.registers(0xff, RAX, 2, false);  // call
    for (auto reg = kChangedByCalls.rbegin(); reg != kChangedByCalls.rend(); ++reg) code.pop(*reg);
    code.u8(0xc3);  // ret
}

}  // namespace assay::native
