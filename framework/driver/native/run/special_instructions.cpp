#include "framework/driver/native/run/special_instructions.h"

#include "assay/client.h"
#include "framework/driver/native/machine/target_memory.h"

#include <Zydis/Zydis.h>
#include <array>
#include <string>

namespace assay::native {

bool identify(Context& context, const Instruction& instruction, const ShownProcessor& processor) {
    std::uint64_t(&gpr)[16] = context.gpr;
    const auto index = static_cast<std::uint32_t>(gpr[RCX]);
    if (instruction.form->mnemonic == ZYDIS_MNEMONIC_CPUID) {
        const auto leaf = static_cast<std::uint32_t>(gpr[RAX]);
        const CpuidAnswer answer = processor.cpuid(leaf, index);
        gpr[RAX] = answer.eax;
        gpr[RBX] = answer.ebx;
        gpr[RCX] = answer.ecx;
        gpr[RDX] = answer.edx;
        return true;
    }
    // XCR0, and with an ecx of 1 those of its components that are in use: it may always say all
    // (SDM volume 1, 13.6).
    if (index > (processor.has_xgetbv_of_used() ? 1U : 0U)) return false;
    gpr[RAX] = processor.xcr0();
    gpr[RDX] = 0;
    return true;
}

namespace {

// What a marker's rax points to.
struct Marker {
    std::uint64_t operation;
    std::array<std::uint64_t, 5> arguments;
};

// The string at that address as far as it can be read, with a zero byte behind it.
std::string read_text(std::uint64_t address) {
    constexpr std::size_t kLongest = 1024;
    std::string text;
    char c = 0;
    while (text.size() < kLongest && address != 0 && read_target(address++, &c, 1) && c != 0)
        text += c;
    return text + '\0';
}

// Notes it, if it is one that only profilers need to know. False if not.
bool note(ThreadTrace& trace, const Marker& marker) {
    const auto& arguments = marker.arguments;
    switch (marker.operation) {
        case ASSAY_BEGIN_PHASE:
        case ASSAY_END_PHASE:
            trace.note(marker.operation, arguments, read_text(arguments[0]));
            return true;
        case ASSAY_REGISTER_REGION:
            trace.note(marker.operation, arguments,
                       read_text(arguments[2]) + read_text(arguments[3]));
            return true;
        case ASSAY_UNREGISTER_REGION:
            trace.note(marker.operation, arguments, "");
            return true;
        default:
            return false;
    }
}

}  // namespace

bool do_marker(Context& context, ThreadTrace& trace, Regions& regions) {
    Marker marker{};
    const bool readable = read_target(context.gpr[RAX], &marker, sizeof marker);
    const bool starts = readable && marker.operation == ASSAY_START_COLLECTING;
    const bool switches = starts || (readable && marker.operation == ASSAY_STOP_COLLECTING);
    const bool known =
        switches || (readable && (marker.operation == ASSAY_IS_PROFILING || note(trace, marker)));
    context.gpr[RDX] = known ? 1 : 0;
    return switches && regions.set_collecting(starts);
}

}  // namespace assay::native
