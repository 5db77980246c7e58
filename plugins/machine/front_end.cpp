#include "plugins/machine/front_end.h"

#include "plugins/machine/describe.h"
#include "plugins/machine/needed_records.h"
#include "plugins/machine/prefetcher.h"
#include "plugins/machine/replacement.h"

#include <bit>
#include <optional>

namespace machine {
namespace {

// The number of sets for which the most recent lines of a first cache are kept: a second reference
// to such a line changes nothing there. 0 if it may change something. Fewer sets than in the cache
// are also correct, because the most recent line of several sets is the most recent one of its own
// set.
std::uint64_t sets_of_recent_lines(const Machine& machine, std::uint32_t number) {
    constexpr std::uint64_t kMost = 1024;
    const Cache& cache = machine.caches[number];
    if (!is_first(machine, number) || !forgets_repetition(cache.replacement)) return 0;
    if (cache.holds != Holds::kInstructions && !(cache.write_allocate && cache.write_back))
        return 0;
    const std::uint64_t sets = cache.sets(machine.line);
    if (cache.classify || cache.hash != Hash::kModulus || !std::has_single_bit(sets)) return 1;
    return std::min(sets, kMost);
}

// In an LRU cache with more than one way, a prefetched line does not become the most recent one. In
// other caches it may become the most recent line, or replace it.
bool keeps_most_recent(const Cache& cache) {
    return cache.replacement.policy == "lru" && cache.ways > 1;
}

// The lines that a prefetcher requests after a reference to line 0; no value if that is unknown.
std::optional<std::vector<std::uint64_t>> asked_for(const Prefetch& prefetch) {
    std::vector<std::uint64_t> lines;
    if (prefetch.kind != "next-line" && prefetch.kind != "stream") return std::nullopt;
    for (std::uint64_t i = 0; i < prefetch.degree; ++i) {
        lines.push_back(prefetch.distance + i);
        if (prefetch.kind == "stream") lines.push_back(-lines.back());
    }
    return lines;
}

}  // namespace

FrontEnd::FrontEnd(const Machine& machine, const Columns& columns)
    : machine_(machine),
      columns_(columns),
      line_shift_(static_cast<unsigned>(std::countr_zero(machine.line))),
      tells_sharing_(machine.tells_sharing()),
      words_(machine.line),
      translation_(machine) {}

void FrontEnd::forget(std::uint32_t core) {
    translation_.forget(core);
    cores_.erase(core);
    for (std::uint32_t cache = 0; cache < machine_.caches.size(); ++cache)
        if (machine_.caches[cache].of == Of::kCore)
            for (std::uint32_t i = 0; i < machine_.caches[cache].prefetch.size(); ++i)
                strides_.erase({cache, core, i});
}

void FrontEnd::begin(std::uint32_t number, std::size_t records, bool sees_all) {
    core_ = &core(number);
    sees_all_ = sees_all;
    skips_repeated_ = core_->skips_repeated && !sees_all;
    fetched_ = kNoLine;
    for (const auto& recent : core_->recent) recent->forget();
    for (const bool data : {false, true}) {
        std::vector<Touch>& room = touches_[data];
        if (room.size() < 2 * records + 1) room.resize(2 * records + 1);
        translated_[data] = next_[data] = room.data();
    }
}

void FrontEnd::translate_by(std::uint32_t core, PageSizes& sizes, Steps& steps) {
    translate(steps);
    fetched_ = kNoLine;
    translation_.translate_by(core, sizes);
}

// References that hit in the first buffers need no more work. The others go on in their order.
void FrontEnd::translate(Steps& steps) {
    if (translated_[0] == next_[0] && translated_[1] == next_[1]) return;
    for (const bool data : {false, true}) {
        missed_[data].clear();
        CoreTranslation* const buffers = core_->paths[data].translation;
        if (buffers)
            for (const Touch* touch = translated_[data]; touch != next_[data]; ++touch)
                if (buffers->misses_first(data, touch->address)) [[unlikely]]
                    missed_[data].push_back(touch);
        translated_[data] = next_[data];
    }
    auto fetch = missed_[0].begin(), data = missed_[1].begin();
    while (fetch != missed_[0].end() || data != missed_[1].end())
        if (data == missed_[1].end() ||
            (fetch != missed_[0].end() && (*fetch)->record < (*data)->record))
            translate_further(false, **fetch++, steps);
        else
            translate_further(true, **data++, steps);
}

void FrontEnd::translate_further(bool data, const Touch& touch, Steps& steps) {
    core_->paths[data].translation->translate_further(
        data, touch.address,
        [&](std::uint32_t tlb) {
            steps.counts.push_back({touch.record, columns_.tlbs[tlb]});
        },
        [&] {
            steps.counts.push_back({touch.record, columns_.walks});
        });
}

// Does the work of look_at() for many references, one step after the other, which is faster.
template <bool kForgets>
void FrontEnd::find_needed(const Path& path, const Touch* begin, const Touch* end,
                           std::span<const Wish> wishes, Steps& steps) const {
    RecentLines& recent = *path.recent;
    std::uint32_t group = 0;
    std::uint64_t needed = 0;  // records of the group, as bits
    for (const Touch* touch = begin; touch != end; ++touch) {
        if (touch->record / 64 != group) {
            steps.need_of(group, needed);
            group = touch->record / 64;
            needed = 0;
        }
        const std::uint64_t line = touch->address >> line_shift_;
        const bool is_new = recent.refer(line, words(*touch));
        needed |= std::uint64_t{is_new} << touch->record % 64;
        if constexpr (kForgets) {
            for (const std::uint64_t offset : path.forgets) recent.forget_if(is_new, line + offset);
            while (!wishes.empty() && wishes[0].record == touch->record &&
                   wishes[0].behind == (line & kMostLine)) {
                if (path.forgets_wishes) recent.forget_if(true, wishes[0].line);
                wishes = wishes.subspan(1);
            }
        }
    }
    if (begin != end) steps.need_of(group, needed);
}

void FrontEnd::find_steps(bool data, Steps& steps) const {
    const Path& path = core_->paths[data];
    const Touch* const begin = touches_[data].data();
    const Touch* const end = next_[data];
    const std::size_t before = steps.wishes.size();
    if (!path.strides.empty())
        for (const Touch* touch = begin; touch != end; ++touch) wish(path, *touch, steps);
    const std::span<const Wish> wishes = std::span<const Wish>(steps.wishes).subspan(before);
    if (!path.recent)
        for (const Touch* touch = begin; touch != end; ++touch) steps.need(touch->record);
    else if (path.forgets.empty() && !path.forgets_wishes)
        find_needed<false>(path, begin, end, wishes, steps);
    else
        find_needed<true>(path, begin, end, wishes, steps);
}

inline void FrontEnd::wish(const Path& path, const Touch& touch, Steps& steps) const {
    const std::uint64_t line = touch.address >> line_shift_;
    for (const Strides& strides : path.strides)
        strides.table->reference(touch.pc, touch.address, [&](std::uint64_t wanted) {
            steps.wishes.push_back({line & kMostLine, wanted, strides.prefetcher, touch.record});
            // A prefetch after the first line may replace the second line.
            if (touch.crosses) steps.need(touch.record);
        });
}

// For fetches and data that go to one cache.
void FrontEnd::look_at(const Path& path, const Touch& touch, Steps& steps) const {
    const std::size_t before = steps.wishes.size();
    wish(path, touch, steps);
    if (path.recent)
        find_needed<true>(path, &touch, &touch + 1,
                          std::span<const Wish>(steps.wishes).subspan(before), steps);
    else
        steps.need(touch.record);
}

void FrontEnd::finish(Steps& steps) {
    translate(steps);
    for (const bool data : {false, true})
        for (const Touch* touch = touches_[data].data(); sees_all_ && touch != next_[data]; ++touch)
            steps.need(touch->record);
    if (!core_->is_one_path) {
        for (const bool data : {false, true})
            if (core_->paths[data].has_cache) find_steps(data, steps);
        return;
    }
    const Touch* at[2] = {touches_[0].data(), touches_[1].data()};
    while (at[0] != next_[0] || at[1] != next_[1]) {
        const bool data = at[0] == next_[0] || (at[1] != next_[1] && at[1]->record < at[0]->record);
        look_at(core_->paths[data], *at[data]++, steps);
    }
}

FrontEnd::Core& FrontEnd::core(std::uint32_t number) {
    const auto [at, is_new] = cores_.try_emplace(number);
    Core& made = at->second;
    if (!is_new) return made;
    const std::uint32_t first[2] = {first_cache(machine_, Holds::kInstructions),
                                    first_cache(machine_, Holds::kData)};
    for (const bool data : {false, true}) {
        Path& path = made.paths[data];
        if (translation_.translates(data)) path.translation = &translation_.of(number);
        const std::uint32_t cache = first[data];
        if (cache == kMemory) continue;
        path.has_cache = true;
        find_recent_lines(made, data, cache);
        for (std::uint32_t i = 0; i < machine_.caches[cache].prefetch.size(); ++i)
            if (is_of_front_end(machine_, cache, machine_.caches[cache].prefetch[i]))
                path.strides.push_back({&strides(number, cache, i), i});
    }
    // With two caches, the wishes of both would have to be merged in order.
    made.is_one_path = first[0] == first[1] || !made.paths[0].strides.empty();
    const Path& fetches = made.paths[0];
    made.skips_repeated = !made.is_one_path && fetches.recent != nullptr &&
                          fetches.forgets.empty() && !fetches.forgets_wishes &&
                          buffers_forget_repetition(machine_);
    return made;
}

void FrontEnd::find_recent_lines(Core& core, bool data, std::uint32_t number) {
    Path& path = core.paths[data];
    const Cache& cache = machine_.caches[number];
    const std::uint64_t sets = sets_of_recent_lines(machine_, number);
    if (sets == 0) return;
    for (const Prefetch& prefetch : cache.prefetch) {
        const bool strides = is_of_front_end(machine_, number, prefetch);
        if (sees_hits(prefetch) && !strides) return;
        if (keeps_most_recent(cache)) continue;
        const auto lines = asked_for(prefetch);
        if (!strides && !lines) return;
        if (strides)
            path.forgets_wishes = true;
        else
            path.forgets.insert(path.forgets.end(), lines->begin(), lines->end());
    }
    if (data && core.paths[0].recent && number == first_cache(machine_, Holds::kInstructions)) {
        path.recent = core.paths[0].recent;
        return;
    }
    core.recent.push_back(std::make_unique<RecentLines>(sets));
    path.recent = core.recent.back().get();
}

// Without these, the driver's own filter is enough.
bool FrontEnd::is_useful() const {
    if (!machine_.tlbs.empty() || machine_.tells_sharing()) return true;
    for (std::uint32_t i = 0; i < machine_.caches.size(); ++i)
        for (const Prefetch& prefetch : machine_.caches[i].prefetch)
            if (is_of_front_end(machine_, i, prefetch)) return true;
    return false;
}

StrideTable& FrontEnd::strides(std::uint32_t core, std::uint32_t cache, std::uint32_t prefetcher) {
    const Cache& shape = machine_.caches[cache];
    const std::uint32_t instance = shape.of == Of::kCore      ? core
                                   : shape.of == Of::kCluster ? machine_.cluster_of(core)
                                                              : 0;
    const Prefetch& how = shape.prefetch[prefetcher];
    return strides_
        .try_emplace({cache, instance, prefetcher}, how.degree, how.distance, line_shift_)
        .first->second;
}

}  // namespace machine
