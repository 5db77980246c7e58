#include "framework/driver/native/process/intervals.h"

namespace assay::native {
namespace {

// From how many remaining instructions on each block is counted down. A look at the counters takes
// a time that depends on the number of blocks: the larger the program, the sooner.
std::int64_t nearness(std::uint32_t blocks) {
    constexpr std::int64_t kLeast = 4096, kPerBlock = 8;
    return kLeast + kPerBlock * std::int64_t{blocks};
}

}  // namespace

void Intervals::begin(Context& context) {
    corrected_ = postponed_ = 0;
    corrections_.clear();
    goal_ = static_cast<std::int64_t>(length()) + 1;
    if (wanted()) look(context);
}

void Intervals::begin_image(Context& context) {
    counts_.forget();
    begin(context);
}

void Intervals::end() {
    if (!wanted() || tables_.detached()) return;
    send_corrections();
    send_counts();
}

// Since the last end.
std::int64_t Intervals::executed() {
    std::uint64_t sum = 0;
    counts_.look([&](std::uint32_t block, std::uint64_t now, std::uint64_t before) {
        sum += (now - before) * tables_.block(block).instr_count;
    });
    return static_cast<std::int64_t>(sum) + corrected_;
}

// At the beginning of a block.
void Intervals::look(Context& context) {
    const std::int64_t remaining = goal_ - executed();
    near_end_ = remaining < nearness(tables_.next_block());
    context.interval_countdown = remaining - 1;
}

void Intervals::reach(Context& context, const Block& block) {
    if (block.version != kExact) return look(context);
    context.interval_countdown += block.instr_count;
    while (context.interval_countdown < block.instr_count) {
        const std::int64_t last = context.interval_countdown;  // the interval's, in the block
        if (is_repeated(block, last)) {
            // No interval ends behind a repeated string instruction, since exp-bbv counts it
            // together with the next one.
            ++context.interval_countdown;
            ++goal_;
            ++postponed_;
            continue;
        }
        finish_interval(block.id, static_cast<std::uint32_t>(last + 1));
        context.interval_countdown += goal_;
    }
    near_end_ = context.interval_countdown < nearness(tables_.next_block());
}

bool Intervals::is_repeated(const Block& block, std::int64_t number) const {
    const auto instr = block.first_instr + static_cast<std::uint32_t>(number);
    return tables_.instr(instr).flags & TRACE_INSTR_REPEATED;
}

// Behind the first `split` instructions of the block that comes next, of which nothing has been
// counted.
void Intervals::finish_interval(std::uint32_t block, std::uint32_t split) {
    send_corrections();
    send_counts();
    send_correction({block, split});
    trace_.append(length(), tables_.driver_site(0, TRACE_SITE_INTERVAL));
    if (tables_.captures(trace::kCaptureReferences)) trace_.forget_recent_lines();
    send_correction({block, -std::int64_t{split}});
    corrected_ = -std::int64_t{split};
    goal_ = static_cast<std::int64_t>(length()) - postponed_;
    postponed_ = 0;
}

void Intervals::send_counts() {
    const std::uint32_t site = tables_.driver_site(0, TRACE_SITE_BLOCK_COUNT);
    counts_.take([&](std::uint32_t block, std::uint64_t now, std::uint64_t) {
        trace_.append(now, site, block);
    });
}

void Intervals::send_correction(const Correction& correction) {
    trace_.append(static_cast<std::uint64_t>(correction.instructions),
                  tables_.driver_site(0, TRACE_SITE_BLOCK_CORRECTION), correction.block);
}

void Intervals::left_early(Context& context, const Block& block, std::uint32_t executed,
                           bool counted) {
    if (!wanted() || block.version == kPlain) return;
    const std::int64_t missing = std::int64_t{block.instr_count} - executed;
    if (block.version == kExact) context.interval_countdown += missing;
    const std::int64_t correction = counted ? -missing : executed;
    if (correction == 0) return;
    corrected_ += correction;
    corrections_.push_back({block.id, correction});
}

void Intervals::send_corrections() {
    for (const Correction& correction : corrections_) send_correction(correction);
    corrections_.clear();
}

}  // namespace assay::native
