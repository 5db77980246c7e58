// Replacement policies that keep something for each line or set: which of a set's lines goes.
#pragma once

#include "plugins/machine/machine.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace machine {

class Policy {
  public:
    struct Access {
        std::uint64_t line = 0;
        std::uint64_t pc = 0;  // of the instruction that refers to it, or on whose behalf it comes
        bool prefetch = false;
    };

    Policy() = default;
    virtual ~Policy() = default;
    Policy(const Policy&) = delete;
    Policy& operator=(const Policy&) = delete;

    virtual void hit(std::uint64_t set, std::uint32_t way, const Access& access) = 0;
    // Asked only when all ways of the set are in use.
    virtual std::uint32_t victim(std::uint64_t set, const Access& access) = 0;
    virtual void fill(std::uint64_t set, std::uint32_t way, const Access& access) = 0;
    // The line has been replaced or invalidated.
    virtual void leave(std::uint64_t, std::uint32_t) {}
};

// Whether there is a policy of that name.
bool is_policy(const std::string& name);
std::vector<std::string> policy_names();
// A few words why the policy cannot have so many ways, or "".
std::string complaint(const Replacement& replacement, std::uint32_t ways);
// Whether a second reference to the line that the set was referred to last changes nothing.
bool forgets_repetition(const Replacement& replacement);

// Throws std::runtime_error if the library that `replacement` names is unusable.
std::unique_ptr<Policy> make_policy(const Replacement& replacement, std::uint64_t sets,
                                    std::uint32_t ways);

}  // namespace machine
