#include "tools/profile/profile.h"

#include "framework/events/file.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <limits>

namespace assay {

namespace {

// Limits the rows of a location that wait for their sites. No function has so many.
constexpr std::size_t kMostRowsOfALocation = std::size_t{1} << 22;

// Limits the depth of inlined calls. Symbolizers report no deeper ones.
constexpr std::uint32_t kMostDepth = 256;

}  // namespace

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
                                  "give files instead of pipes to compare only the events of both");
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

}  // namespace assay
