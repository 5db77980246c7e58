#include "framework/collector/trace/interval_reader.h"

#include "framework/collector/trace/segment.h"

#include <algorithm>
#include <utility>

namespace assay::collector {
namespace {

// Scales the instructions of the blocks so that their sum is `length`.
void stretch(Interval& interval, std::uint64_t length) {
    std::uint64_t counted = 0;
    for (const trace_interval_block_t& block : interval.blocks) counted += block.instructions;
    __extension__ using Wide = unsigned __int128;
    std::uint64_t before = 0, given = 0;
    for (trace_interval_block_t& block : interval.blocks) {
        before += block.instructions;
        const auto up_to_here = static_cast<std::uint64_t>(Wide{before} * length / counted);
        block.instructions = up_to_here - std::exchange(given, up_to_here);
    }
    std::erase_if(interval.blocks,
                  [](const trace_interval_block_t& block) { return block.instructions == 0; });
    interval.row.instructions = length;
}

}  // namespace

std::span<const Interval> IntervalReader::take(std::uint32_t thread, std::uint32_t slot,
                                               std::span<const trace_record_t> records,
                                               const CodeTables& code, bool warm_up) {
    learn(code);
    finished_.clear();
    Unfinished& unfinished = unfinished_of(thread, slot);
    for (const trace_record_t& record : records) {
        const unsigned kind = code.sites[record.site].kind;
        if (kind == TRACE_SITE_INTERVAL) {
            finished_.push_back(finish(thread, true, unfinished, record.value));
            unfinished.complete += record.value;
            continue;
        }
        if (record.aux >= first_.size()) continue;  // true only if the program has overwritten it
        if (kind == TRACE_SITE_BLOCK_COUNT)
            count(unfinished, slot, record.aux, record.value, code, warm_up);
        if (kind == TRACE_SITE_BLOCK_CORRECTION)
            add(unfinished, record.aux, static_cast<std::int64_t>(record.value));
    }
    return finished_;
}

void IntervalReader::take_rest(std::uint32_t thread, std::uint32_t slot,
                               std::span<const std::uint64_t> counters, const CodeTables& code) {
    learn(code);
    Unfinished& unfinished = unfinished_of(thread, slot);
    for (std::uint32_t block = 0; block < counters.size(); ++block)
        count(unfinished, slot, block, counters[block], code);
    put_away(unfinished);
    counters_.erase(slot);
}

std::span<const Interval> IntervalReader::rests(
    const std::function<std::uint64_t(std::uint32_t thread)>& executed) {
    finished_.clear();
    for (auto& [thread, unfinished] : threads_) {
        const std::uint64_t all = estimates_ ? executed(thread) : 0;
        take_up(unfinished);
        finished_.push_back(
            finish(thread, false, unfinished, all - std::min(all, unfinished.complete)));
        put_away(unfinished);
    }
    return finished_;
}

IntervalReader::Unfinished& IntervalReader::unfinished_of(std::uint32_t thread,
                                                          std::uint32_t slot) {
    const auto [user, is_new] = users_.try_emplace(slot, thread);
    if (user->second != thread) put_away(threads_[std::exchange(user->second, thread)]);
    Unfinished& unfinished = threads_[thread];
    take_up(unfinished);
    return unfinished;
}

void IntervalReader::put_away(Unfinished& unfinished) {
    if (unfinished.instructions.empty()) return;
    std::vector<std::uint32_t> touched;
    for (const std::uint32_t block : unfinished.touched) {
        const std::int64_t instructions = std::exchange(unfinished.instructions[block], 0);
        if (instructions == 0) continue;
        touched.push_back(block);
        unfinished.put_away.push_back(instructions);
    }
    unfinished.touched = std::move(touched);
    unfinished.instructions = std::vector<std::int64_t>();
}

void IntervalReader::take_up(Unfinished& unfinished) {
    for (std::size_t i = 0; i < unfinished.put_away.size(); ++i) {
        const std::uint32_t block = unfinished.touched[i];
        if (unfinished.instructions.size() <= block)
            unfinished.instructions.resize(block + std::size_t{1});
        unfinished.instructions[block] = unfinished.put_away[i];
    }
    unfinished.put_away = std::vector<std::int64_t>();
}

void IntervalReader::count(Unfinished& to, std::uint32_t slot, std::uint32_t block,
                           std::uint64_t counter, const CodeTables& code, bool warm_up) {
    std::vector<std::uint64_t>& counters = counters_[slot];
    if (counters.size() <= block) counters.resize(code.blocks.size());
    if (counters[block] == counter) return;
    const std::uint64_t entered = counter - counters[block];
    counters[block] = counter;
    if (!warm_up)
        add(to, block, static_cast<std::int64_t>(entered * code.blocks[block].instr_count));
}

void IntervalReader::learn(const CodeTables& code) {
    for (auto block = static_cast<std::uint32_t>(first_.size()); block < code.blocks.size();
         ++block) {
        const std::uint64_t address = code.blocks[block].pc;
        first_.push_back(first_at_.try_emplace(address, block).first->second);
        addresses_.push_back(address);
    }
}

void IntervalReader::add(Unfinished& to, std::uint32_t block, std::int64_t instructions) {
    block = first_[block];
    if (to.instructions.size() <= block) to.instructions.resize(block + std::size_t{1});
    if (to.instructions[block] == 0) to.touched.push_back(block);
    to.instructions[block] += instructions;
}

Interval IntervalReader::finish(std::uint32_t thread, bool complete, Unfinished& unfinished,
                                std::uint64_t length) const {
    Interval made{};
    std::sort(unfinished.touched.begin(), unfinished.touched.end());
    std::vector<std::uint32_t> owing;  // these negative counts stay for the next interval
    for (const std::uint32_t block : unfinished.touched) {
        if (unfinished.instructions[block] < 0) owing.push_back(block);
        if (unfinished.instructions[block] <= 0) continue;
        const std::int64_t instructions = std::exchange(unfinished.instructions[block], 0);
        made.blocks.push_back({static_cast<std::uint64_t>(instructions), block, 0});
        made.row.instructions += static_cast<std::uint64_t>(instructions);
    }
    unfinished.touched = std::move(owing);
    if (estimates_) {
        // The order decides how numbers are rounded. That of addresses is the same in a replay.
        std::ranges::sort(made.blocks, {},
                          [this](const auto& each) { return addresses_[each.block]; });
        stretch(made, length);
        std::ranges::sort(made.blocks, {}, &trace_interval_block_t::block);
    }
    made.row.size = sizeof made.row;
    made.row.thread = thread;
    made.row.complete = complete ? 1 : 0;
    made.row.block_count = static_cast<std::uint32_t>(made.blocks.size());
    made.row.blocks = made.blocks.data();
    return made;
}

}  // namespace assay::collector
