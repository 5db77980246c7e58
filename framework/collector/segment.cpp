#include "framework/collector/segment.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace assay::collector {
namespace {

[[noreturn]] void fail(const char* what) {
    throw Error(fmt::format("cannot {} {} GB of sparse shared memory: {}", what,
                            trace::kSegmentBytes >> 30, system_reason(errno)));
}

}  // namespace

Segment::Segment(const trace::Command& command) : fd_(memfd_create("assay-trace", MFD_CLOEXEC)) {
    if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(trace::kSegmentBytes)) != 0) fail("create");
    map();
    control().magic = trace::kMagic;
    control().layout_version = trace::kLayoutVersion;
    control().image = 1;
    const std::string event = trace::command_event(command);
    std::memcpy(base_ + trace::kEventLogOffset, event.data(), event.size());
    control().event_log_bytes = event.size();
}

Segment::Segment(int fd) : fd_(fd) {
    map();
}

void Segment::map() {
    void* memory = mmap(nullptr, trace::kSegmentBytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE, fd_, 0);
    if (memory == MAP_FAILED) fail("map");
    base_ = static_cast<std::byte*>(memory);
}

trace::Command Segment::command() const {
    const auto command = trace::command_from(
        {reinterpret_cast<const char*>(event_log()),
         std::min<std::size_t>(control().event_log_bytes.load(std::memory_order_acquire),
                               trace::kEventLogBytes)});
    if (!command || control().magic != trace::kMagic ||
        control().layout_version != trace::kLayoutVersion)
        throw Error("a driver has made an unusable trace segment");
    return *command;
}

Segment::~Segment() {
    munmap(base_, trace::kSegmentBytes);
    close(fd_);
}

}  // namespace assay::collector
