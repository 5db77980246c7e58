#include "plugins/machine/sharing.h"

#include <algorithm>

namespace machine {

void Sharing::lost(std::uint32_t core, std::uint64_t line) {
    std::vector<Loss>& losses = losses_[line];
    for (const Loss& loss : losses)
        if (loss.core == core) return;
    losses.push_back({core, 0});
}

void Sharing::written(std::uint32_t core, std::uint64_t line, std::uint64_t words) {
    std::vector<Loss>* const losses = losses_.find(line);
    if (!losses) return;
    for (Loss& loss : *losses)
        if (loss.core != core) loss.written |= words;
}

std::optional<bool> Sharing::found_again(std::uint32_t core, std::uint64_t line,
                                         std::uint64_t words) {
    std::vector<Loss>* const losses = losses_.find(line);
    if (!losses) return std::nullopt;
    const auto loss = std::find_if(losses->begin(), losses->end(),
                                   [core](const Loss& other) { return other.core == core; });
    if (loss == losses->end()) return std::nullopt;
    const bool is_true = (loss->written & words) != 0;
    losses->erase(loss);
    if (losses->empty()) losses_.erase(line);
    return is_true;
}

}  // namespace machine
