#include "framework/driver/shared/object_runs.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace assay::driver {

using trace::MemoryUse;

void ObjectRuns::begin(const trace::Spec& spec, trace::ThreadSlot* slot) {
    if (!trace::leaves_out_objects(spec)) return;
    regions_ = std::make_unique<ObjectRegions>();
    static_assert(sizeof slot->cursor == sizeof *regions_->cursor);
    regions_->cursor = reinterpret_cast<volatile std::uint64_t*>(&slot->cursor);
    regions_->runs = reinterpret_cast<trace::ObjectRun*>(reinterpret_cast<unsigned char*>(slot) +
                                                         trace::kRunsOffset);
    for (std::uint32_t number = ObjectRegions::kMost; --number != 0;) free_.push_back(number);
}

std::uint32_t ObjectRuns::run_of(std::uint32_t site) {
    if (runs_of_sites_.size() <= site) runs_of_sites_.resize(site + std::size_t{1}, kNone);
    std::uint32_t& run = runs_of_sites_[site];
    if (run == kNone && count_ < trace::kMaxRuns) run = count_++;
    return run;
}

void ObjectRuns::give_up(std::uint32_t site) {
    trace::ObjectRun& run = regions_->runs[known_run_of(site)];
    given_up_.insert(known_run_of(site));
    run.start = trace::ObjectRun::kNever;
    run.bytes = 0;
    if (run.left_out == 0) return;
    ended_.push_back(trace::end_of(run));
    run.left_out = 0;
}

std::vector<trace_record_t> ObjectRuns::take_ended() {
    return std::exchange(ended_, {});
}

void ObjectRuns::change(const trace::AllocationEntry& entry, const Append& append) {
    if (!active()) return;
    const Range range{entry.address, entry.address + entry.bytes};
    constexpr Range kAll{0, UINT64_MAX};
    if (range.end < range.start) return;
    switch (entry.use) {
        case MemoryUse::kMoved:
            give_back(entry.before, append);
            [[fallthrough]];
        case MemoryUse::kAllocated:
            return allocate(range, append);
        case MemoryUse::kFreed:
            return give_back(entry.address, append);
        case MemoryUse::kMapped:
            clear(range, Variables::kKeep, append);
            if (entry.bytes >= least_ && !is_of_file(range) && !had_blocks(range))
                add(range, false);
            return;
        case MemoryUse::kFile:
            return map_file(range, append);
        case MemoryUse::kUnmapped:
            std::erase_if(files_, [&](const Range& file) {
                return range.start <= file.start && file.start < range.end;
            });
            return clear(range, Variables::kDrop, append);
        case MemoryUse::kBreak:
            return clear(range, Variables::kKeep, append);
        case MemoryUse::kStack:
            return clear({entry.address - 1, entry.address}, Variables::kKeep, append);
        case MemoryUse::kThreadPointer:
            return clear(kAll, Variables::kKeep, append);
        case MemoryUse::kRemapped:
            clear({entry.before, entry.before + std::max<std::uint64_t>(entry.bytes, 1)},
                  Variables::kDrop, append);
            return clear(range, Variables::kDrop, append);
    }
}

void ObjectRuns::stop(const Append& append) {
    if (!active()) return;
    clear({0, UINT64_MAX}, Variables::kDrop, append);
    stopped_ = true;
}

void ObjectRuns::begin_image() {
    for (const std::uint32_t run : given_up_) regions_->runs[run].start = trace::ObjectRun::kNever;
}

// Variables lose their region, because the end of a small block is not known.
void ObjectRuns::allocate(const Range& block, const Append& append) {
    if (block.start == block.end) return;
    clear(block, Variables::kDrop, append);
    if (block.end - block.start >= least_) {
        Blocks& there = blocks_[block.start];
        there.end = std::max(there.end, block.end);
        ++there.number;
        return add(block, false);
    }
    for (std::uint64_t page = block.start / ObjectRegions::kPage;
         page <= (block.end - 1) / ObjectRegions::kPage; ++page)
        pages_of_blocks_.insert(page);
}

// Blocks inside the block end with it.
void ObjectRuns::give_back(std::uint64_t start, const Append& append) {
    const auto block = blocks_.find(start);
    if (block == blocks_.end()) return;
    clear({start, block->second.end}, Variables::kKeep, append);
    if (--block->second.number == 0) blocks_.erase(block);
}

// ld.so first maps a library as a whole, and then maps its segments over that.
void ObjectRuns::map_file(const Range& range, const Append& append) {
    const bool is_part = std::any_of(files_.begin(), files_.end(), [&](const Range& file) {
        return file.start <= range.start && range.end <= file.end;
    });
    clear(range, is_part ? Variables::kKeep : Variables::kDrop, append);
    if (is_part) return;
    files_.push_back(range);
    add(range, true);
}

// True if a block may have been there whose end is not known.
bool ObjectRuns::had_blocks(const Range& range) const {
    const std::uint64_t first = range.start / ObjectRegions::kPage;
    const std::uint64_t last = (range.end - 1) / ObjectRegions::kPage;
    const auto is_inside = [&](std::uint64_t page) { return first <= page && page <= last; };
    bool small = false;
    if (last - first < pages_of_blocks_.size()) {
        for (std::uint64_t page = first; page <= last && !small; ++page)
            small = pages_of_blocks_.contains(page);
    } else {
        small = std::any_of(pages_of_blocks_.begin(), pages_of_blocks_.end(), is_inside);
    }
    return small || std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& block) {
               return block.first < range.end && range.start < block.second.end;
           });
}

bool ObjectRuns::is_of_file(const Range& range) const {
    return std::any_of(files_.begin(), files_.end(), [&](const Range& file) {
        return file.start < range.end && range.start < file.end;
    });
}

void ObjectRuns::add(const Range& range, bool of_variables) {
    if (free_.empty() || range.start >= range.end) return;
    const std::uint32_t number = free_.back();
    free_.pop_back();
    by_start_.emplace(range.start, number);
    regions_->regions[number] = {range.start, range.end - range.start, of_variables, false};
    const std::uint64_t first = range.start / ObjectRegions::kPage;
    const std::uint64_t pages = (range.end - 1) / ObjectRegions::kPage - first + 1;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(pages, ObjectRegions::kPages); ++i)
        regions_->of_page[(first + i) % ObjectRegions::kPages] = static_cast<std::uint16_t>(number);
}

// Many programs have few large blocks for a long time. The others are not worth the searches.
void ObjectRuns::end_runs_in(Region& region, const Append& append) {
    constexpr std::uint32_t kMany = 1024, kMostDistance = 1U << kExtentBits;
    if (!std::exchange(region.used, false)) return;
    if (++searches_ % kMany == 0) least_ *= 2;
    for (trace::ObjectRun* run = regions_->runs; run != regions_->runs + count_; ++run) {
        if (run->bytes == 0 || run->start - region.start > kMostDistance) continue;
        run->bytes = 0;
        if (run->left_out == 0) continue;
        append(trace::end_of(*run));
        run->left_out = 0;
    }
}

void ObjectRuns::drop(std::uint32_t number, const Append& append) {
    Region& region = regions_->regions[number];
    end_runs_in(region, append);
    const std::uint64_t first = region.start / ObjectRegions::kPage;
    const std::uint64_t pages =
        (region.start + region.bytes - 1) / ObjectRegions::kPage - first + 1;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(pages, ObjectRegions::kPages); ++i) {
        std::uint16_t& of_page = regions_->of_page[(first + i) % ObjectRegions::kPages];
        if (of_page == number) of_page = 0;
    }
    region = {};
    free_.push_back(number);
}

// Ends all runs in the range. Drops its regions, except those of variables with kKeep.
void ObjectRuns::clear(const Range& range, Variables variables, const Append& append) {
    auto at = by_start_.upper_bound(range.start);
    if (at != by_start_.begin()) {
        const Region& before = regions_->regions[std::prev(at)->second];
        if (range.start - before.start < before.bytes) --at;
    }
    while (at != by_start_.end() && at->first < range.end) {
        Region& region = regions_->regions[at->second];
        if (region.of_variables && variables == Variables::kKeep) {
            end_runs_in(region, append);
            ++at;
        } else {
            drop(at->second, append);
            at = by_start_.erase(at);
        }
    }
}

}  // namespace assay::driver
