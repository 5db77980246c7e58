// Several recorded programs on one machine: their tables as those of one image. Each program has
// its own address space, which the high bits of all its addresses tell.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/driver/replay/parallel_parts.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::replay {

// No program has addresses of so many bits.
inline constexpr unsigned kProgramShift = 57;
inline constexpr std::size_t kMostPrograms = 16;
inline std::uint64_t in_program(std::uint64_t address, std::size_t program) {
    return address | std::uint64_t{program} << kProgramShift;
}
inline std::size_t program_of(std::uint64_t address) {
    return address >> kProgramShift;
}

class MixedPrograms {
  public:
    // `programs` must outlive this. Throws Error if a program cannot be mixed with others.
    explicit MixedPrograms(std::span<const ImageTrace> programs);

    const ImageTrace& image() const { return image_; }
    std::span<const ImageTrace> programs() const { return programs_; }
    // A program's part of the image's events.
    std::span<const std::byte> events_of(std::size_t program) const {
        return std::span(image_.events())
            .subspan(firsts_[program].event, programs_[program].events().size());
    }
    // A part of a program, as one of the image. It is valid until the next call.
    const PartSequence::Part& part(std::size_t program, const PartSequence::Part& own);

  private:
    // The numbers in the image of a program's first row of each kind.
    struct First {
        std::uint32_t block, instr, site, slot, thread;
        std::size_t event;
    };

    std::vector<std::byte> events_in_image(std::size_t program) const;

    ImageTrace image_;
    const std::span<const ImageTrace> programs_;
    std::vector<First> firsts_;
    PartSequence::Part part_;
};

}  // namespace assay::replay
