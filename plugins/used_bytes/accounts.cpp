#include "plugins/used_bytes/accounts.h"

#include "assay/client.h"

namespace used_bytes {

Accounts::Accounts(std::size_t places, std::optional<SectionChoice> choice)
    : sections_(std::move(choice)), stays_(places), slots_(1024, kNoPoint), by_arena_(1) {
    enter(0);
}

void Accounts::enter(std::uint32_t thread) {
    thread_ = thread;
    thread_usage_ = &threads_[thread];
    section_ = &section_of_[thread];
}

void Accounts::note(const trace_marker_t& marker) {
    switch (marker.operation) {
        case ASSAY_BEGIN_PHASE:
            *section_ = sections_.begin(*section_, marker.name, thread_);
            return;
        case ASSAY_END_PHASE:
            *section_ = sections_.end(*section_, marker.name);
            return;
        case TRACE_MARKER_THREAD_END:
            *section_ = sections_.end_all(*section_);
            return;
        case ASSAY_REGISTER_REGION:
            arenas_.add(marker.address, marker.bytes, marker.owner, marker.name);
            by_arena_.resize(arenas_.names().size());
            return;
        case ASSAY_UNREGISTER_REGION:
            arenas_.remove(marker.address);
            return;
        default:
            return;
    }
}

PointNumber Accounts::point(const Fetcher& by, std::uint32_t context) {
    std::size_t slot = slot_of(by, context);
    if (slots_[slot] != kNoPoint) return slots_[slot];
    if (2 * (points_.size() + 1) > slots_.size()) {
        grow();
        slot = slot_of(by, context);
    }
    slots_[slot] = static_cast<PointNumber>(points_.size());
    const auto [pattern, is_new] =
        pattern_numbers_.try_emplace(by, static_cast<std::uint32_t>(patterns_.size()));
    if (is_new) patterns_.emplace_back();
    points_.push_back({by, context, pattern->second, {}});
    return slots_[slot];
}

std::size_t Accounts::slot_of(const Fetcher& by, std::uint32_t context) const {
    const std::size_t mask = slots_.size() - 1;
    const std::uint64_t key = (std::uint64_t{by.instr} << 1 | by.code) << 32 | context;
    std::size_t slot = (key * 0x9E3779B97F4A7C15ULL >> 32) & mask;  // as in PageMap
    const auto is_other = [&](const Point& p) { return p.by != by || p.context != context; };
    while (slots_[slot] != kNoPoint && is_other(points_[slots_[slot]])) slot = (slot + 1) & mask;
    return slot;
}

void Accounts::grow() {
    slots_.assign(slots_.size() * 2, kNoPoint);
    for (PointNumber i = 0; i < points_.size(); ++i)
        slots_[slot_of(points_[i].by, points_[i].context)] = i;
}

void Accounts::fetched(std::size_t place, std::uint64_t line, std::uint64_t address,
                       PointNumber by) {
    Stay& stay = stays_[place];
    stay = {};
    if (!counts_) return;
    stay.section = *section_;
    sections_.fetched(*section_, line);
    if (!sections_.is_chosen(*section_)) return;
    stay.by = by;
    stay.thread = thread_;
    stay.arena = arenas_.find(address);
    stay.line = lines_.number(line);

    LineHistory& history = lines_[stay.line];
    Arena& arena = by_arena_[stay.arena];
    if (history.fetches_in_arena != 0 && history.arena != stay.arena) {
        ++by_arena_[history.arena].earlier[history.fetches_in_arena];
        history.fetches_in_arena = 0;
    }
    if (history.fetches_in_arena != 0) arena.most_fetched.fetched_again(line, history, by);
    const bool again = history.fetches != 0;
    const auto charge = [](Usage& usage, bool is_again) {
        ++usage.lines;
        usage.again += is_again;
    };
    charge(points_[by].usage, again);
    charge(total_, again);
    if (points_[by].by.code) charge(code_, again);
    charge(*thread_usage_, again);
    charge(arena.usage, history.fetches_in_arena != 0);
    history.arena = stay.arena;
    history.fetched_by = by;
    history.evicted_by = kNoPoint;
    ++history.fetches;
    ++history.fetches_in_arena;
}

void Accounts::evicted(std::size_t place, const Use& used, PointNumber by) {
    const Stay& stay = stays_[place];
    gone(stay, used);
    if (stay.by != kNoPoint) lines_[stay.line].evicted_by = by;
}

PointNumber Accounts::evicted_last(std::uint64_t line) const {
    const LineHistory* history = lines_.find(line);
    return history ? history->evicted_by : kNoPoint;
}

void Accounts::left(std::size_t place, const Use& used) {
    gone(stays_[place], used);
}

void Accounts::gone(const Stay& stay, const Use& use) {
    const std::uint32_t used = use.bytes;
    sections_.used(stay.section, used);
    if (stay.by == kNoPoint) return;
    patterns_[points_[stay.by].pattern].add(use.parts);
    points_[stay.by].usage.used += used;
    total_.used += used;
    if (points_[stay.by].by.code) code_.used += used;
    (stay.thread == thread_ ? *thread_usage_ : threads_[stay.thread]).used += used;
    by_arena_[stay.arena].usage.used += used;
}

}  // namespace used_bytes
