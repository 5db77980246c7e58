#include "plugins/branch/tage.h"

#include <algorithm>

namespace branch {
namespace {

constexpr unsigned kBimodalMore = 3;                // bits
constexpr std::uint32_t kAgingPeriod = 256 * 1024;  // branches, section 3.2.3

// A linear feedback shift register of 32 bits, so that runs are repeatable.
std::uint32_t next_random(std::uint32_t state) {
    return state >> 1 ^ ((state & 1) != 0 ? 0xd0000001U : 0U);
}

}  // namespace

Tage::Tage(unsigned bits) : bits_(bits), bimodal_(bits + kBimodalMore, 2, 1) {
    for (unsigned i = 0; i < kTables; ++i) {
        tables_[i].resize(std::size_t{1} << bits);
        indexes_[i] = Folded(kLengths[i], bits);
        tags_[i] = Folded(kLengths[i], kTagBits[i]);
        tags2_[i] = Folded(kLengths[i], kTagBits[i] - 1);
    }
}

std::string Tage::describe() const {
    std::uint64_t size = std::uint64_t{2} << (bits_ + kBimodalMore);
    std::string lengths;
    for (unsigned i = 0; i < kTables; ++i) {
        size += (std::uint64_t{3 + 2} + kTagBits[i]) << bits_;
        lengths += (i == 0 ? "" : " ") + std::to_string(kLengths[i]);
    }
    return "TAGE: " + std::to_string(1U << (bits_ + kBimodalMore)) + " counters of 2 bits, " +
           std::to_string(kTables) + " tagged tables of " + std::to_string(1U << bits_) +
           " entries with " + lengths + " bits of history, " + std::to_string(size / 8) + " bytes";
}

Tage::Lookup Tage::look_up(std::uint64_t pc) {
    Lookup found{};
    found.provider = found.alternate = kNone;
    const std::uint32_t mask = (1U << bits_) - 1;
    for (unsigned i = 0; i < kTables; ++i) {
        const auto address = static_cast<std::uint32_t>(pc ^ pc >> (bits_ - i % bits_));
        const std::uint32_t path = path_ & ((1U << std::min(kLengths[i], 16U)) - 1);
        const std::uint32_t index = address ^ indexes_[i].value() ^ path ^ path >> bits_;
        found.tags[i] = static_cast<std::uint16_t>(
            (pc ^ tags_[i].value() ^ tags2_[i].value() << 1) & ((1U << kTagBits[i]) - 1));
        found.entries[i] = &tables_[i][index & mask];
        if (found.entries[i]->tag != found.tags[i]) continue;
        found.alternate = found.provider;
        found.provider = i;
    }
    const bool base = bimodal_.predicts(pc);
    found.by_alternate =
        found.alternate == kNone ? base : found.entries[found.alternate]->predicts();
    found.by_provider = found.provider == kNone ? base : found.entries[found.provider]->predicts();
    return found;
}

bool Tage::predict(std::uint64_t pc, bool taken) {
    const Lookup found = look_up(pc);
    const bool doubted = found.provider != kNone && found.entries[found.provider]->is_new() &&
                         found.entries[found.provider]->useful == 0 && trust_alternate_ >= 0;
    const bool predicted = doubted ? found.by_alternate : found.by_provider;
    train(pc, found, taken);
    remember(pc, taken);
    return predicted;
}

void Tage::move(std::int8_t& counter, bool up) {
    constexpr std::int8_t kLowest = -4, kHighest = 3;
    if (up && counter < kHighest) ++counter;
    if (!up && counter > kLowest) --counter;
}

// Section 3.2.
void Tage::train(std::uint64_t pc, const Lookup& found, bool taken) {
    if (found.provider != kNone) {
        Entry& entry = *found.entries[found.provider];
        const bool differ = found.by_provider != found.by_alternate;
        if (entry.is_new() && entry.useful == 0 && differ)
            trust_alternate_ =
                std::clamp(trust_alternate_ + (found.by_alternate == taken ? 1 : -1), -8, 7);
        if (differ && found.by_provider == taken && entry.useful < 3) ++entry.useful;
        if (differ && found.by_provider != taken && entry.useful > 0) --entry.useful;
    }
    const bool longest = found.provider == kTables - 1;
    if (found.by_provider != taken && !longest) allocate(found, taken);
    if (found.provider == kNone)
        bimodal_.train(pc, taken);
    else
        move(found.entries[found.provider]->counter, taken);
    if (++branches_ == kAgingPeriod) age();
}

// Allocates one entry in a table with a longer history than the one that mispredicted. If two
// tables have room, the shorter history is chosen with twice the probability.
void Tage::allocate(const Lookup& found, bool taken) {
    const unsigned first = found.provider == kNone ? 0 : found.provider + 1;
    unsigned chosen = kNone;
    for (unsigned i = first; i < kTables; ++i) {
        if (found.entries[i]->useful != 0) continue;
        chosen = i;
        random_ = next_random(random_);
        if (random_ % 3 != 0) break;
    }
    if (chosen != kNone) {
        *found.entries[chosen] = {static_cast<std::int8_t>(taken ? 0 : -1), 0, found.tags[chosen]};
        return;
    }
    for (unsigned i = first; i < kTables; ++i) --found.entries[i]->useful;
}

// Clears the high bits and the low bits of all useful counters in turn.
void Tage::age() {
    branches_ = 0;
    const std::uint8_t kept = high_bit_next_ ? 1 : 2;
    for (auto& table : tables_)
        for (Entry& entry : table) entry.useful &= kept;
    high_bit_next_ = !high_bit_next_;
}

void Tage::remember(std::uint64_t pc, bool taken) {
    for (unsigned i = 0; i < kTables; ++i) {
        indexes_[i].add(history_, taken);
        tags_[i].add(history_, taken);
        tags2_[i].add(history_, taken);
    }
    history_.add(taken);
    path_ = path_ << 1 | (pc & 1);
}

}  // namespace branch
