#include "framework/collector/trace/segment.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace assay::collector {
namespace {

const char* remedy_for(int error) {
    switch (error) {
        case EFBIG:
            return "; raise the limit of file sizes (ulimit -f)";
        case ENOMEM:
            return "; raise the limit of address space (ulimit -v), of which little is used";
        default:
            return "";
    }
}

[[noreturn]] void fail(const char* what, std::uint64_t bytes) {
    const int error = errno;
    throw Error(fmt::format("cannot {} {} MB of sparse shared memory: {}{}", what,
                            bytes / trace::kMiB, system_reason(error), remedy_for(error)));
}

// If the size exceeds RLIMIT_FSIZE, ftruncate(2) sends SIGXFSZ before it fails. The signal would
// end the process without a message.
int make_file_large(int fd, std::uint64_t bytes) {
    struct sigaction ignore {
    }, before{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignore, &before);
    const int result = ftruncate(fd, static_cast<off_t>(bytes));
    const int reason = errno;
    sigaction(SIGXFSZ, &before, nullptr);
    errno = reason;
    return result;
}

}  // namespace

SharedMemory::SharedMemory(int fd, std::uint64_t offset, std::uint64_t bytes, Access access)
    : bytes_(bytes) {
    const int protection = access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
    void* const memory = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, fd,
                              static_cast<off_t>(offset));
    if (memory == MAP_FAILED) fail("map", bytes);
    base_ = static_cast<std::byte*>(memory);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), bytes_(other.bytes_) {}

SharedMemory::~SharedMemory() {
    if (base_) munmap(base_, bytes_);
}

Segment::MemoryFile::MemoryFile() : fd(memfd_create("assay-trace", MFD_CLOEXEC)) {
    if (fd < 0) fail("create", trace::kSegmentBytes);
    if (make_file_large(fd, trace::kSegmentBytes) == 0) return;
    const int reason = errno;
    close(fd);
    errno = reason;
    fail("create", trace::kSegmentBytes);
}

Segment::MemoryFile::~MemoryFile() {
    close(fd);
}

Segment::Segment(const trace::Command& command)
    : tables_(file_.fd, 0, trace::kThreadsOffset, access_) {
    control().magic = trace::kMagic;
    control().layout_version = trace::kLayoutVersion;
    control().image = 1;
    const std::string event = trace::command_event(command);
    std::memcpy(&tables_.at<std::byte>(trace::kEventLogOffset), event.data(), event.size());
    control().event_log_bytes = event.size();
}

trace::Command Segment::command() const {
    const std::uint64_t bytes = control().event_log_bytes.load(std::memory_order_acquire);
    const auto command =
        trace::command_from({reinterpret_cast<const char*>(event_log()),
                             static_cast<std::size_t>(std::min(bytes, trace::kEventLogBytes))});
    if (!command || control().magic != trace::kMagic ||
        control().layout_version != trace::kLayoutVersion)
        throw Error("the trace segment of the driver has a version that this assay does not know");
    return *command;
}

void Segment::map_slots(std::uint32_t count) {
    for (std::uint32_t index = mapped_slots(); index < count; ++index) {
        const std::uint64_t offset = trace::thread_offset(index);
        slots_.push_back(
            {SharedMemory(fd(), offset, trace::kCountersOffset, access_),
             SharedMemory(fd(), offset + trace::kRingOffset, trace::kRingBytes, access_)});
    }
}

void Segment::add_counters(std::uint32_t index, std::span<std::uint64_t> sums,
                           std::uint64_t most) const {
    std::array<std::uint64_t, 8192> part;
    std::uint64_t offset = trace::thread_offset(index) + trace::kCountersOffset;
    while (!sums.empty()) {
        const std::size_t count = std::min(sums.size(), part.size());
        const std::size_t bytes = count * sizeof part[0];
        read(part.data(), bytes, offset);
        for (std::size_t i = 0; i < count; ++i) sums[i] += part[i] > most ? 0 : part[i];
        sums = sums.subspan(count);
        offset += bytes;
    }
}

std::uint32_t Segment::context_node_count(std::uint32_t index) const {
    trace::ContextNodes nodes;
    read(&nodes, sizeof nodes, trace::contexts_offset(index));
    return nodes.count;
}

// Reads and does not map the nodes, see add_counters().
void Segment::read_context_nodes(std::uint32_t index, std::uint32_t first, std::uint32_t layer,
                                 std::span<std::uint64_t> nodes) const {
    const std::uint32_t words = trace::context_words(control().spec);
    while (!nodes.empty()) {
        const std::size_t in_chunk = trace::kChunkNodes - first % trace::kChunkNodes;
        const std::size_t size = std::min(nodes.size(), in_chunk * trace::kLayerWords);
        read(nodes.data(), size * sizeof(std::uint64_t),
             trace::contexts_offset(index) + trace::node_offset(first, words) +
                 layer * trace::kHugePage);
        nodes = nodes.subspan(size);
        first += static_cast<std::uint32_t>(size / trace::kLayerWords);
    }
}

// A failure changes nothing but the use of memory.
void Segment::release_context_nodes(std::uint32_t index, std::uint32_t end) const {
    const std::uint32_t whole = end - end % trace::kChunkNodes;
    const std::uint64_t from = trace::node_offset(0, 0);
    const std::uint64_t to = trace::node_offset(whole, trace::context_words(control().spec));
    if (to > from)
        fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(trace::contexts_offset(index) + from),
                  static_cast<off_t>(to - from));
}

void Segment::read(void* into, std::size_t bytes, std::uint64_t offset) const {
    if (pread(fd(), into, bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes))
        fail("read", bytes);
}

}  // namespace assay::collector
