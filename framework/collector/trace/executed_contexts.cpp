#include "framework/collector/trace/executed_contexts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

namespace assay::collector {
namespace {

using trace::range_of;

constexpr std::uint32_t kPortion = 256;  // nodes that are read at once: they stay in the cache

// False if the program has written over the table of words.
bool is_counter(std::uint32_t word, const trace::Spec& spec) {
    const std::uint32_t counters = trace::counters(spec);
    return word + counters <= trace::context_words(spec) &&
           word % trace::kLayerWords + counters <= trace::kLayerWords;
}

// The blocks of each range of code, sorted by their words, and the counts that have not been
// reported yet.
class CountedBlocks {
  public:
    CountedBlocks(const Segment& segment, const ExecutedContexts::Counts& counts)
        : mispredictions_(counts.mispredictions.begin(), counts.mispredictions.end()) {
        const std::span<const std::uint16_t> words = segment.context_words();
        executions_.resize(counts.code.blocks.size());
        for (std::uint32_t block = 0; block < counts.code.blocks.size(); ++block) {
            const trace_block_t& row = counts.code.blocks[block];
            if (words[block] == 0 || row.first_instr >= counts.executions.size()) continue;
            executions_[block] = counts.executions[row.first_instr];
            ranges_[range_of(row.pc)].push_back({words[block], block});
        }
        for (auto& [range, counted] : ranges_) std::sort(counted.begin(), counted.end());
        // A node counts these executions although no instruction of the block was executed.
        for (const trace::PartialEvent& left : counts.left_early)
            if (words[left.block] != 0 && left.executed == 0) executions_[left.block] += left.times;
    }

    using Counted = std::pair<std::uint16_t, std::uint32_t>;  // the word, and the block
    std::span<const Counted> in_range(std::uint64_t range) const {
        const auto found = ranges_.find(range);
        if (found == ranges_.end()) return {};
        return found->second;
    }

    // Returns the part of the executions and mispredictions that belongs to the block. Blocks with
    // the same word share a counter, so only their sum is known. The `last` of them gets the rest.
    std::pair<std::uint64_t, std::uint64_t> take(std::uint32_t block, std::uint64_t executions,
                                                 std::uint64_t mispredictions, bool last) {
        const std::uint64_t taken = last ? executions : std::min(executions, executions_[block]);
        executions_[block] -= std::min(taken, executions_[block]);
        if (block >= mispredictions_.size()) return {taken, 0};
        const std::uint64_t wrong =
            last ? mispredictions : std::min({mispredictions, mispredictions_[block], taken});
        mispredictions_[block] -= std::min(wrong, mispredictions_[block]);
        return {taken, wrong};
    }
    void take_left_early(std::uint32_t block, std::uint64_t executions) {
        executions_[block] -= std::min(executions, executions_[block]);
    }

  private:
    std::unordered_map<std::uint64_t, std::vector<Counted>> ranges_;
    std::vector<std::uint64_t> executions_, mispredictions_;  // by block: not reported yet
};

// The executions of blocks that were left early, by the node that counts them.
class LeftBlocks {
  public:
    struct Left {
        std::uint16_t word;
        std::uint32_t block, executed;
        std::uint64_t times;
    };

    LeftBlocks(const Segment& segment, const ExecutedContexts::Counts& counts) : segment_(segment) {
        const std::span<const std::uint16_t> words = segment.context_words();
        for (const trace::PartialEvent& event : counts.left_early) {
            Left left{words[event.block], event.block, event.executed, event.times};
            if (left.word == 0) continue;
            const std::uint64_t range = range_of(counts.code.blocks[event.block].pc);
            const std::uint64_t known = counted_by(event, range, left.word);
            if (known != 0) by_node_[{event.slot, event.node}].push_back(left);
            left.times -= std::min(left.times, known);
            if (left.times != 0) anywhere_[range].push_back(left);
        }
    }

    std::span<Left> of_node(std::uint32_t slot, const trace::ContextNode& node) {
        return find(by_node_, {slot, node.number});
    }
    // Executions that some node of the range has counted; the driver has not recorded which node.
    std::span<Left> of_range(std::uint64_t range) { return find(anywhere_, range); }

  private:
    using Place = std::pair<std::uint32_t, std::uint32_t>;  // a slot and a node of it

    template <typename Map>
    static std::span<Left> find(Map& map, const typename Map::key_type& key) {
        if (map.empty()) return {};
        const auto found = map.find(key);
        if (found == map.end()) return {};
        return found->second;
    }
    // Returns how many of the executions the event's node can have counted. If the thread has
    // changed its stack since the block began, the number is lower.
    std::uint64_t counted_by(const trace::PartialEvent& event, std::uint64_t range,
                             std::uint32_t word) {
        const trace::Spec& spec = segment_.control().spec;
        const bool is_node = event.slot < segment_.control().thread_count &&
                             event.node < segment_.context_node_count(event.slot) &&
                             is_counter(word, spec);
        if (!is_node) return 0;
        std::array<std::uint64_t, trace::kLayerWords> layer;
        segment_.read_context_nodes(event.slot, event.node, 0, layer);
        trace::ContextNode node;
        std::memcpy(&node, layer.data(), sizeof node);
        if (range_of(node.entry) != range) return 0;
        segment_.read_context_nodes(event.slot, event.node, word / trace::kLayerWords, layer);
        const auto own = std::span(layer).subspan(word % trace::kLayerWords, trace::counters(spec));
        const std::uint64_t all = std::accumulate(own.begin(), own.end(), std::uint64_t{0});
        std::uint64_t& told = told_[{event.slot, event.node, word}];
        const std::uint64_t known = std::min(event.times, all - std::min(told, all));
        told += known;
        return known;
    }

    const Segment& segment_;
    std::map<Place, std::vector<Left>> by_node_;
    std::map<std::uint64_t, std::vector<Left>> anywhere_;         // by range
    std::map<std::array<std::uint32_t, 3>, std::uint64_t> told_;  // by slot, node and word
};

}  // namespace

ExecutedContexts::Slot& ExecutedContexts::slot(std::uint32_t index) {
    if (slots_.size() <= index) slots_.resize(index + 1);
    return slots_[index];
}

// Enters the context of the next node. A node comes after its parent and its frame.
bool ExecutedContexts::enter(Slot& slot, const trace::ContextNode& node) {
    const auto number = static_cast<std::uint32_t>(slot.contexts.size());
    const bool begins =
        node.kind != trace::ContextNode::kJump && node.kind != trace::ContextNode::kAgain;
    const bool in_order = begins ? node.frame == number && (number == 0 || node.parent < number)
                                 : node.frame < number && node.parent < number;
    if (node.kind == trace::ContextNode::kLine && (!in_order || !slot.calls[node.parent]))
        return false;
    if (!in_order || node.number != number || (number == 0) != (node.kind == node.kRoot))
        return false;
    std::uint32_t context = 0;
    if (!begins)
        context = slot.contexts[node.frame];
    else if (node.kind == trace::ContextNode::kCall && node.beyond == 0)
        context = tree_.enter(slot.contexts[node.parent], node.site, node.entry, 0);
    else if (node.kind == trace::ContextNode::kHandler && node.beyond == 0)
        context =
            tree_.enter(slot.contexts[node.parent], node.site, node.entry, TRACE_CONTEXT_SIGNAL);
    else if (node.kind == trace::ContextNode::kLine)
        context = tree_.enter_line(slot.contexts[node.parent], node.site);
    else if (node.kind > trace::ContextNode::kLine)
        return false;
    slot.contexts.push_back(context);
    slot.calls.push_back(node.kind == trace::ContextNode::kCall);
    return true;
}

template <typename Visit>
void ExecutedContexts::read_nodes(std::uint32_t index, std::uint32_t first, std::uint32_t end,
                                  std::uint32_t layers, const Visit& visit) {
    constexpr std::size_t kLayer = std::size_t{kPortion} * trace::kLayerWords;
    read_.resize(kLayer * layers);
    for (; first < end; first += std::min(kPortion, end - first)) {
        const std::size_t words = std::size_t{std::min(kPortion, end - first)} * trace::kLayerWords;
        for (std::uint32_t layer = 0; layer < layers; ++layer)
            segment_.read_context_nodes(index, first, layer,
                                        std::span(read_).subspan(layer * kLayer, words));
        for (std::size_t at = 0; at < words; at += trace::kLayerWords) {
            trace::ContextNode node;
            std::memcpy(&node, read_.data() + at, sizeof node);
            visit(node, Words{read_.data() + at, kLayer});
        }
    }
}

// Reads the next nodes, at least one, into Slot::ahead, in reverse order.
void ExecutedContexts::read_ahead(std::uint32_t index) {
    Slot& slot = this->slot(index);
    const auto first = static_cast<std::uint32_t>(slot.contexts.size());
    const std::uint32_t count = segment_.context_node_count(index);
    slot.damaged = count <= first;
    if (slot.damaged) return;
    read_nodes(index, first, first + std::min(kPortion, count - first), 1,
               [&](const trace::ContextNode& node, auto) { slot.ahead.push_back(node); });
    std::reverse(slot.ahead.begin(), slot.ahead.end());
}

void ExecutedContexts::enter(std::uint32_t index, std::uint32_t count) {
    Slot& slot = this->slot(index);
    while (slot.contexts.size() < count && !slot.damaged) {
        if (slot.ahead.empty()) read_ahead(index);
        if (slot.damaged) break;
        slot.damaged = !enter(slot, slot.ahead.back());
        slot.ahead.pop_back();
    }
    complete_ = complete_ && !slot.damaged;
}

std::uint32_t ExecutedContexts::context_of(std::uint32_t index, std::uint32_t node) {
    enter(index, node + 1);
    const Slot& slot = this->slot(index);
    return node < slot.contexts.size() ? slot.contexts[node] : 0;
}

std::span<const std::uint32_t> ExecutedContexts::follow(std::uint32_t index,
                                                        std::span<const trace_record_t> records,
                                                        const CodeTables& code) {
    result_.resize(records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
        switch (code.sites[records[i].site].kind) {
            case TRACE_SITE_READ:
            case TRACE_SITE_WRITE:
            case TRACE_SITE_MODIFY:
            case TRACE_SITE_FETCH:
                result_[i] = context_of(index, records[i].aux);
                break;
            case TRACE_SITE_CONTEXT:
                slot(index).present =
                    context_of(index, static_cast<std::uint32_t>(records[i].value));
                [[fallthrough]];
            default:
                result_[i] = slot(index).present;
        }
    }
    return result_;
}

void ExecutedContexts::enter_all(std::uint32_t slots) {
    for (std::uint32_t slot = 0; slot < slots; ++slot)
        enter(slot, segment_.context_node_count(slot));
}

std::vector<ContextCalls> ExecutedContexts::calls(std::uint32_t slots) {
    std::vector<ContextCalls> result;
    for (std::uint32_t index = 0; index < slots; ++index) {
        const Slot& slot = this->slot(index);
        std::uint32_t number = 0;
        const auto count = static_cast<std::uint32_t>(slot.contexts.size());
        read_nodes(index, 0, count, 1, [&](const trace::ContextNode& node, auto) {
            const std::uint32_t context = slot.contexts[number++];
            const bool calls =
                node.kind != node.kRoot && node.kind != node.kJump && node.kind != node.kLine;
            if (!calls || node.beyond != 0 || node.parent >= count) return;
            const std::uint32_t caller = slot.contexts[node.parent];
            const bool had_no_room =
                tree_.overflowed() && node.kind != node.kAgain && context == caller;
            if (!had_no_room) result.push_back({caller, context, node.site, node.calls});
        });
    }
    return result;
}

void ExecutedContexts::for_each(std::uint32_t slots, const Counts& counts,
                                const std::function<void(const Executed&)>& visit) {
    CountedBlocks blocks(segment_, counts);
    LeftBlocks left_blocks(segment_, counts);
    const std::uint32_t counters = trace::counters(segment_.control().spec);
    const std::uint32_t layers = trace::context_words(segment_.control().spec) / trace::kLayerWords;
    const auto visit_node = [&](std::uint32_t index, const trace::ContextNode& node,
                                std::uint32_t context, const Words& words) {
        const auto counted = blocks.in_range(range_of(node.entry));
        std::uint64_t executions = 0, mispredictions = 0;
        const auto visit_left = [&](std::span<LeftBlocks::Left> all, std::uint16_t word) {
            for (LeftBlocks::Left& left : all) {
                if (left.word != word) continue;
                const std::uint64_t times =
                    std::min(left.times, executions - std::min(mispredictions, executions));
                if (times == 0) continue;
                left.times -= times;
                executions -= times;
                blocks.take_left_early(left.block, times);
                if (left.executed != 0) visit({context, left.block, left.executed, times, 0});
            }
        };
        for (auto at = counted.begin(); at != counted.end(); ++at) {
            const auto [word, block] = *at;
            if (!is_counter(word, segment_.control().spec)) return;
            if (at == counted.begin() || std::prev(at)->first != word) {
                const std::span<const std::uint64_t> own = words.at(word, counters);
                executions = std::accumulate(own.begin(), own.end(), std::uint64_t{0});
                mispredictions = counters == 1 ? 0 : own[1] + own[2];
                visit_left(left_blocks.of_node(index, node), word);
                visit_left(left_blocks.of_range(range_of(node.entry)), word);
            }
            if (executions == 0) continue;
            const bool last = std::next(at) == counted.end() || std::next(at)->first != word;
            const auto [taken, wrong] = blocks.take(block, executions, mispredictions, last);
            executions -= taken;
            mispredictions -= wrong;
            if (taken == 0) continue;
            visit({context, block, counts.code.blocks[block].instr_count, taken, wrong});
        }
    };
    for (std::uint32_t index = 0; index < slots; ++index) {
        const Slot& slot = this->slot(index);
        std::uint32_t number = 0;
        read_nodes(index, 0, static_cast<std::uint32_t>(slot.contexts.size()), layers,
                   [&](const trace::ContextNode& node, const Words& words) {
                       const std::uint32_t context = slot.contexts[number++];
                       if (node.beyond != 0)
                           complete_ = false;
                       else if (node.kind != trace::ContextNode::kAgain)
                           visit_node(index, node, context, words);
                       if (number % trace::kChunkNodes == 0)
                           segment_.release_context_nodes(index, number);
                   });
    }
}

}  // namespace assay::collector
