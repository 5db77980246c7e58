#include "framework/driver/shared/context_words.h"

#include <algorithm>

namespace assay::driver {
namespace {

// Constants of FNV-1a. hashed() takes up to 64 bits in a step.
constexpr std::uint64_t kBasis = 0xcbf29ce484222325, kPrime = 0x100000001b3;

std::uint64_t hashed(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * kPrime;
    return hash ^ hash >> 32;
}

}  // namespace

std::uint32_t ContextWords::of_block(const trace::Spec& spec, std::uint64_t range,
                                     std::span<const native::Instruction> instructions) {
    std::uint64_t key = hashed(kBasis, instructions.front().pc);
    for (const native::Instruction& instruction : instructions)
        for (unsigned i = 0; i < instruction.form->length; ++i)
            key = hashed(key, instruction.bytes[i]);
    return of(spec, range, key, trace::counters(spec), 0);
}

std::uint32_t ContextWords::of_block(const trace::Spec& spec, std::uint64_t range, std::uint64_t pc,
                                     std::span<const std::uint8_t> code) {
    std::uint64_t key = hashed(kBasis, pc);
    for (const std::uint8_t byte : code) key = hashed(key, byte);
    return of(spec, range, key, trace::counters(spec), 0);
}

std::uint32_t ContextWords::of_way(const trace::Spec& spec, std::uint64_t range, std::uint64_t pc,
                                   std::uint64_t target) {
    // A block without a word loses its counts, and a way only takes longer. Ways leave words to
    // blocks.
    const std::uint32_t kept_back = trace::context_words(spec) / 3;
    return of(spec, range, hashed(hashed(~kBasis, pc), target), 1, kept_back);
}

std::uint32_t ContextWords::of(const trace::Spec& spec, std::uint64_t range, std::uint64_t key,
                               std::uint32_t count, std::uint32_t kept_back) {
    Range& words = ranges_[range];
    const auto known = std::find_if(words.used.begin(), words.used.end(),
                                    [key](const Used& used) { return used.key == key; });
    if (known != words.used.end()) return known->word;
    std::uint32_t word = words.next;
    if (word % trace::kLayerWords + count > trace::kLayerWords)
        word += trace::kLayerWords - word % trace::kLayerWords;
    if (word + count + kept_back > trace::context_words(spec)) return 0;
    words.next = word + count;
    words.used.push_back({key, word});
    return word;
}

}  // namespace assay::driver
