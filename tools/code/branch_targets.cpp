#include "tools/code/branch_targets.h"

#include <fmt/core.h>
#include <algorithm>

namespace assay {

std::uint64_t branch_target(const native::Instruction& instruction) {
    switch (instruction.form->flow) {
        case native::Flow::kJump:
        case native::Flow::kConditional:
        case native::Flow::kCounted:
        case native::Flow::kCall:
            return instruction.target();
        default:
            return 0;
    }
}

std::vector<std::string> target_names(ObjectCode& code, const std::vector<std::uint64_t>& targets) {
    const std::vector<std::string_view> names = code.names(targets);
    const std::vector<symbols::FunctionRange> functions = code.functions(targets);
    std::vector<std::string> texts;
    texts.reserve(targets.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (names[i].empty()) {
            texts.emplace_back();
            continue;
        }
        // By their addresses: the last that begins no later.
        const auto next =
            std::upper_bound(functions.begin(), functions.end(), targets[i],
                             [](std::uint64_t address, const symbols::FunctionRange& function) {
                                 return address < function.low;
                             });
        const bool is_known = next != functions.begin() && targets[i] < std::prev(next)->high &&
                              std::prev(next)->name == names[i];
        const std::uint64_t offset = is_known ? targets[i] - std::prev(next)->low : 0;
        texts.push_back(offset == 0 ? fmt::format(" <{}>", names[i])
                                    : fmt::format(" <{}+{:#x}>", names[i], offset));
    }
    return texts;
}

}  // namespace assay
