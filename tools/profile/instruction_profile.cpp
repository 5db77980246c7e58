#include "tools/profile/instruction_profile.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <set>
#include <tuple>

namespace assay {
namespace {

template <typename T>
auto place(const T& at) {
    return std::tie(at.object, at.address);
}

constexpr auto kByPlace = [](const auto& a, const auto& b) { return place(a) < place(b); };

}  // namespace

InstructionProfile::InstructionProfile(const std::string& path, const events::EventChoice& choice) {
    totals_ = events::read_events(path, *this, events::Accept::kProfiles, choice).totals;
    if (rows_.empty())
        throw Error(
            fmt::format("{} has no counts of instructions: profile with --dump-instr=yes", path));
    std::stable_sort(rows_.begin(), rows_.end(), kByPlace);
    std::stable_sort(values_.begin(), values_.end(), kByPlace);
    add_up();
}

void InstructionProfile::start(const events::Header& header) {
    header_ = header;
    counts_.set_columns(header.events.size());
    no_counts_ = counts_.append(std::vector<std::uint64_t>(header.events.size()));
}

void InstructionProfile::location(const events::Location& location) {
    function_ = names_[names_.id(location.function)];
}

void InstructionProfile::instruction(const Instruction& at, Counts counts) {
    add(at, counts_.append(counts));
}

// An instruction may have values and no counts.
void InstructionProfile::values(const Instruction& at, const events::Hotlist& list) {
    values_.push_back({at.object, at.address, list});
    add(at, no_counts_);
}

void InstructionProfile::add(const Instruction& at, CountStore::Row counts) {
    rows_.push_back({at.object, at.address, function_, counts});
}

// Of one address there is more than one line where it is merged from several files, or where it
// has values.
void InstructionProfile::add_up() {
    std::vector<std::uint64_t> sum;
    std::size_t kept = 0;
    for (std::size_t begin = 0; begin < rows_.size();) {
        Row row = rows_[begin];
        std::size_t end = begin + 1;
        for (sum.clear(); end < rows_.size() && place(rows_[end]) == place(row); ++end) {
            const CountStore::Row more = rows_[end].counts;
            if (more == no_counts_) continue;
            if (row.counts == no_counts_) {
                row.counts = more;
                continue;
            }
            if (sum.empty()) sum = counts(row);
            counts_.add_to(sum, more);
        }
        if (!sum.empty()) row.counts = counts_.append(sum);
        rows_[kept++] = row;
        begin = end;
    }
    rows_.resize(kept);
}

std::vector<std::uint64_t> InstructionProfile::counts(const Row& row) const {
    std::vector<std::uint64_t> counts(totals_.size());
    counts_.read(row.counts, counts);
    return counts;
}

std::vector<const events::Hotlist*> InstructionProfile::values(const Row& row) const {
    const auto [begin, end] = std::equal_range(values_.begin(), values_.end(),
                                               Values{row.object, row.address, {}}, kByPlace);
    std::vector<const events::Hotlist*> lists;
    for (auto at = begin; at != end; ++at) lists.push_back(&at->list);
    std::sort(lists.begin(), lists.end(),
              [](const auto* a, const auto* b) { return a->name < b->name; });
    return lists;
}

std::vector<std::string_view> InstructionProfile::lists() const {
    std::set<std::string_view> names;
    for (const Values& values : values_) names.insert(values.list.name);
    return {names.begin(), names.end()};
}

}  // namespace assay
