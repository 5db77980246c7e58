#include "framework/collector/results/shares.h"

#include "framework/trace/object_sites.h"

#include <algorithm>
#include <tuple>

namespace assay::collector {

ExecutionShares::ExecutionShares(Instructions instructions, std::span<const std::uint64_t> counts,
                                 std::size_t columns, std::span<const std::uint32_t> alike)
    : instructions_(std::move(instructions)),
      columns_(columns),
      shares_of_(instructions_.code.blocks.size(), Range{UINT32_MAX, UINT32_MAX}),
      executions_left_(instructions_.executions.begin(), instructions_.executions.end()),
      mispredictions_left_(instructions_.mispredictions.begin(),
                           instructions_.mispredictions.end()),
      place_in_touched_(alike.size()) {
    mispredictions_left_.resize(instructions_.code.blocks.size());
    find_shares(counts, columns, alike);
}

// An instruction can be in several blocks. All of them have the same shares.
void ExecutionShares::find_shares(std::span<const std::uint64_t> counts, std::size_t columns,
                                  std::span<const std::uint32_t> alike) {
    std::vector<std::uint64_t> executions(alike.size()), mispredictions(alike.size());
    std::vector<bool> varies(alike.size());
    const CodeTables& code = instructions_.code;
    for (std::size_t i = 0; i < code.instrs.size(); ++i) {
        const std::uint32_t row = instructions_.rows[i];
        if (row == SampleDatabase::kNoRow) continue;
        executions[row] += instructions_.executions[i];
        if (code.instrs[i].flags & (TRACE_INSTR_VARIABLE | TRACE_INSTR_REPEATED))
            varies[row] = true;
    }
    for (std::size_t i = 0; i < instructions_.mispredictions.size(); ++i) {
        const std::uint32_t last = code.blocks[i].first_instr + code.blocks[i].instr_count - 1;
        if (instructions_.rows[last] != SampleDatabase::kNoRow)
            mispredictions[instructions_.rows[last]] += instructions_.mispredictions[i];
    }
    const auto divides = [](std::uint64_t number, std::uint64_t count) {
        return number != 0 && count % number == 0;
    };
    for (std::uint32_t row = 0; row < alike.size(); ++row) {
        first_share_.push_back(static_cast<std::uint32_t>(shares_.size()));
        for (std::uint32_t column = 0; column < columns; ++column) {
            const std::uint64_t count = counts[row * columns + column];
            if (count == 0) continue;
            const bool by_executions =
                varies[row] ? count == executions[row] : divides(executions[row], count);
            if (!by_executions && !divides(mispredictions[row], count)) continue;
            shares_.push_back({alike[row], column, !by_executions,
                               count / (by_executions ? executions : mispredictions)[row]});
        }
    }
    first_share_.push_back(static_cast<std::uint32_t>(shares_.size()));
}

void ExecutionShares::add(std::span<const ContextExecutions> all, GroupCounts& to) {
    for (const ContextExecutions& each : all) {
        if (each.context != context_) flush(to);
        context_ = each.context;
        const std::uint32_t block = instructions_.code.instrs[each.first_instr].block;
        const trace_block_t& whole = instructions_.code.blocks[block];
        ContextExecutions executed = each;
        executed.executions = take(each.executions, executions_left_[each.first_instr]);
        executed.mispredictions = take(each.mispredictions, mispredictions_left_[block]);
        if (each.first_instr == whole.first_instr && each.instr_count == whole.instr_count) {
            add_shares(shares_of_block(block), executed);
        } else {
            some_shares_.clear();
            append_all(each.first_instr, each.instr_count, some_shares_);
            add_shares(some_shares_, executed);
        }
    }
    flush(to);
}

std::uint64_t ExecutionShares::take(std::uint64_t wanted, std::uint64_t& left) {
    const std::uint64_t taken = std::min(wanted, left);
    left -= taken;
    return taken;
}

std::span<const ExecutionShares::Share> ExecutionShares::shares_of_block(std::uint32_t block) {
    auto& [begin, end] = shares_of_[block];
    if (begin == UINT32_MAX) {
        const trace_block_t& whole = instructions_.code.blocks[block];
        some_shares_.clear();
        append_all(whole.first_instr, whole.instr_count, some_shares_);
        begin = static_cast<std::uint32_t>(block_shares_.size());
        const auto key = [](const Share& share) {
            return std::tuple(share.row, std::uint32_t{share.column},
                              std::uint32_t{share.mispredicted});
        };
        std::sort(some_shares_.begin(), some_shares_.end(),
                  [&](const Share& a, const Share& b) { return key(a) < key(b); });
        for (const Share& share : some_shares_)
            if (block_shares_.size() > begin && key(block_shares_.back()) == key(share))
                block_shares_.back().each += share.each;
            else
                block_shares_.push_back(share);
        end = static_cast<std::uint32_t>(block_shares_.size());
    }
    return std::span(block_shares_).subspan(begin, end - begin);
}

void ExecutionShares::append_all(std::uint32_t first_instr, std::uint32_t count,
                                 std::vector<Share>& shares) {
    for (std::uint32_t i = 0; i < count; ++i) append(first_instr + i, i == count - 1, shares);
}

void ExecutionShares::append(std::uint32_t instr, bool last, std::vector<Share>& shares) const {
    const std::uint32_t row = instructions_.rows[instr];
    if (row == SampleDatabase::kNoRow) return;
    for (std::uint32_t i = first_share_[row]; i < first_share_[row + 1]; ++i)
        if (last || !shares_[i].mispredicted) shares.push_back(shares_[i]);
}

void ExecutionShares::add_shares(std::span<const Share> shares, const ContextExecutions& executed) {
    for (const Share& share : shares) {
        std::uint32_t& place = place_in_touched_[share.row];
        if (place >= touched_.size() || touched_[place] != share.row) {
            place = static_cast<std::uint32_t>(touched_.size());
            touched_.push_back(share.row);
            sums_.resize(sums_.size() + columns_);
        }
        sums_[place * columns_ + share.column] +=
            share.each * (share.mispredicted ? executed.mispredictions : executed.executions);
    }
}

void ExecutionShares::flush(GroupCounts& to) {
    for (std::size_t i = 0; i < touched_.size(); ++i) {
        for (std::size_t column = 0; column < columns_; ++column)
            to.add(context_, touched_[i], column, sums_[i * columns_ + column]);
    }
    touched_.clear();
    sums_.clear();
}

ReferenceShares::ReferenceShares(std::span<const ReferencedObjects::Count> references,
                                 const CodeTables& code, std::span<const std::uint32_t> rows) {
    for (const ReferencedObjects::Count& count : references) {
        const trace_site_t& site = code.sites[count.site];
        const std::uint32_t row = rows[site.instr];
        if (row == SampleDatabase::kNoRow) continue;
        const unsigned kind = site.kind == TRACE_SITE_OBJECT ? trace::object_kind(site) : site.kind;
        for (References* to : {&of_rows_[row], &of_objects_[{row, count.object}]})
            (kind == TRACE_SITE_READ    ? to->reads
             : kind == TRACE_SITE_WRITE ? to->writes
                                        : to->modifications) += count.references;
    }
}

std::optional<ReferenceShares::Share> ReferenceShares::find(std::uint32_t row,
                                                            std::uint64_t count) const {
    if (count == 0) return std::nullopt;
    const std::array<std::uint64_t, 5> all = of_rows_.at(row).sums();
    for (const std::uint64_t times : {1U, 2U}) {
        const auto found = std::find_if(all.begin(), all.end(),
                                        [&](std::uint64_t sum) { return sum * times == count; });
        if (found != all.end()) return Share{static_cast<std::size_t>(found - all.begin()), times};
    }
    return std::nullopt;
}

void ReferenceShares::add(std::span<const std::uint64_t> counts, std::size_t columns,
                          GroupCounts& to) const {
    for (std::size_t column = 0; column < columns; ++column)
        for (const auto& [place, references] : of_objects_) {
            const auto [row, object] = place;
            if (const auto share = find(row, counts[row * columns + column]))
                to.add(object, row, column, references.sums()[share->which] * share->times);
        }
}

}  // namespace assay::collector
