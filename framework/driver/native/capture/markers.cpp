// What the program says by the markers of assay/client.h.
#include "assay/client.h"
#include "framework/driver/native/memory/target_memory.h"
#include "framework/driver/native/process.h"

#include <algorithm>
#include <array>

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

void note(Thread& thread, const Marker& marker, const std::string& text) {
    const ThreadTrace::Position position = thread.trace.position();
    trace::MarkerEvent event{marker.operation,      {},
                             thread.trace.thread(), thread.slot(),
                             position.buffer,       position.record};
    std::copy(marker.arguments.begin(), marker.arguments.end(), event.arguments);
    thread.process.trace.marker(event, text);
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
            note(thread, marker, read_text(arguments[0]));
            return true;
        case ASSAY_REGISTER_REGION:
            note(thread, marker, read_text(arguments[2]) + read_text(arguments[3]));
            return true;
        case ASSAY_UNREGISTER_REGION:
            note(thread, marker, "");
            return true;
        default:
            return false;
    }
}

}  // namespace

// What the thread did before it is told before.
void note_new_thread(Thread& parent, std::uint32_t number) {
    parent.trace.tell_runs();
    note(parent, {TRACE_MARKER_THREAD, {number}}, "");
}

void note_thread_end(Thread& thread) {
    thread.trace.tell_runs();
    note(thread, {TRACE_MARKER_THREAD_END, {thread.process.trace.next_site()}}, "");
}

void do_marker(Thread& thread) {
    Context& context = *thread.context;
    Marker marker{};
    const bool known =
        read_target(context.gpr[RAX], &marker, sizeof marker) && perform(thread, marker);
    context.gpr[RDX] = known ? 1 : 0;
}

}  // namespace assay::native
