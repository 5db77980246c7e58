#include "plugins/effective_address/streams.h"

#include <sys/mman.h>
#include <new>

namespace effective_address {
namespace {

constexpr std::size_t kMostOperands = std::size_t{64} << 20;

}  // namespace

Streams::Streams() {
    void* memory = mmap(nullptr, kMostOperands * sizeof(Stream), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    streams_ = static_cast<Stream*>(memory);
}

Streams::~Streams() {
    munmap(streams_, kMostOperands * sizeof(Stream));
}

}  // namespace effective_address
