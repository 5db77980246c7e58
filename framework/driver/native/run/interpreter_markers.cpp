#include "framework/driver/native/run/interpreter_markers.h"

#include "assay/client.h"
#include "framework/driver/native/machine/target_memory.h"

#include <algorithm>
#include <array>

namespace assay::native {
namespace {

using Words = std::array<std::uint64_t, 6>;

void register_interpreter(const Words& marker, Process& process) {
    const std::uint64_t start = marker[1], bytes = marker[2];
    process.interpreter.set_function(start, start + bytes, static_cast<std::int64_t>(marker[3]));
    process.code_changed(start, start + bytes);  // positions end blocks now
}

// Returns false if the lines cannot be read.
bool register_lines(const Words& marker, Process& process) {
    std::uint64_t position = marker[1], lines = marker[4];
    const std::uint64_t step = marker[3];
    bool changed = false, readable = true;
    std::array<std::uint64_t, 512> part{};
    for (std::uint64_t left = marker[2]; left != 0 && readable;) {
        const std::uint64_t count = std::min<std::uint64_t>(left, part.size());
        readable = read_target(lines, part.data(), count * sizeof part[0]);
        for (std::uint64_t i = 0; i < count && readable; ++i, position += step)
            changed |= process.interpreter.set_line(position, part[i]);
        left -= count;
        lines += count * sizeof part[0];
    }
    if (changed) process.forget_steps();
    return readable;
}

}  // namespace

bool do_interpreter_marker(Context& context, Process& process) {
    Words marker{};
    if (!read_target(context.gpr[RAX], marker.data(), sizeof marker)) return false;
    // Contexts of recorded calls have no lines. Events with such contexts would belong to a
    // function, and instructions to its lines.
    const bool follows =
        context.call_tree != nullptr && !process.trace.captures(trace::kCaptureCalls);
    switch (marker[0]) {
        case ASSAY_REGISTER_INTERPRETER:
            if (follows) register_interpreter(marker, process);
            context.gpr[RDX] = follows ? 1 : 0;
            return true;
        case ASSAY_REGISTER_LINES:
            context.gpr[RDX] = follows && register_lines(marker, process) ? 1 : 0;
            return true;
        default:
            return false;
    }
}

}  // namespace assay::native
