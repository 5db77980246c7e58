#include "framework/driver/replay/replay_plan.h"

#include "framework/driver/replay/replayed_contexts.h"
#include "framework/isa/architecture.h"
#include "framework/recording/trace_content.h"
#include "framework/trace/captures.h"
#include "framework/x86/decoder.h"

#include <algorithm>
#include <array>

namespace assay::replay {
namespace {

// The largest number that fits PlannedSite::bytes. XSAVE stores the most, about 11,000 bytes.
constexpr unsigned kMostBytes = (1U << 14U) - 1;

}  // namespace

ReplayPlan::ReplayPlan(const ImageTrace& image, const trace::Spec& spec,
                       const trace::ValueLists& values)
    : image_(image),
      spec_(spec),
      values_(values),
      shown_instrs_(image.instrs()),
      separate_(image.instrs().size()),
      retried_(image.instrs().size()),
      by_driver_(image.instrs().size()) {
    if (image.emulated() == nullptr)
        find_native_facts();
    else
        find_emulated_facts(*image.emulated());
    for (std::uint32_t i = 0; i < image.blocks().size(); ++i) plan_block(i);
    plan_sites();
    if (!(spec.captures & trace::kCaptureContexts)) return;
    words_ = context_words(image, shown_blocks_, spec);
    if (spec.captures & trace::kCapturePredictions) counted_ = counted_blocks(image, shown_blocks_);
}

void ReplayPlan::find_native_facts() {
    native::Decoder decoder;
    const bool decodes = spec_.captures & (trace::kCaptureCode | trace::kCapturePredictions |
                                           trace::kCaptureContexts | trace::kCaptureValues) ||
                         spec_.regions.sample_period != 0;
    for (std::size_t i = 0; decodes && i < image_.instrs().size(); ++i) {
        const trace_instr_t& instr = image_.instrs()[i];
        native::Instruction decoded;
        if (!decoder.decode({instr.bytes, sizeof instr.bytes}, instr.pc, decoded)) continue;
        separate_[i] =
            decoded.form->reference_count != 0 || decoded.form->special != native::Special::kNone;
        retried_[i] = decoded.form->flow == native::Flow::kNone && native::is_predicted(decoded);
        by_driver_[i] = decoded.form->flow == native::Flow::kSyscall ||
                        decoded.form->flow == native::Flow::kInterruptReturn ||
                        decoded.form->special == native::Special::kFlushLine;
    }
    if (spec_.captures & trace::kCaptureCalls)
        for (const trace_site_t& site : image_.sites())
            if (site.kind == TRACE_SITE_STACK) separate_[site.instr] = true;
}

// What GuestCode of QEMU's driver knows about instructions. The driver itself tells each change of
// the stack.
void ReplayPlan::find_emulated_facts(const isa::Architecture& architecture) {
    constexpr unsigned kReferences = TRACE_INSTR_LOAD | TRACE_INSTR_STORE;
    for (std::uint32_t i = 0; i < image_.instrs().size(); ++i) {
        const trace_instr_t& instr = image_.instrs()[i];
        isa::Instruction described;
        const bool known = architecture.describe != nullptr &&
                           architecture.describe(std::span(instr.bytes, instr.length), described);
        separate_[i] = !known || instr.flags & kReferences;
        by_driver_[i] = true;
        if (described.is_direct)
            targets_.emplace(i, instr.pc + static_cast<std::uint64_t>(described.distance));
    }
}

void ReplayPlan::plan_block(std::uint32_t number) {
    const trace_block_t& recorded = image_.blocks()[number];
    PlannedBlock block{};
    BlockFacts facts{};
    block.first_item = static_cast<std::uint32_t>(items_.size());
    facts.first_instr = recorded.first_instr;
    facts.instr_count = static_cast<std::uint16_t>(recorded.instr_count);
    facts.branch_site = facts.first_left_site = kNoSite;
    block.first_block = static_cast<std::uint32_t>(shown_blocks_.size());
    // As in the native driver: see PlannedBlock.
    const bool divides =
        spec_.captures & trace::kCapturePredictions || spec_.regions.sample_period != 0;
    std::uint32_t first = 0;
    for (std::uint32_t i = 0; i < recorded.instr_count; ++i) {
        const std::uint32_t instr = recorded.first_instr + i;
        shown_instrs_[instr].block = static_cast<std::uint32_t>(shown_blocks_.size());
        const bool ends = divides && retried_[instr];
        if (!ends && i + 1 != recorded.instr_count) continue;
        shown_blocks_.push_back({image_.instrs()[recorded.first_instr + first].pc,
                                 recorded.first_instr + first, i + 1 - first});
        first = i + 1;
    }
    block.block_count = static_cast<std::uint16_t>(shown_blocks_.size() - block.first_block);
    if (spec_.captures & trace::kCaptureBlocks) plan_block_records(block, facts);
    if (spec_.captures & trace::kCaptureFetches) plan_fetches(facts);
    if (spec_.captures & trace::kCaptureCode) plan_code(facts);
    if (spec_.captures & trace::kCapturePredictions) plan_retried(facts);
    plan_end(facts);
    block.tells_branch = facts.predicted || facts.branch_site != kNoSite;
    std::stable_sort(items_.begin() + block.first_item, items_.end(),
                     [](const auto& a, const auto& b) { return a.time < b.time; });
    items_.push_back({.address = 0,
                      .site = kNoSite,
                      .time = PlannedItem::kNever,
                      .kind = PlannedItem::kEnd,
                      .first_line = 0,
                      .last_line = 0});
    blocks_.push_back(block);
    facts_.push_back(facts);
}

// A record for each shown block, before its other records.
void ReplayPlan::plan_block_records(const PlannedBlock& block, BlockFacts& facts) {
    for (unsigned i = 0; i < block.block_count; ++i) {
        const std::uint32_t first = shown_blocks_[block.first_block + i].first_instr;
        items_.push_back({.address = 0,
                          .site = add_site(first, 0, TRACE_SITE_BLOCK),
                          .time = PlannedItem::reached(first - facts.first_instr),
                          .kind = PlannedItem::kBlock,
                          .first_line = 0,
                          .last_line = 0});
    }
    facts.first_left_site = static_cast<std::uint32_t>(shown_sites_.size());
    for (unsigned i = 0; i < block.block_count; ++i)
        add_site(shown_blocks_[block.first_block + i].first_instr, 0, TRACE_SITE_BLOCK_LEFT);
}

// A fetch for the first instruction of each shown block, and for each that begins another line than
// the one before. Without a filter: for all instructions.
void ReplayPlan::plan_fetches(const BlockFacts& block) {
    const bool are_all_recorded = spec_.fetch.sets == 0;
    const std::uint64_t line = std::max(spec_.fetch.line_bytes, 1U);
    for (unsigned i = 0; i < block.instr_count; ++i) {
        const trace_instr_t& instr = shown_instrs_[block.first_instr + i];
        const std::uint64_t last = (instr.pc + instr.length - 1) / line;
        const bool begins = shown_blocks_[instr.block].first_instr == block.first_instr + i;
        if (!are_all_recorded && !begins && (instr.pc - 1) / line == last) continue;
        // An instruction has at most 15 bytes.
        const auto lines = static_cast<std::uint8_t>((last - instr.pc / line) & 15U);
        items_.push_back({.address = instr.pc,
                          .site = add_site(block.first_instr + i, instr.length, TRACE_SITE_FETCH),
                          .time = PlannedItem::reached(i),
                          .kind = PlannedItem::kFetch,
                          .first_line = begins ? std::uint8_t{0} : lines,
                          .last_line = lines});
    }
}

// A fetch for each line of consecutive instructions without a data reference.
void ReplayPlan::plan_code(const BlockFacts& block) {
    const std::uint32_t line =
        spec_.data.sets == 0 ? spec_.code_line : std::min(spec_.code_line, spec_.data.line_bytes);
    for (unsigned i = 0; i < block.instr_count;) {
        unsigned last = i;
        while (last + 1U < block.instr_count && !separate_[block.first_instr + last]) ++last;
        const trace_instr_t* const instrs = &image_.instrs()[block.first_instr];
        const std::uint64_t end = instrs[last].pc + instrs[last].length;
        for (std::uint64_t pc = instrs[i].pc, behind = 0; pc < end; pc = behind) {
            behind = std::min<std::uint64_t>(end, (pc | (line - 1)) + 1);
            const auto bytes = static_cast<std::uint16_t>(behind - pc);
            items_.push_back({.address = pc,
                              .site = add_site(block.first_instr + i, bytes, TRACE_SITE_CODE),
                              .time = PlannedItem::reached(i),
                              .kind = PlannedItem::kCode,
                              .first_line = 0,
                              .last_line = 0});
            while (i < last && instrs[i].pc + instrs[i].length <= behind) ++i;
        }
        i = last + 1;
    }
}

void ReplayPlan::plan_retried(const BlockFacts& block) {
    for (unsigned i = 0; i < block.instr_count; ++i) {
        const std::uint32_t instr = block.first_instr + i;
        if (!retried_[instr]) continue;
        items_.push_back({.address = image_.instrs()[instr].pc,
                          .site = add_site(instr, 0, TRACE_SITE_PREDICTIONS),
                          .time = PlannedItem::executed(i),
                          .kind = PlannedItem::kRetried,
                          .first_line = 0,
                          .last_line = 0});
    }
}

void ReplayPlan::plan_end(BlockFacts& block) {
    const std::uint32_t last = block.first_instr + block.instr_count - 1U;
    const trace_instr_t& instr = image_.instrs()[last];
    block.branch_pc = instr.pc;
    block.next_pc = instr.pc + instr.length;
    std::uint32_t which = 0;
    if (instr.flags & TRACE_INSTR_INDIRECT) which |= TRACE_INDIRECT_BRANCHES;
    if (instr.flags & TRACE_INSTR_RETURN) which |= TRACE_RETURNS;
    if (instr.flags & TRACE_INSTR_CONDITIONAL) {
        block.end = BlockEnd::kConditional;
        which |= TRACE_CONDITIONAL_BRANCHES;
        if (const auto target = targets_.find(last); target != targets_.end())
            block.target = target->second;
    } else if (instr.flags & TRACE_INSTR_RETURN) {
        block.end = BlockEnd::kReturn;
    } else if (instr.flags & TRACE_INSTR_INDIRECT) {
        block.end = BlockEnd::kIndirect;
    } else if (instr.flags & TRACE_INSTR_CALL) {
        block.end = BlockEnd::kDirectCall;
        which = TRACE_DIRECT_CALLS;
    }
    block.predicted = spec_.captures & trace::kCapturePredictions &&
                      (block.end == BlockEnd::kConditional || block.end == BlockEnd::kIndirect);
    if (spec_.captures & trace::kCaptureBranches && spec_.branches & which)
        block.branch_site = add_site(last, 0, TRACE_SITE_BRANCH);
}

void ReplayPlan::plan_sites() {
    const bool predicts = spec_.captures & trace::kCapturePredictions;
    std::size_t first_value = 0, values_end = 0;  // of one execution
    predictions_sites_.resize(image_.sites().size(), kNoSite);
    for (std::size_t i = 0; i < image_.sites().size(); ++i) {
        const trace_site_t& site = image_.sites()[i];
        const std::uint32_t block = image_.instrs()[site.instr].block;
        PlannedSite planned{
            .site = kNoSite,
            .bytes = static_cast<std::uint16_t>(std::min<unsigned>(site.bytes, kMostBytes)),
            .tells_nothing = false,
            .by_driver = by_driver_[site.instr],
            .kind = site.kind,
            .position = static_cast<std::uint8_t>(site.instr - image_.blocks()[block].first_instr)};
        if (site.kind == TRACE_SITE_BLOCK || site.kind == TRACE_SITE_BLOCK_LEFT) {
            planned.site = block;
        } else if (trace::passes_on(spec_, site.kind) ||
                   (spec_.regions.points != 0 && site.kind == TRACE_SITE_BURST)) {
            planned.site = static_cast<std::uint32_t>(shown_sites_.size());
            shown_sites_.push_back(site);
        }
        const bool repeated = image_.instrs()[site.instr].flags & TRACE_INSTR_REPEATED;
        if (predicts && site.kind == TRACE_SITE_COUNT && repeated)
            predictions_sites_[i] = add_site(site.instr, 0, TRACE_SITE_PREDICTIONS);
        sites_.push_back(planned);
        if (site.kind == TRACE_SITE_VALUE && i >= values_end) {
            first_value = i;
            values_end = end_of_values(i);
        }
        if (i + 1 == values_end) plan_values(first_value, values_end);
    }
    general_sites_.assign(256, kNoSite);
    if (image_.instrs().empty()) return;
    const auto add_general = [&](unsigned kind) { general_sites_[kind] = add_site(0, 0, kind); };
    if (spec_.captures & trace::kCaptureContexts) add_general(TRACE_SITE_CONTEXT);
    const bool samples = spec_.regions.sample_period != 0;
    if (samples) add_general(TRACE_SITE_BURST);
    if (spec_.interval != 0 || samples) add_general(TRACE_SITE_BLOCK_COUNT);
    if (samples && predicts) add_general(TRACE_SITE_BLOCK_MISPREDICTIONS);
    if (spec_.interval != 0) add_general(TRACE_SITE_BLOCK_CORRECTION);
    if (spec_.interval != 0 || spec_.regions.sample_interval != 0) add_general(TRACE_SITE_INTERVAL);
}

// The end of the sites of one execution's values. The sites of another way out of the instruction
// can follow: they begin with a value that has occurred already.
std::size_t ReplayPlan::end_of_values(std::size_t first) const {
    const std::vector<trace_site_t>& sites = image_.sites();
    std::array<bool, 256> seen{};
    std::size_t end = first;
    for (; end < sites.size() && sites[end].instr == sites[first].instr; ++end) {
        if (sites[end].kind == TRACE_SITE_VALUE_REST) continue;
        if (sites[end].kind != TRACE_SITE_VALUE || seen[sites[end].operand]) break;
        seen[sites[end].operand] = true;
    }
    return end;
}

// Makes the sites that the native driver makes for the wanted lists. An instruction without any
// value has one site, which tells its execution. If only the execution determines the values, this
// site comes first, also in a recording.
void ReplayPlan::plan_values(std::size_t first, std::size_t end) {
    const std::vector<trace_site_t>& sites = image_.sites();
    const std::uint32_t instr = sites[first].instr;
    if (!(spec_.captures & trace::kCaptureValues)) return;
    const trace::ValueList* const list =
        values_.find(image_.instrs()[instr].opcode, image_.instrs()[instr].flags);
    if (!list) return;
    const auto show = [&](std::size_t recorded, unsigned operand) {
        sites_[recorded].site = add_site(instr, sites[recorded].bytes, sites[recorded].kind);
        shown_sites_.back().operand = static_cast<std::uint8_t>(operand);
    };
    bool any = sites[first].operand == TRACE_NONE;
    if (any) show(first, TRACE_NONE);
    for (unsigned i = 0; i < list->count; ++i) {
        const unsigned operand = recording::recorded_value(list->values[i]);
        for (std::size_t at = first; at < end; ++at) {
            const bool is_wanted = sites[at].kind == TRACE_SITE_VALUE || list->is_wide(i);
            if (operand == TRACE_NONE || sites[at].operand != operand || !is_wanted) continue;
            show(at, list->values[i]);
            any = true;
        }
    }
    if (any) return;
    show(first, TRACE_NONE);
    shown_sites_.back().bytes = 0;
    sites_[first].tells_nothing = true;
}

std::uint32_t ReplayPlan::add_site(std::uint32_t instr, unsigned bytes, unsigned kind) {
    shown_sites_.push_back(
        {instr, static_cast<std::uint16_t>(bytes), static_cast<std::uint8_t>(kind), 0});
    return static_cast<std::uint32_t>(shown_sites_.size() - 1);
}

std::uint32_t ReplayPlan::general_site(unsigned kind) const {
    return general_sites_[kind];
}

std::uint32_t ReplayPlan::predictions_site(std::uint32_t count_site) const {
    return predictions_sites_[count_site];
}

}  // namespace assay::replay
