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

InstructionProfile::InstructionProfile(const std::string& path) {
    totals_ = events::read_events(path, *this).totals;
    if (rows_.empty())
        throw Error(
            fmt::format("{} has no counts of instructions: profile with --dump-instr=yes", path));
    std::stable_sort(rows_.begin(), rows_.end(), kByPlace);
    std::stable_sort(values_.begin(), values_.end(), kByPlace);
    add_up();
}

void InstructionProfile::start(const events::Header& header) {
    header_ = header;
    columns_ = header.events.size();
}

void InstructionProfile::location(const events::Location& location) {
    file_ = *names_.emplace(location.file).first;
    function_ = *names_.emplace(location.function).first;
}

void InstructionProfile::instruction(const Instruction& at, Counts counts) {
    add(at, counts);
}

// An instruction may have values and no counts.
void InstructionProfile::values(const Instruction& at, const events::Hotlist& list) {
    values_.push_back({at.object, at.address, list});
    add(at, std::vector<std::uint64_t>(columns_));
}

void InstructionProfile::add(const Instruction& at, Counts counts) {
    rows_.push_back({at.object, at.address, at.line, file_, function_, counts_.size() / columns_});
    counts_.insert(counts_.end(), counts.begin(), counts.end());
}

// Of one address there is more than one line where it is merged from several files, or where it
// has values.
void InstructionProfile::add_up() {
    auto last = rows_.begin();
    for (auto next = last + 1; next != rows_.end(); ++next) {
        if (place(*last) != place(*next)) {
            *++last = *next;
            continue;
        }
        std::uint64_t* const sum = &counts_[last->counts * columns_];
        for (std::size_t i = 0; i < columns_; ++i) sum[i] += counts_[next->counts * columns_ + i];
    }
    rows_.erase(last + 1, rows_.end());
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
