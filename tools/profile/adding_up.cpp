// Adds up the counts of a profile: rows with equal keys become one, and rows get their final order.

#include "tools/profile/rows.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <numeric>

namespace assay {

namespace {

// Number of values kept per instruction when files are merged.
constexpr std::size_t kMostValues = 64;
// Fewer new rows than this take little memory and are added up at the end.
constexpr std::size_t kFewRows = std::size_t{1} << 16;

}  // namespace

void Profile::make_room() {
    if (rows_since_ <= rows_when_compacted_ + kFewRows) return;
    compact();
    if (bytes() > most_bytes_)
        throw Error(
            fmt::format("{}: the counts in the profile take more than {} bytes, which the counts "
                        "of no program do",
                        path_, most_bytes_));
}

std::size_t Profile::bytes() const {
    constexpr std::size_t kNodeBytes = 64;  // node of a map, with its key
    std::size_t values = 0;
    for (const Values& each : values_) values += each.list.values.size();
    return lines_.size() * sizeof(Line) + instructions_.size() * sizeof(Instruction) +
           places_.size() * (sizeof(Place) + kNodeBytes) + counts_.bytes() +
           sites_.size() * (sizeof(Site) + kNodeBytes) +
           contexts_.size() * (sizeof(Context) + kNodeBytes) +
           recursions_.size() * (sizeof(Recursion) + kNodeBytes) +
           (linkage_names_.size() + binaries_.size()) * kNodeBytes +
           calls_.size() * (sizeof(KnownCall) + sizeof(CallCosts) + kNodeBytes +
                            header_.events.size() * sizeof(std::uint64_t)) +
           (site_map_.size() + context_map_.size()) * sizeof(std::uint32_t) +
           values_.size() * sizeof(Values) + values * sizeof(events::HotValue);
}

void Profile::compact() {
    sort_rows(lines_);
    sort_rows(instructions_);
    if (contexts_came_again_ || has_equal(lines_) || has_equal(instructions_)) {
        CountStore sums;
        sums.set_columns(counts_.columns());
        add_up(lines_, sums);
        add_up(instructions_, sums);
        add_up_contexts(sums);
        counts_ = std::move(sums);
    }
    add_up_values();
    rows_when_compacted_ = lines_.size() + instructions_.size() + sites_.size() + contexts_.size() +
                           recursions_.size() + linkage_names_.size();
    for (const Values& values : values_) rows_when_compacted_ += 1 + values.list.values.size();
    rows_since_ = 0;
    contexts_came_again_ = false;
}

void Profile::add_up_contexts(CountStore& sums) {
    std::vector<std::uint64_t> counts(counts_.columns());
    for (Context& context : contexts_) {
        counts_.read(context.row, counts);
        context.row = sums.append(counts);
    }
}

template <typename Row>
void Profile::add_up(std::vector<Row>& rows, CountStore& sums) const {
    std::vector<std::uint64_t> sum(counts_.columns());
    std::size_t kept = 0;
    for (std::size_t begin = 0; begin < rows.size();) {
        std::fill(sum.begin(), sum.end(), 0);
        std::size_t end = begin;
        for (; end < rows.size() && key(rows[end]) == key(rows[begin]); ++end)
            counts_.add_to(sum, rows[end].row);
        rows[kept] = rows[begin];
        rows[kept++].row = sums.append(sum);
        begin = end;
    }
    rows.resize(kept);
}

void Profile::add_up_values() {
    // Keeps the order of equal keys: it determines which values a full list drops.
    if (!std::is_sorted(values_.begin(), values_.end(), comes_before<Values>))
        std::stable_sort(values_.begin(), values_.end(), comes_before<Values>);
    if (!has_equal(values_)) return;
    std::vector<Values> sums;
    for (Values& values : values_) {
        if (!sums.empty() && key(sums.back()) == key(values))
            events::merge(sums.back().list, values.list, kMostValues);
        else
            sums.push_back(std::move(values));
    }
    values_ = std::move(sums);
}

void Profile::finish() {
    groups_.finish();
    series_.finish();
    add_up_rows();
}

void Profile::add_up_rows() {
    sort_places();
    find_functions();
    source_files_.clear();
    if (keeps(parts::kFunctions))
        for (const Place& place : places_)
            source_files_.push_back(by_source_.file_id(text(place.file)));
    // A single file rarely has two rows with equal keys. Its rows then need no second store.
    compact();
    add_up_sites();
    index_rows();
}

// Adds up the rows of each line over all sites. A line with one site keeps its row.
void Profile::add_up_sites() {
    if (!has_sites()) return;
    std::vector<std::uint64_t> sum(counts_.columns());
    std::vector<Line> lines;
    for (auto begin = lines_.begin(); begin != lines_.end();) {
        const auto end = std::find_if(begin, lines_.end(), [&](const Line& line) {
            return line.place != begin->place || line.line != begin->line;
        });
        lines.push_back({begin->place, begin->line, 0, begin->row});
        if (end - begin > 1) {
            std::fill(sum.begin(), sum.end(), 0);
            for (; begin != end; ++begin) counts_.add_to(sum, begin->row);
            lines.back().row = counts_.append(sum);
        }
        begin = end;
    }
    lines_by_site_ = std::exchange(lines_, std::move(lines));
}

// Ranks of file names in alphabetical order, by the number of their string.
std::vector<std::uint32_t> Profile::ranks_of_files() const {
    std::vector<std::uint32_t> ranks(strings_.size());
    for (const Place& place : places_) ranks[place.file] = ranks[place.function_file] = 1;
    std::vector<Strings::Id> files;
    for (Strings::Id id = 0; id < ranks.size(); ++id)
        if (ranks[id] != 0) files.push_back(id);
    std::sort(files.begin(), files.end(),
              [&](Strings::Id a, Strings::Id b) { return text(a) < text(b); });
    for (std::uint32_t rank = 0; rank < files.size(); ++rank) ranks[files[rank]] = rank;
    return ranks;
}

void Profile::sort_places() {
    std::vector<std::uint32_t> order(places_.size()), numbers(places_.size());
    std::iota(order.begin(), order.end(), 0);
    // Compares files by rank. Comparing the texts is slow for millions of functions, because the
    // texts are scattered in memory.
    const std::vector<std::uint32_t> ranks = ranks_of_files();
    const auto comes_first = [&](std::uint32_t a, std::uint32_t b) {
        const auto place = [&](std::uint32_t index) {
            return std::tuple(ranks[places_[index].function_file], text(places_[index].function),
                              ranks[places_[index].file]);
        };
        return ranks[places_[a].function_file] != ranks[places_[b].function_file]
                   ? ranks[places_[a].function_file] < ranks[places_[b].function_file]
                   : place(a) < place(b);
    };
    std::sort(order.begin(), order.end(), comes_first);
    std::vector<Place> sorted;
    sorted.reserve(places_.size());
    for (const std::uint32_t place : order) {
        numbers[place] = static_cast<std::uint32_t>(sorted.size());
        sorted.push_back(places_[place]);
    }
    places_ = std::move(sorted);
    for (Line& line : lines_) line.place = numbers[line.place];
    for (Instruction& at : instructions_) at.place = numbers[at.place];
    for (Values& values : values_) values.place = numbers[values.place];
}

void Profile::find_functions() {
    functions_.clear();
    for (std::uint32_t i = 0; i < places_.size(); ++i) {
        const Place& place = places_[i];
        if (functions_.empty() || functions_.back().file != place.function_file ||
            functions_.back().name != place.function)
            functions_.push_back({place.function_file, place.function, i, i});
        functions_.back().end_place = i + 1;
    }
}

void Profile::index_rows() {
    place_lines_ = beginnings(lines_, places_.size());
    if (has_sites()) place_lines_by_site_ = beginnings(lines_by_site_, places_.size());
    place_instructions_ = beginnings(instructions_, places_.size());
    place_values_ = beginnings(values_, places_.size());
    functions_by_name_.clear();
    const auto lines_of = [&](std::uint32_t function) {
        return place_lines_[functions_[function].end_place] -
               place_lines_[functions_[function].first_place];
    };
    for (std::uint32_t i = 0; i < functions_.size(); ++i) {
        std::uint32_t& largest =
            functions_by_name_.try_emplace(functions_[i].name, i).first->second;
        if (lines_of(i) > lines_of(largest)) largest = i;
    }
    if (!has_contexts()) return;
    by_address_.resize(instructions_.size());
    std::iota(by_address_.begin(), by_address_.end(), 0);
    std::sort(by_address_.begin(), by_address_.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::tie(instructions_[a].object, instructions_[a].address) <
               std::tie(instructions_[b].object, instructions_[b].address);
    });
}

}  // namespace assay
