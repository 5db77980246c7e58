#include "plugins/machine/sharing.h"

#include <algorithm>

namespace machine {

std::uint64_t Sharing::words(std::uint64_t line, std::uint64_t address, std::uint32_t bytes) const {
    const std::uint64_t begin = line * line_, end = begin + line_;
    const std::uint64_t first = std::max(address, begin) - begin;
    const std::uint64_t last = std::min(address + bytes, end) - begin - 1;
    const std::uint64_t from = first / word_, to = last / word_;
    const std::uint64_t up_to = to == 63 ? ~std::uint64_t{0} : (std::uint64_t{2} << to) - 1;
    return up_to & ~((std::uint64_t{1} << from) - 1);
}

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
