// The summary at the end of a run: groups, and the most frequent opcodes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace opcode_mix {

struct Opcode {
    std::string_view mnemonic;
    std::uint64_t executions;
};

// `totals` is by event. `opcodes` are those to show, in descending order.
std::string summarise(std::span<const std::uint64_t> totals, const std::vector<Opcode>& opcodes);
// "mov 31.2%, add 8.1%": shares of `instructions`.
std::string in_one_line(const std::vector<Opcode>& opcodes, std::uint64_t instructions);

}  // namespace opcode_mix
