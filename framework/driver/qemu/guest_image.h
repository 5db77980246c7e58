// The ELF file of what a whole machine runs: firmware or a kernel. Its code is where the file says.
#pragma once

#include "framework/driver/qemu/guest_code.h"
#include "framework/isa/architecture.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace assay::qemu {

class GuestImage {
  public:
    explicit GuestImage(const std::string& path);
    ~GuestImage();
    GuestImage(const GuestImage&) = delete;
    GuestImage& operator=(const GuestImage&) = delete;

    // nullptr if the file cannot be read or is of no known instruction set.
    const isa::Architecture* architecture() const { return architecture_; }
    const std::string& path() const { return path_; }
    // Tells where the file's code lies, and the interrupt handlers.
    void announce(GuestCode& code) const;
    // A kernel's code is in the upper half of the addresses, and programs are in the lower one.
    bool is_kernel() const;
    // True if the file has this code at this address.
    bool has(std::uint64_t pc, std::span<const std::uint8_t> code) const;

  private:
    struct Part {
        std::uint64_t start, end;  // in memory; only what the file contains
        std::uint64_t offset;      // in the file
    };

    template <typename Header, typename Segment>
    void read();
    bool contains(std::uint64_t address) const;
    void read_vectors();

    std::string path_;
    int descriptor_;
    const isa::Architecture* architecture_ = nullptr;
    std::vector<Part> parts_;
    std::vector<std::uint64_t> handlers_;  // those that the vector table of a microcontroller names
};

}  // namespace assay::qemu
