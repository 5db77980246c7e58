#include "framework/collector/segment.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cerrno>

namespace assay::collector {
namespace {

[[noreturn]] void fail(const char* what) {
    throw Error(fmt::format("cannot {} {} GB of sparse shared memory: {}", what,
                            trace::kSegmentBytes >> 30, system_reason(errno)));
}

}  // namespace

Segment::Segment() {
    fd_ = memfd_create("assay-trace", MFD_CLOEXEC);
    if (fd_ < 0) fail("create");
    void* memory = MAP_FAILED;
    if (ftruncate(fd_, static_cast<off_t>(trace::kSegmentBytes)) == 0)
        memory = mmap(nullptr, trace::kSegmentBytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, fd_, 0);
    if (memory == MAP_FAILED) {
        const int reason = errno;
        close(fd_);
        errno = reason;
        fail("map");
    }
    base_ = static_cast<std::byte*>(memory);
    control().magic = trace::kMagic;
    control().layout_version = trace::kLayoutVersion;
}

Segment::~Segment() {
    munmap(base_, trace::kSegmentBytes);
    close(fd_);
}

}  // namespace assay::collector
