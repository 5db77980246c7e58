#include "framework/driver/replay/replayed_contexts.h"

#include "framework/driver/shared/context_words.h"
#include "framework/x86/decoder.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace assay::replay {
namespace {

using native::Flow;
using native::Instruction;

std::uint64_t range_of(std::uint64_t pc) {
    return pc & ~(trace::kCodeRange - 1);
}

// Takes words in the order in which the driver has translated. A trace has blocks in the order of
// their numbers, with the blocks of a unit together. Ways that the driver puts at the end of a unit
// (translate/control_flow.cpp) get their words after its blocks.
class Words {
  public:
    explicit Words(const trace::Spec& spec) : spec_(spec) {}

    std::uint32_t take(std::span<const Instruction> block) {
        range_ = range_of(block.front().pc);
        if (block.front().pc != continuation_) end_unit();
        const std::uint32_t word = words_.of_block(spec_, range_, block);
        leave(block.back());
        return word;
    }
    void end_unit() {
        for (const auto& [from, target] : behind_) words_.of_way(spec_, from, 0, range_of(target));
        behind_.clear();
        continuation_ = 0;
    }

  private:
    void leave(const Instruction& last) {
        continuation_ = last.next_pc();
        switch (last.form->flow) {
            case Flow::kNone:
            case Flow::kTrap:
                return jump(last.next_pc());
            case Flow::kJump:
                continuation_ = last.target();
                return jump(last.target());
            case Flow::kConditional:
            case Flow::kCounted:
                if (last.form->flow == Flow::kConditional && last.target() <= last.pc)
                    jump(last.target());
                else if (range_of(last.target()) != range_)
                    behind_.emplace_back(range_, last.target());
                return jump(last.next_pc());
            case Flow::kCall:
                continuation_ = last.target();
                words_.of_way(spec_, range_, last.pc, last.target());
                return;
            case Flow::kCallIndirect:
            case Flow::kJumpIndirect:
                words_.of_way(spec_, range_, last.pc, 0);
                return;
            default:
                return;
        }
    }
    void jump(std::uint64_t target) {
        if (range_of(target) != range_) words_.of_way(spec_, range_, 0, range_of(target));
    }

    const trace::Spec& spec_;
    driver::ContextWords words_;
    std::uint64_t range_ = 0;         // of the block
    std::uint64_t continuation_ = 0;  // where the unit goes on; 0: nowhere
    std::vector<std::pair<std::uint64_t, std::uint64_t>> behind_;  // ranges and targets
};

std::span<const trace_instr_t> instrs_of(const ImageTrace& image, const trace_block_t& block) {
    return std::span(image.instrs()).subspan(block.first_instr, block.instr_count);
}

bool is_part(const ImageTrace& image, const trace_block_t& block) {
    const std::uint32_t recorded = image.instrs()[block.first_instr].block;
    return image.blocks()[recorded].instr_count != block.instr_count;
}

bool are_alike(std::span<const trace_instr_t> a, std::span<const trace_instr_t> b) {
    return std::ranges::equal(a, b, [](const trace_instr_t& one, const trace_instr_t& other) {
        return one.length == other.length && std::memcmp(one.bytes, other.bytes, one.length) == 0;
    });
}

std::vector<std::uint8_t> code_of(std::span<const trace_instr_t> instrs) {
    std::vector<std::uint8_t> code;
    for (const trace_instr_t& instr : instrs)
        code.insert(code.end(), instr.bytes, instr.bytes + instr.length);
    return code;
}

}  // namespace

std::vector<std::uint16_t> context_words(const ImageTrace& image,
                                         std::span<const trace_block_t> blocks,
                                         const trace::Spec& spec) {
    std::vector<std::uint16_t> result;
    result.reserve(blocks.size());
    if (image.emulated() != nullptr) {
        driver::ContextWords words;
        for (const trace_block_t& block : blocks)
            result.push_back(static_cast<std::uint16_t>(words.of_block(
                spec, trace::range_of(block.pc), block.pc, code_of(instrs_of(image, block)))));
        return result;
    }
    native::Decoder decoder;
    Words words(spec);
    std::vector<Instruction> decoded;
    for (const trace_block_t& block : blocks) {
        decoded.clear();
        const std::span instrs = instrs_of(image, block);
        for (const trace_instr_t& instr : instrs) {
            Instruction next;
            if (!decoder.decode({instr.bytes, sizeof instr.bytes}, instr.pc, next)) break;
            decoded.push_back(next);
        }
        const bool whole = !decoded.empty() && decoded.size() == instrs.size();
        result.push_back(whole ? static_cast<std::uint16_t>(words.take(decoded)) : 0);
    }
    words.end_unit();
    return result;
}

std::vector<std::uint32_t> counted_blocks(const ImageTrace& image,
                                          std::span<const trace_block_t> blocks) {
    std::vector<std::uint32_t> result;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_pc;
    for (std::uint32_t number = 0; number < blocks.size(); ++number) {
        const trace_block_t& block = blocks[number];
        std::vector<std::uint32_t>& known = by_pc[block.pc];
        const auto same = std::find_if(known.begin(), known.end(), [&](std::uint32_t other) {
            return (is_part(image, block) || is_part(image, blocks[other])) &&
                   are_alike(instrs_of(image, blocks[other]), instrs_of(image, block));
        });
        result.push_back(same == known.end() ? number : *same);
        if (same == known.end()) known.push_back(number);
    }
    return result;
}

}  // namespace assay::replay
