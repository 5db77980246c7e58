#include "framework/driver/native/new_image.h"

#include "framework/trace/high_descriptor.h"
#include "framework/trace/process_channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <utility>

namespace assay::native {

NewImage::NewImage(const trace::Spec& spec, std::uint32_t number)
    : segment_(memfd_create("assay-trace", MFD_CLOEXEC)) {
    if (segment_ < 0 || ftruncate(segment_, static_cast<off_t>(trace::kSegmentBytes)) != 0) return;
    trace::Control control{};
    control.magic = trace::kMagic;
    control.layout_version = trace::kLayoutVersion;
    control.pid = getpid();
    control.spec = spec;
    control.image = number;
    if (pwrite(segment_, &control, sizeof control, trace::kControlOffset) !=
            static_cast<ssize_t>(sizeof control) ||
        pipe2(lifeline_, O_CLOEXEC) != 0)
        return;
    lifeline_[1] = trace::move_high(lifeline_[1]);
}

NewImage::~NewImage() {
    for (const int descriptor : {segment_, lifeline_[0], lifeline_[1]})
        if (descriptor >= 0) close(descriptor);
}

void NewImage::write_command(const trace::Command& command) const {
    const std::string event = trace::command_event(command);
    const std::uint64_t bytes = event.size();
    // Memory files take all or nothing, and what is missing here is missed in the events file only.
    if (pwrite(segment_, event.data(), event.size(), static_cast<off_t>(trace::kEventLogOffset)) !=
        static_cast<ssize_t>(bytes))
        return;
    [[maybe_unused]] const ssize_t written = pwrite(
        segment_, &bytes, sizeof bytes,
        static_cast<off_t>(trace::kControlOffset + offsetof(trace::Control, event_log_bytes)));
}

bool NewImage::announce(int channel) {
    const bool received = trace::announce(channel, {segment_, lifeline_[0]});
    close(std::exchange(lifeline_[0], -1));
    return received;
}

void NewImage::cancel() const {
    const trace::DriverState state = trace::DriverState::kCancelled;
    [[maybe_unused]] const ssize_t written =
        pwrite(segment_, &state, sizeof state,
               static_cast<off_t>(trace::kControlOffset + offsetof(trace::Control, state)));
}

int NewImage::take_segment() {
    return std::exchange(segment_, -1);
}

int NewImage::take_lifeline() {
    return std::exchange(lifeline_[1], -1);
}

}  // namespace assay::native
