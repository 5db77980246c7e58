#include "framework/driver/shared/new_image.h"

#include "framework/trace/launch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <utility>

namespace assay::driver {

NewImage::NewImage(const trace::Spec& spec, const trace::ValueLists* values, std::uint32_t number,
                   int parent)
    : segment_(memfd_create("assay-trace", MFD_CLOEXEC)) {
    if (segment_ < 0 || ftruncate(segment_, static_cast<off_t>(trace::kSegmentBytes)) != 0) return;
    trace::Control control{};
    control.magic = trace::kMagic;
    control.layout_version = trace::kLayoutVersion;
    control.pid = getpid();
    control.parent = parent;
    control.spec = spec;
    control.image = number;
    if (values && !write(trace::kValueListsOffset, values, sizeof *values)) return;
    if (!write(trace::kControlOffset, &control, sizeof control) || pipe2(lifeline_, O_CLOEXEC) != 0)
        return;
    lifeline_[1] = trace::move_high(lifeline_[1]);
}

NewImage::~NewImage() {
    for (const int descriptor : {segment_, lifeline_[0], lifeline_[1]})
        if (descriptor >= 0) close(descriptor);
}

bool NewImage::write(std::uint64_t offset, const void* bytes, std::size_t count) const {
    const auto* from = static_cast<const char*>(bytes);
    while (count != 0) {
        const ssize_t written = pwrite(segment_, from, count, static_cast<off_t>(offset));
        if (written <= 0) return false;
        from += written;
        offset += static_cast<std::uint64_t>(written);
        count -= static_cast<std::size_t>(written);
    }
    return true;
}

bool NewImage::write_log(const std::string& events) const {
    const std::uint64_t bytes = events.size();
    return write(trace::kEventLogOffset, events.data(), bytes) &&
           write(trace::kControlOffset + offsetof(trace::Control, event_log_bytes), &bytes,
                 sizeof bytes);
}

bool NewImage::announce(int channel) {
    const bool received = trace::announce(channel, {segment_, lifeline_[0]});
    close(std::exchange(lifeline_[0], -1));
    return received;
}

void NewImage::cancel() const {
    const trace::DriverState state = trace::DriverState::kCancelled;
    write(trace::kControlOffset + offsetof(trace::Control, state), &state, sizeof state);
}

int NewImage::take_segment() {
    return std::exchange(segment_, -1);
}

int NewImage::take_lifeline() {
    return std::exchange(lifeline_[1], -1);
}

}  // namespace assay::driver
