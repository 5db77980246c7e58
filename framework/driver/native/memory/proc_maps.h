// Reads files of /proc, and finds the program's parts in the text of /proc/PID/maps and smaps.
#pragma once

#include "framework/driver/native/memory/memory_map.h"

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::native {

// The contents of a small file of /proc. Empty if it cannot be read.
inline std::string read_file(const char* path) {
    std::string text;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    std::array<char, 4096> part{};
    for (ssize_t got = 0; (got = read(file, part.data(), part.size())) > 0;)
        text.append(part.data(), static_cast<std::size_t>(got));
    if (file >= 0) close(file);
    return text;
}

// A line of maps, or the first line of each mapping in smaps: proc_pid_maps(5).
struct Mapping {
    std::uint64_t start = 0, end = 0;
    std::string permissions;  // "rwxp"
    std::uint64_t offset = 0;
    std::string device;
    std::uint64_t inode = 0;
    std::string name;
};

// The mappings of this process. Empty if /proc is missing.
std::vector<Mapping> own_mappings();

// Returns nullopt for lines of another kind.
std::optional<Mapping> parse_mapping(std::string_view line);
std::string to_line(const Mapping& mapping);

// Ranges of the program that the kernel cannot name.
struct ProgramRanges {
    std::uint64_t heap_start = 0, heap_end = 0;  // the emulated break
    std::uint64_t stack_end = 0;
};

// The parts of the mapping that are the program's, in the order of addresses. Each has the name and
// the permissions that the program has given it.
std::vector<Mapping> parts_of_program(const Mapping& mapping, const MemoryMap& memory,
                                      const ProgramRanges& ranges);

// `text` as the kernel would show it without the driver. The driver's memory is left out
// (own_memory.h). The program's own heap and stack have their names, and mappings have the
// permissions that the program has given.
std::string maps_of_program(std::string_view text, const MemoryMap& memory,
                            const ProgramRanges& ranges);

}  // namespace assay::native
