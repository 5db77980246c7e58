#include "framework/collector/results/counts.h"

namespace assay::collector {

void GroupCounts::add(std::uint32_t group, std::uint32_t instruction, std::size_t column,
                      std::uint64_t weight) {
    if (weight == 0) return;
    Row& row = slots_[slot_for(group, instruction)];
    for (std::uint32_t cell = row.number; cell != kNone; cell = cells_[cell].next)
        if (cells_[cell].column == column) {
            cells_[cell].count += weight;
            return;
        }
    cells_.push_back({weight, row.number, static_cast<std::uint32_t>(column)});
    row.number = static_cast<std::uint32_t>(cells_.size() - 1);
}

std::vector<GroupCounts::Row> GroupCounts::sorted_rows() const {
    std::vector<Row> sorted;
    sorted.reserve(rows_);
    for (const Row& row : slots_)
        if (row.number != kNone) sorted.push_back(row);
    std::sort(sorted.begin(), sorted.end(), [](const Row& a, const Row& b) {
        return std::tie(a.group, a.instruction) < std::tie(b.group, b.instruction);
    });
    return sorted;
}

std::size_t GroupCounts::slot_for(std::uint32_t group, std::uint32_t instruction) {
    std::size_t slot = slot_of(group, instruction);
    if (slots_[slot].number != kNone) return slot;
    if (rows_ >= most_ && instruction != kAnyRow) return slot_for(group, kAnyRow);
    if ((rows_ + 1) * 4 > slots_.size() * 3) {
        grow();
        slot = slot_of(group, instruction);
    }
    ++rows_;
    slots_[slot].group = group;
    slots_[slot].instruction = instruction;
    return slot;
}

std::size_t GroupCounts::slot_of(std::uint32_t group, std::uint32_t instruction) const {
    // The multiplier of splitmix64's finaliser (Steele, Lea, Flood 2014).
    const std::uint64_t hash =
        (std::uint64_t{group} << 32 | instruction) * std::uint64_t{0x94D049BB133111EB};
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = (hash ^ hash >> 32) & mask;
    while (slots_[slot].number != kNone &&
           (slots_[slot].group != group || slots_[slot].instruction != instruction))
        slot = (slot + 1) & mask;
    return slot;
}

void GroupCounts::grow() {
    std::vector<Slot> before(slots_.size() * 2);
    before.swap(slots_);
    for (const Slot& row : before)
        if (row.number != kNone) slots_[slot_of(row.group, row.instruction)] = row;
}

void Breakdown::tell(std::uint32_t group, std::uint32_t row, std::size_t column,
                     std::uint64_t weight) {
    if (group != kNoGroup) counts.add(group, row, column, weight);
    if (!divides) return;
    const std::size_t begin = std::size_t{row} * columns, end = begin + columns;
    if (told.size() < end) told.resize(end + end / 2);
    told[begin + column] += weight;
}

std::vector<std::uint64_t> Counts::untold(const Breakdown& breakdown,
                                          const std::vector<bool>& divided_columns) const {
    const std::size_t columns = samples.columns();
    std::vector<std::uint64_t> untold(samples.rows() * columns);
    for (std::size_t i = 0; i < untold.size(); ++i)
        if (divided_columns[i % columns])
            untold[i] = samples.counts(i / columns)[i % columns] -
                        (i < breakdown.told.size() ? breakdown.told[i] : 0);
    return untold;
}

void Counts::scale(const Sampling& sampling, const std::vector<bool>& unscaled_columns) {
    std::uint64_t left = 0;
    samples.change_rows(
        [&](std::span<std::uint64_t> row) { sampling.scale_row(row, unscaled_columns, left); });
    contexts.counts.change_counts([&](std::size_t column, std::uint64_t count) {
        return unscaled_columns[column] ? count : sampling.scaled_part(count);
    });
    hotlists.scale(sampling.factor());
}

// Values that the other hotlist no longer counts one by one keep its bound for their error.
void Counts::add(const Counts& other) {
    std::vector<SampleDatabase::Key> keys(other.samples.rows());
    other.samples.visit_sorted([&](const SampleDatabase::Row& row) {
        keys[row.number] = row.key;
        const std::span<const std::uint64_t> counts = other.samples.counts(row.number);
        for (std::size_t column = 0; column < counts.size(); ++column)
            samples.add(row.key, column, counts[column]);
    });
    other.hotlists.for_each([&](std::uint32_t row, std::uint32_t number, const TopValues& values) {
        TopValues& sum = hotlists.of(samples.add(keys[row], 0, 0), number);
        const events::Hotlist list = values.list();
        std::uint64_t known = 0;
        for (const events::HotValue& each : list.values) {
            sum.add(each.value, each.count);
            known += each.count;
        }
        sum.add_rest(list.total - std::min(list.total, known), list.error);
    });
}

}  // namespace assay::collector
