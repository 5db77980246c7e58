// The program's system calls that matter to the driver. Numbers are those of the program's
// architecture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::qemu {

enum class CallKind : std::uint8_t {
    kOther,
    kClone,
    kExecute,
    kExecuteAt,
    kChangesMappings,
    kHandlesSignal,
    kReturnsFromSignal,
};

struct CallNumbers {
    std::string_view target;  // qemu_info_t::target_name
    int clone, execve, execveat, sigaction;
    int sigreturn[2];    // 0: none
    int of_mappings[7];  // those that change mappings; 0: none
    // The argument of clone(2) that has the flags.
    unsigned clone_flags;

    CallKind kind(std::int64_t number) const;
};
// Returns nullptr for an unknown architecture.
const CallNumbers* call_numbers(std::string_view target);

// Reads the program's memory. An address of the program plus `base` is one of this process.
class GuestMemory {
  public:
    GuestMemory(std::uint64_t base, unsigned pointer_bytes, bool big_endian)
        : base_(base), pointer_bytes_(pointer_bytes), big_endian_(big_endian) {}

    // No value if the memory cannot be read.
    std::optional<std::string> text(std::uint64_t address) const;
    // The texts of an array of pointers that ends in a null pointer.
    std::optional<std::vector<std::string>> texts(std::uint64_t address) const;
    std::optional<std::uint64_t> pointer(std::uint64_t address) const;

  private:
    bool read(std::uint64_t address, void* into, std::size_t bytes) const;

    std::uint64_t base_;
    unsigned pointer_bytes_;
    bool big_endian_;
};

}  // namespace assay::qemu
