#include "framework/driver/native/run/markers.h"

#include "assay/client.h"
#include "framework/driver/native/machine/target_memory.h"
#include "framework/driver/native/process/process.h"

#include <array>
#include <string>

namespace assay::native {
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

// False if there is no such operation.
bool perform(Thread& thread, const Marker& marker) {
    Process& process = thread.process;
    const auto& arguments = marker.arguments;
    switch (marker.operation) {
        case ASSAY_IS_PROFILING:
            return true;
        case ASSAY_START_COLLECTING:
        case ASSAY_STOP_COLLECTING:
            if (process.regions.set_collecting(marker.operation == ASSAY_START_COLLECTING))
                process.switch_others(thread);
            return true;
        case ASSAY_BEGIN_PHASE:
        case ASSAY_END_PHASE:
            thread.trace.note(marker.operation, arguments, read_text(arguments[0]));
            return true;
        case ASSAY_REGISTER_REGION:
            thread.trace.note(marker.operation, arguments,
                              read_text(arguments[2]) + read_text(arguments[3]));
            return true;
        case ASSAY_UNREGISTER_REGION:
            thread.trace.note(marker.operation, arguments, "");
            return true;
        default:
            return false;
    }
}

}  // namespace

void do_marker(Thread& thread) {
    Context& context = *thread.context;
    Marker marker{};
    const bool known =
        read_target(context.gpr[RAX], &marker, sizeof marker) && perform(thread, marker);
    context.gpr[RDX] = known ? 1 : 0;
}

}  // namespace assay::native
