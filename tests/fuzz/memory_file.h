// A file that has no name but that of its descriptor.
#pragma once

#include <sys/mman.h>
#include <unistd.h>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>

class MemoryFile {
  public:
    explicit MemoryFile(std::string_view content = {}) : descriptor_(memfd_create("fuzz", 0)) {
        if (write(descriptor_, content.data(), content.size()) < 0) std::abort();
    }
    ~MemoryFile() { close(descriptor_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;
    std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
    std::string content() const {
        std::string text(static_cast<std::size_t>(lseek(descriptor_, 0, SEEK_END)), '\0');
        if (pread(descriptor_, text.data(), text.size(), 0) < 0) std::abort();
        return text;
    }

  private:
    int descriptor_;
};
