#include "tools/profile/profile.h"

#include "framework/events/file.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace assay {

namespace {

// Number of values kept per instruction when files are merged.
constexpr std::size_t kMostValues = 64;
// Fewer new rows than this take little memory and are added up at the end.
constexpr std::size_t kFewRows = std::size_t{1} << 16;
// Limits the rows of a location that wait for their sites. No function has so many.
constexpr std::size_t kMostRowsOfALocation = std::size_t{1} << 22;

auto key(const Profile::Line& line) {
    return std::tie(line.place, line.line, line.site);
}
auto key(const Profile::Instruction& at) {
    return std::tie(at.place, at.line, at.site, at.object, at.address);
}
auto key(const Profile::Values& values) {
    return std::tie(values.place, values.line, values.object, values.address, values.list.name);
}
auto key(const SourceLine& line) {
    return std::tie(line.line);
}
auto key(const SourceInstruction& at) {
    return std::tie(at.line, at.object, at.address);
}

// Limits the depth of inlined calls. Symbolizers report no deeper ones.
constexpr std::uint32_t kMostDepth = 256;

template <typename Row>
bool comes_before(const Row& a, const Row& b) {
    return key(a) < key(b);
}

// Sorts in place, because rows may take most of the memory. The order of equal keys does not
// matter, because their rows are added up.
template <typename Row>
void sort_rows(std::vector<Row>& rows) {
    if (!std::is_sorted(rows.begin(), rows.end(), comes_before<Row>))
        std::sort(rows.begin(), rows.end(), comes_before<Row>);
}

// True if sorted rows have equal keys.
template <typename Row>
bool has_equal(const std::vector<Row>& rows) {
    const auto same = [](const Row& a, const Row& b) { return key(a) == key(b); };
    return std::adjacent_find(rows.begin(), rows.end(), same) != rows.end();
}

// Index of the first row of each place, and the end of the last place. Rows are sorted by place.
template <typename Row>
std::vector<std::size_t> beginnings(const std::vector<Row>& rows, std::size_t places) {
    std::vector<std::size_t> result;
    result.reserve(places + 1);
    for (std::size_t row = 0; row < rows.size(); ++row)
        while (result.size() <= rows[row].place) result.push_back(row);
    result.resize(places + 1, rows.size());
    return result;
}

template <typename Row>
std::span<const Row> rows_of(const std::vector<Row>& rows, const std::vector<std::size_t>& begins,
                             std::uint32_t place) {
    return std::span(rows).subspan(begins[place], begins[place + 1] - begins[place]);
}

}  // namespace

// --- Reading

void Profile::add_file(const std::string& path, Side side, Groups::WholeOf whole) {
    path_ = path;
    side_ = side;
    signed_.set(side);
    whole_of_ = std::move(whole);
    const bool can_be_read_again = events::can_be_read_again(path);
    taken_ = kept_;
    if (keeps(parts::kFunctions) && !can_be_read_again)
        taken_ |= parts::kLines | parts::kInstructions;
    has_instructions_ = false;
    events::FileSummary read = events::read_events(path, *this, accept_, choice_);
    add_totals(read.totals);
    paths_.push_back(path);
    if (!has_instructions_) without_instructions_.push_back(path);
    if (keeps(parts::kGroups))
        groups_.end_file([&](std::uint64_t context) { return callers_of(context); });
    if (keeps(parts::kFunctions))
        read_.push_back({path, side, std::move(read.totals), can_be_read_again});
    // The two sides of a difference usually are different builds.
    if (!header_.difference) heads_.compare_builds();
    make_room();
}

void Profile::add_totals(Counts totals) {
    if (side_ == Side::kOld) header_.difference = true;
    for (std::size_t i = 0; i < totals_.size(); ++i) {
        const auto fail = [&](std::string_view what) {
            throw Error(fmt::format("{}: with it, the {} of {} exceeds 64 bits", path_, what,
                                    header_.events[i].name));
        };
        if (!header_.difference) {
            if (__builtin_add_overflow(totals_[i], totals[i], &totals_[i])) fail("total");
            continue;
        }
        // Counts of profiles have 64 bits; counts of differences have 63 bits and a sign.
        constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
        if (!of_differences_ && totals[i] > kMost) fail("difference");
        std::int64_t sum = 0;
        if (__builtin_add_overflow(static_cast<std::int64_t>(totals_[i]),
                                   static_cast<std::int64_t>(signed_(totals)[i]), &sum))
            fail("total");
        totals_[i] = static_cast<std::uint64_t>(sum);
    }
}

void Profile::read_details(const Details& details) {
    taken_ = parts::kLines | (details.instructions ? parts::kInstructions : 0);
    taken_ &= ~kept_;
    if (taken_ == 0) return;
    details_ = &details;
    beside_ = nullptr;
    // finish() has sorted the places.
    for (std::uint32_t i = 0; i < places_.size(); ++i) place_indices_[places_[i]] = i;
    for (const File& file : read_) {
        if (!file.can_be_read_again) continue;
        path_ = file.path;
        signed_.set(file.side);
        if (events::read_events(path_, *this, events::Accept::kDifferences, choice_).totals !=
            file.totals)
            throw Error(fmt::format("{} was changed while it was being read", path_));
    }
    details_ = nullptr;
    add_up_rows();
}

void Profile::start(const events::Header& header) {
    context_map_ = site_map_ = {0};
    skips_ = false;
    if (details_) return heads_.read_again(header);
    heads_.add(path_, header);
    if (paths_.empty()) {
        start_first(header);
    } else {
        events::check_same_events(header, path_, header_, paths_.front());
        if (header.difference != of_differences_)
            throw Error(
                fmt::format("one of {} and {} is a profile, and the other is a difference of two "
                            "profiles; combine either profiles or differences",
                            paths_.front(), path_));
    }
    if (beside_) beside_->start(header);
    if (keeps(parts::kSeries)) series_.add(path_, header.series);
    if (keeps(parts::kGroups)) groups_.begin_file(path_, header, std::exchange(whole_of_, {}));
}

void Profile::start_first(const events::Header& header) {
    if (header.difference && side_ == Side::kOld)
        throw Error(fmt::format(
            "{} is a difference; only profiles can be compared, see assay diff -o", path_));
    if (same_events_as_ != nullptr)
        events::check_same_events(header, path_, same_events_as_->header_,
                                  same_events_as_->paths_.front(),
                                  "name events that both have with --show");
    header_ = header;
    if (choice_.names.empty()) choice_ = events::choice_of(header.events);
    of_differences_ = header.difference;
    const std::vector<std::uint64_t> zero(header.events.size());
    totals_ = context_totals_ = zero;
    by_source_.set_columns(zero.size());
    counts_.set_columns(zero.size());
    contexts_[0].row = counts_.append(zero);
}

void Profile::turns_into_difference() {
    if (details_) return;
    if (side_ == Side::kOld)
        throw Error(fmt::format("{} has negative counts; only profiles can be compared", path_));
    if (!paths_.empty())
        throw Error(
            fmt::format("{} has negative counts, so it is a difference of two profiles, and {} is "
                        "a profile; combine either profiles or differences",
                        path_, paths_.front()));
    of_differences_ = header_.difference = true;
}

void Profile::check_same_events(const Profile& other) const {
    events::check_same_events(header_, paths_.front(), other.header_, other.paths_.front());
}

void Profile::object(const events::Object& object) {
    heads_.add_object(object);
}

std::size_t Profile::PlaceHash::operator()(const Place& place) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t part : {place.file, place.function_file, place.function})
        hash = (hash ^ part) * 0x9E37'79B9'7F4A'7C15ULL;
    return hash ^ hash >> 32;
}

void Profile::location(const events::Location& location) {
    skips_ = false;
    if (details_) {
        const std::uint32_t file = by_source_.file_id(location.file);
        skips_ = file >= details_->files.size() || !details_->files[file];
    }
    if (takes(parts::kFunctions)) by_source_.location(location, side_);
    if (beside_) beside_->location(location);
    if (takes(parts::kGroups)) groups_.location(location);
    if (!takes(parts::kRows)) return;
    make_room();
    const Place place = {strings_.id(location.file), strings_.id(location.function_file),
                         strings_.id(location.function)};
    const auto [entry, is_new] =
        place_indices_.try_emplace(place, static_cast<std::uint32_t>(places_.size()));
    if (is_new) places_.push_back(place);
    place_ = entry->second;
    next_line_ = lines_.size();
    next_instruction_ = instructions_.size();
}

void Profile::line(std::uint32_t line, Counts unsigned_counts) {
    const Counts counts = signed_(unsigned_counts);
    if (takes(parts::kFunctions)) by_source_.add(counts);
    if (beside_) beside_->line(line, counts);
    if (takes(parts::kGroups)) groups_.line(line, counts);
    if (!takes(parts::kLines)) return;
    if (!sites_may_follow()) make_room();
    check_location(lines_.size() - std::min(next_line_, lines_.size()));
    ++rows_since_;
    lines_.push_back({place_, line, 0, counts_.append(counts)});
}

void Profile::instruction(const events::Handler::Instruction& at, Counts counts) {
    if (!takes(parts::kInstructions)) return;
    has_instructions_ = true;
    if (!sites_may_follow()) make_room();
    check_location(instructions_.size() - std::min(next_instruction_, instructions_.size()));
    ++rows_since_;
    instructions_.push_back({place_, at.line, 0, heads_.object(at.object), at.address,
                             counts_.append(signed_(counts))});
}

void Profile::call(const Call& call, Counts inclusive) {
    if (beside_) beside_->call(call, inclusive);
    if (!takes(parts::kContexts)) return;
    make_room();
    ++rows_since_;
    const Place& caller = places_[place_];
    CallCosts& costs = calls_[{caller.function_file, caller.function, call.line,
                               strings_.id(call.callee_file), strings_.id(call.callee)}];
    costs.inclusive.resize(inclusive.size());
    bool overflow = __builtin_add_overflow(costs.number, call.calls, &costs.number);
    for (std::size_t i = 0; i < inclusive.size(); ++i)
        overflow |= __builtin_add_overflow(costs.inclusive[i], inclusive[i], &costs.inclusive[i]);
    if (overflow)
        throw Error(fmt::format("{}: the calls of {} exceed 64 bits", path_, call.callee));
}

void Profile::check_location(std::size_t rows) const {
    if (rows >= kMostRowsOfALocation && sites_may_follow())
        throw Error(fmt::format("{}: {} has more than {} lines of counts, which no function has",
                                path_, text(places_[place_].function), kMostRowsOfALocation));
}

void Profile::values(const events::Handler::Instruction& at, const events::Hotlist& list) {
    if (beside_) beside_->values(at, list);
    if (!takes(parts::kValues)) return;
    has_instructions_ = true;
    if (!sites_may_follow()) make_room();
    rows_since_ += 1 + list.values.size();
    values_.push_back({place_, at.line, heads_.object(at.object), at.address, list});
}

void Profile::site(const events::Site& site) {
    if (beside_) beside_->site(site);
    if (!takes(parts::kLines | parts::kInstructions)) return;
    make_room();
    ++rows_since_;
    const std::uint32_t parent = site_map_[site.parent];
    const Site added = {parent, site.line, strings_.id(site.file), strings_.id(site.function),
                        sites_[parent].depth + 1};
    if (added.depth > kMostDepth)
        throw Error(
            fmt::format("{}: code inlined through more than {} calls, which no compiler "
                        "makes",
                        path_, kMostDepth));
    const auto [entry, is_new] =
        site_indices_.try_emplace({added.parent, added.line, added.file, added.function},
                                  static_cast<std::uint32_t>(sites_.size()));
    if (is_new) sites_.push_back(added);
    site_map_.push_back(entry->second);
}

void Profile::line_sites(std::uint32_t site, std::uint64_t count) {
    if (beside_) beside_->line_sites(site, count);
    if (!takes(parts::kLines)) return;
    if (site == 0) next_line_ += count;  // these rows keep their site 0
    for (; site != 0 && count != 0; --count) lines_[next_line_++].site = site_map_[site];
}

void Profile::instruction_sites(std::uint32_t site, std::uint64_t count) {
    if (!takes(parts::kInstructions)) return;
    if (site == 0) next_instruction_ += count;
    for (; site != 0 && count != 0; --count)
        instructions_[next_instruction_++].site = site_map_[site];
}

void Profile::group(const events::Group& group) {
    if (takes(parts::kGroups)) groups_.add(group);
}

void Profile::counts_of(std::uint32_t group, std::uint32_t line, Counts counts) {
    if (takes(parts::kGroups)) groups_.add_part(group, line, counts);
}

void Profile::binary(std::string_view function, std::uint32_t object) {
    if (!takes(parts::kLines | parts::kFunctions)) return;
    const std::uint32_t added = heads_.object(object);
    const auto [known, is_new] = binaries_.try_emplace(strings_.id(function), added);
    if (!is_new) known->second = std::min(known->second, added);
}

void Profile::linkage(std::string_view function, std::string_view name) {
    if (!takes(parts::kLines)) return;
    if (!sites_may_follow()) make_room();
    ++rows_since_;
    const Strings::Id added = strings_.id(name);
    const auto [known, is_new] = linkage_names_.try_emplace(strings_.id(function), added);
    if (!is_new && name < text(known->second)) known->second = added;
}

// Contexts follow all sites.
void Profile::stack(const events::Stack& stack, Counts counts) {
    if (beside_) beside_->stack(stack, counts);
    if (!takes(parts::kContexts)) return;
    make_room();
    ++rows_since_;
    for (std::size_t i = 0; i < counts.size(); ++i) context_totals_[i] += counts[i];
    const Context context = {context_map_[stack.parent],
                             stack.kind,
                             events::has_place(stack.kind) ? heads_.object(stack.object) : 0,
                             stack.address,
                             stack.line,
                             strings_.id(stack.function),
                             CountStore::Row{}};
    const auto [entry, is_new] =
        context_indices_.try_emplace({context.parent, context.kind, context.object, context.address,
                                      context.line, context.function},
                                     static_cast<std::uint32_t>(contexts_.size()));
    context_map_.push_back(entry->second);
    if (is_new) {
        contexts_.push_back(context);
        contexts_.back().row = counts_.append(counts);
    } else {
        contexts_came_again_ = true;
        std::vector<std::uint64_t> sum(counts.begin(), counts.end());
        CountStore::Row& row = contexts_[entry->second].row;
        counts_.add_to(sum, row);
        row = counts_.append(sum);
    }
}

void Profile::calls(std::uint32_t context, std::uint64_t number) {
    if (beside_) beside_->calls(context, number);
    if (!takes(parts::kContexts)) return;
    counts_calls_ = true;
    contexts_[context_map_[context]].calls += number;
}

void Profile::recursion(const events::Recursion& recursion, std::uint64_t number) {
    if (beside_) beside_->recursion(recursion, number);
    if (!takes(parts::kContexts)) return;
    make_room();
    ++rows_since_;
    recursions_[{context_map_[recursion.context], context_map_[recursion.caller],
                 heads_.object(recursion.object), recursion.address, recursion.line}] += number;
}

void Profile::check_instructions() const {
    if (!without_instructions_.empty())
        throw Error(fmt::format("{} has no counts of instructions: profile with --dump-instr=yes",
                                without_instructions_.front()));
}

std::vector<std::string> Profile::callers_of(std::uint64_t context) const {
    std::vector<std::string> callers;
    if (context >= context_map_.size()) return callers;
    for (std::uint32_t at = context_map_[context]; at != 0 && callers.size() < Groups::kMostCallers;
         at = contexts_[at].parent)
        callers.emplace_back(text(contexts_[at].function));
    return callers;
}

// --- Adding up

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

// --- Looking up

namespace {

// Sorts rows, and adds up rows with equal keys.
template <typename Row>
std::vector<Row> sums_of(std::vector<Row> rows) {
    std::sort(rows.begin(), rows.end(), comes_before<Row>);
    std::vector<Row> sums;
    for (Row& row : rows) {
        if (!sums.empty() && key(sums.back()) == key(row))
            add_counts(sums.back().counts, row.counts);
        else
            sums.push_back(std::move(row));
    }
    return sums;
}

}  // namespace

template <typename Use>
void Profile::for_each_place_in(std::uint32_t file, const Use& use) const {
    for (std::uint32_t place = 0; place < places_.size(); ++place)
        if (source_files_[place] == file) use(place);
}

std::vector<std::uint64_t> Profile::counts_of(CountStore::Row row) const {
    std::vector<std::uint64_t> counts(counts_.columns());
    counts_.read(row, counts);
    return counts;
}

std::vector<SourceLine> Profile::source_lines(std::uint32_t file) const {
    std::vector<SourceLine> rows;
    for_each_place_in(file, [&](std::uint32_t place) {
        for (const Line& line : lines(place)) rows.push_back({line.line, counts_of(line.row)});
    });
    return sums_of(std::move(rows));
}

std::vector<SourceInstruction> Profile::source_instructions(std::uint32_t file) const {
    std::vector<SourceInstruction> rows;
    for_each_place_in(file, [&](std::uint32_t place) {
        for (const Instruction& at : instructions(place))
            rows.push_back({at.line, at.object, at.address, counts_of(at.row)});
    });
    return sums_of(std::move(rows));
}

std::span<const Profile::Line> Profile::lines(std::uint32_t place) const {
    return rows_of(lines_, place_lines_, place);
}

std::span<const Profile::Line> Profile::lines_by_site(std::uint32_t place) const {
    return has_sites() ? rows_of(lines_by_site_, place_lines_by_site_, place) : lines(place);
}

std::vector<std::uint32_t> Profile::sites_to(std::uint32_t site) const {
    std::vector<std::uint32_t> path;
    for (; site != 0; site = sites_[site].parent) path.push_back(site);
    std::reverse(path.begin(), path.end());
    return path;
}

std::span<const Profile::Instruction> Profile::instructions(std::uint32_t place) const {
    return rows_of(instructions_, place_instructions_, place);
}

std::optional<std::uint32_t> Profile::function_named(Strings::Id name) const {
    const auto found = functions_by_name_.find(name);
    return found == functions_by_name_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint32_t> Profile::binary_of(Strings::Id function) const {
    const auto found = binaries_.find(function);
    return found == binaries_.end() ? std::nullopt : std::optional(found->second);
}

std::string_view Profile::linkage_name(Strings::Id function) const {
    const auto found = linkage_names_.find(function);
    return found == linkage_names_.end() ? std::string_view() : text(found->second);
}

std::vector<std::pair<std::string_view, std::string_view>> Profile::linkage_names() const {
    std::vector<std::pair<std::string_view, std::string_view>> names;
    names.reserve(linkage_names_.size());
    for (const auto& [function, name] : linkage_names_)
        names.emplace_back(text(function), text(name));
    std::sort(names.begin(), names.end());
    return names;
}

std::uint32_t Profile::call_line(const Context& context) const {
    if (context.line != 0 || !events::has_place(context.kind)) return context.line;
    const Instruction* const at = instruction_at(context.object, context.address);
    return at ? at->line : 0;
}

std::span<const Profile::Values> Profile::values(std::uint32_t place) const {
    return rows_of(values_, place_values_, place);
}

const Profile::Instruction* Profile::instruction_at(std::uint32_t object,
                                                    std::uint64_t address) const {
    const auto found = std::lower_bound(
        by_address_.begin(), by_address_.end(), std::tuple(object, address),
        [&](std::uint32_t index, const std::tuple<std::uint32_t, std::uint64_t>& wanted) {
            return std::tuple(instructions_[index].object, instructions_[index].address) < wanted;
        });
    if (found == by_address_.end()) return nullptr;
    const Instruction& at = instructions_[*found];
    return at.object == object && at.address == address ? &at : nullptr;
}

}  // namespace assay
