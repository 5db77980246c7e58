// Lets the threads of a recording, or those of several programs, take turns anew: a few
// instructions each.
//
// A thread begins, and goes on after a system call that it had to wait for, only when everything
// that was recorded before has been replayed. The system calls in which threads waited are known
// from a recording with --schedule=fair.
#pragma once

#include "framework/driver/replay/parallel_parts.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::replay {

class Turns {
  public:
    // `slice`: instructions of a turn. A block is not divided. `programs` must outlive this.
    Turns(std::span<const ImageTrace> programs, std::uint32_t slice);

    // Calls `take` for pieces of parts, one at a time, with the index of their program. Throws what
    // `take` throws.
    using Take = std::function<void(std::size_t program, const PartSequence::Part&)>;
    void run(const Take& take);

    // The reason why parts are missing; "" if none is known to be. Valid after run().
    std::string problem() const;

  private:
    // The threads of a slot, one after the other.
    struct Runner {
        Runner(const ImageTrace& image, std::uint32_t slot, std::size_t of_program);

        const std::size_t program;
        PartSequence parts;
        PartSequence::Part part;
        bool has_part = false;
        bool waits = false;  // for what was recorded before the part
        std::size_t done = 0, markers_done = 0;
        std::uint32_t thread = 0;
        bool has_begun = false;
    };

    bool look_ahead(Runner& runner);
    bool is_ready(const Runner& runner) const;
    Runner* next_runner(std::size_t& at);
    std::uint64_t take_piece(Runner& runner, std::uint64_t instructions, const Take& take);

    struct Sites {
        std::vector<std::uint32_t> instructions;  // of the block, by site of a block; else 0
        std::vector<bool> is_system_call;         // by site
    };
    const std::uint32_t slice_;
    std::vector<Sites> sites_;  // by program
    std::vector<std::unique_ptr<Runner>> runners_;
};

}  // namespace assay::replay
