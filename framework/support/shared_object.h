// An object in memory that this process shares with the processes that fork(2) makes of it.
#pragma once

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <cerrno>
#include <memory>
#include <new>

namespace assay {

// Throws Error "no memory for `purpose`". The object is never destroyed, because other processes
// may still use it.
template <typename T>
std::shared_ptr<T> shared_object(const char* purpose) {
    void* const memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        throw Error(fmt::format("no memory for {}: {}", purpose, system_reason(errno)));
    return {new (memory) T(), [](T* object) { munmap(object, sizeof *object); }};
}

}  // namespace assay
