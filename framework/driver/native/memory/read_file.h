// The contents of a small file of /proc.
#pragma once

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <string>

namespace assay::native {

// Empty if it cannot be read.
inline std::string read_file(const char* path) {
    std::string text;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    std::array<char, 4096> part{};
    for (ssize_t got = 0; (got = read(file, part.data(), part.size())) > 0;)
        text.append(part.data(), static_cast<std::size_t>(got));
    if (file >= 0) close(file);
    return text;
}

}  // namespace assay::native
