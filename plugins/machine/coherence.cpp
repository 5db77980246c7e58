#include "plugins/machine/coherence.h"

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

State Coherence::state(std::uint32_t core, std::uint64_t line) {
    const Entry* const entry = entries_.find(line);
    if (!entry || !(entry->holders & bit(core))) return State::kInvalid;
    return entry->owner == core ? entry->state : State::kShared;
}

Coherence::Holders Coherence::holders(std::uint64_t line) {
    const Entry* const entry = entries_.find(line);
    return entry ? Holders{entry->holders, entry->owner} : Holders{};
}

Coherence::Read Coherence::read(std::uint32_t core, std::uint64_t line, bool alone) {
    Entry& entry = entries_[line];
    Read result;
    if (entry.holders & bit(core)) {
        result.had = true;
        return result;
    }
    if (entry.owner != kNobody && entry.owner != core) {
        if (entry.state != State::kExclusive) {
            result.supplier = entry.owner;
            result.cleans = protocol_ == Protocol::kMesi;
        }
        if (entry.state == State::kExclusive || result.cleans)
            entry.owner = kNobody;
        else
            entry.state = State::kOwned;
    }
    if (entry.holders == 0 && alone) {
        entry.owner = core;
        entry.state = State::kExclusive;
    }
    entry.holders |= bit(core);
    return result;
}

Coherence::Write Coherence::write(std::uint32_t core, std::uint64_t line) {
    Entry& entry = entries_[line];
    Write result;
    if (entry.holders & bit(core))
        result.before = entry.owner == core ? entry.state : State::kShared;
    else if (entry.owner != kNobody && entry.state != State::kExclusive)
        result.supplier = entry.owner;
    result.losers = entry.holders & ~bit(core);
    entry = {bit(core), core, State::kModified};
    return result;
}

void Coherence::drop(std::uint32_t core, std::uint64_t line) {
    Entry* const entry = entries_.find(line);
    if (!entry) return;
    entry->holders &= ~bit(core);
    if (entry->owner == core) entry->owner = kNobody;
    if (entry->holders == 0) entries_.erase(line);
}

}  // namespace machine
