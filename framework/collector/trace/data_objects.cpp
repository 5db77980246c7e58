#include "framework/collector/trace/data_objects.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace assay::collector {

using Kind = DataObject::Kind;

std::uint32_t DataObjects::add(const DataObject& object) {
    all_.push_back(object);
    return static_cast<std::uint32_t>(all_.size() - 1);
}

std::uint32_t DataObjects::of(Kind kind, std::uint32_t key) {
    const auto [found, is_new] = numbers_.try_emplace({kind, key}, 0);
    if (!is_new) return found->second;
    DataObject object{.kind = kind};
    if (kind == Kind::kHeap || kind == Kind::kMapping) object.context = key;
    if (kind == Kind::kStack) object.thread = key;
    if (kind == Kind::kFile) object.file = key;
    return found->second = add(object);
}

std::uint32_t DataObjects::of_variable(const symbols::DataSymbol& variable, Kind kind,
                                       std::uint32_t file) {
    const auto [found, is_new] = variables_.try_emplace(&variable, 0);
    if (is_new)
        found->second =
            add({.kind = kind, .file = file, .symbol = &variable, .size = variable.size});
    return found->second;
}

void DataObjects::add_block(std::uint32_t number, std::uint64_t bytes, std::uint64_t time) {
    DataObject& object = all_[number];
    object.size = object.blocks == 0 || object.size == bytes ? bytes : 0;
    ++object.blocks;
    object.bytes += bytes;
    object.live += bytes;
    object.peak = std::max(object.peak, object.live);
    object.first = std::min(object.first, time);
}

std::uint32_t DataObjects::of_entry(std::uint64_t entry) {
    const auto [found, is_new] = unsettled_.try_emplace(entry, 0);
    if (is_new) found->second = add({.kind = Kind::kHeap});
    return found->second;
}

void DataObjects::settle(std::uint64_t entry, std::uint32_t object) {
    const auto unsettled = unsettled_.extract(entry);
    if (!unsettled) return;
    final_.resize(all_.size(), kAsItIs);
    final_[unsettled.mapped()] = object;
}

std::uint32_t DataObjects::final_number(std::uint32_t number) const {
    return number < final_.size() && final_[number] != kAsItIs ? final_[number] : number;
}

HeapBlocks::Place HeapBlocks::find(std::uint64_t address) const {
    std::uint32_t& recent = recent_[address / kGranule % recent_.size()];
    if (recent < count_) {
        const Block& there = (*this)[recent];
        if (there.contains(address) && there.inner == 0) return {recent};
        if (there.end <= address && address < there.next && there.is_alone())
            return {kNone, there.end, there.next};
    }
    for (const Gap& gap : gaps_)
        if (address - gap.start < gap.end - gap.start) return {kNone, gap.start, gap.end};
    std::uint32_t before = kNone;
    const Place found = search(address, before);
    if (before != kNone) recent = found.block != kNone ? found.block : before;
    if (found.block == kNone) note_gap(found);
    return found;
}

// `before` becomes the last block that begins at the address or before it.
HeapBlocks::Place HeapBlocks::search(std::uint64_t address, std::uint32_t& before) const {
    const auto next = at_.upper_bound(address);
    before = next == at_.begin() ? kNone : std::prev(next)->second;
    Place found{before, 0, next == at_.end() ? UINT64_MAX : next->first};
    while (found.block != kNone && !(*this)[found.block].contains(address)) {
        found.start = std::max(found.start, (*this)[found.block].end);
        found.block = (*this)[found.block].outer;
    }
    return found;
}

void HeapBlocks::note_gap(const Place& gap) const {
    constexpr std::uint64_t kLarge = 65536;
    if (gap.end - gap.start < kLarge) return;
    gaps_[next_gap_] = {gap.start, gap.end};
    next_gap_ = (next_gap_ + 1) % gaps_.size();
}

std::uint32_t HeapBlocks::beginning_at(std::uint64_t start) const {
    const auto found = at_.find(start);
    return found == at_.end() ? kNone : found->second;
}

// The end of a free block is 0.
std::vector<std::uint32_t> HeapBlocks::all() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t block = 0; block < count_; ++block)
        if ((*this)[block].end != 0) all.push_back(block);
    return all;
}

// A block that overlaps the new one, and does not contain it, must be gone: its end was not
// recorded.
void HeapBlocks::allocate(std::uint64_t start, std::uint64_t bytes, std::uint64_t born) {
    if (bytes == 0) return;
    const std::uint64_t end = start + bytes;
    for (auto at = at_.lower_bound(start); at != at_.end() && at->first < end;) {
        const Block& there = (*this)[at->second];
        if (there.start == start && there.end > end) {
            ++at;
            continue;
        }
        remove(at->second, born);
        at = at_.lower_bound(start);
    }
    std::uint32_t outer = innermost(start);
    while (outer != kNone && (*this)[outer].end < end) {
        remove(outer, born);
        outer = innermost(start);
    }
    std::uint32_t number = count_;
    if (free_.empty()) {
        if (number % kOfPart == 0) blocks_.push_back(std::make_unique<Block[]>(kOfPart));
        ++count_;
    } else {
        number = free_.back();
        free_.pop_back();
    }
    Block& block = (*this)[number];
    block = {.start = start, .end = end, .born = born, .outer = outer, .version = block.version};
    if (outer != kNone) {
        ++(*this)[outer].inner;
        ++(*this)[outer].version;
    }
    link(at_.insert_or_assign(start, number).first);
    for (Gap& gap : gaps_)
        if (start < gap.end && gap.start < end) gap = {};
    ++version_;
}

void HeapBlocks::give_back(std::uint64_t start, std::uint64_t died) {
    if (const std::uint32_t block = beginning_at(start); block != kNone) remove(block, died);
}

// Called when `at` has got another block, or is behind a block that was removed.
void HeapBlocks::link(At::iterator at) {
    const auto next = at == at_.end() ? at : std::next(at);
    if (at != at_.end()) (*this)[at->second].next = next == at_.end() ? UINT64_MAX : next->first;
    if (at != at_.begin())
        (*this)[std::prev(at)->second].next = at == at_.end() ? UINT64_MAX : at->first;
}

// Also removes the blocks inside it.
void HeapBlocks::remove(std::uint32_t number, std::uint64_t died) {
    Block& block = (*this)[number];
    while (block.inner != 0) {
        // The last block that begins before the end lies in this block, or in a block inside it.
        const auto last = std::prev(at_.lower_bound(block.end));
        if (last->second == number) break;
        remove(last->second, died);
    }
    ends_(number, died);
    const auto at = at_.find(block.start);
    if (block.outer != kNone) {
        --(*this)[block.outer].inner;
        ++(*this)[block.outer].version;
    }
    if (at != at_.end() && at->second == number) {
        if (block.outer != kNone && (*this)[block.outer].start == block.start)
            at->second = block.outer;
        link(at->second != number ? at : at_.erase(at));
    }
    ++block.version;
    block.object = kNone;
    block.start = block.end = block.next = 0;
    free_.push_back(number);
    ++version_;
}

// The blocks have fixed distances below the thread pointer (glibc's elf/dl-tls.c,
// _dl_determine_tlsoffset, for TLS_TCB_AT_TP; the psABI's variant II). The loader allocates the
// blocks of later libraries on the heap.
std::vector<ThreadLocalBlock> lay_out_thread_locals(std::span<const MappedImage> images) {
    std::vector<ThreadLocalBlock> blocks;
    std::uint64_t offset = 0, free_top = 0, free_bottom = 0;
    const auto round_up = [](std::uint64_t value, std::uint64_t alignment) {
        return (value + alignment - 1) & ~(alignment - 1);
    };
    for (const auto& [file, symbols] : images) {
        if (symbols == nullptr) continue;
        const auto block = symbols->thread_local_block();
        const std::uint64_t alignment = std::max<std::uint64_t>(block.alignment, 1);
        if (block.bytes == 0 || !std::has_single_bit(alignment)) continue;
        const std::uint64_t first = -(block.address & (alignment - 1)) & (alignment - 1);
        std::uint64_t below = round_up(free_top + block.bytes - first, alignment) + first;
        if (free_bottom - free_top >= block.bytes && below <= free_bottom) {
            free_top = below;
        } else {
            below = round_up(offset + block.bytes - first, alignment) + first;
            if (below > offset + block.bytes + (free_bottom - free_top)) {
                free_top = offset;
                free_bottom = below - block.bytes;
            }
            offset = below;
        }
        blocks.push_back({file, below, block.bytes});
    }
    return blocks;
}

}  // namespace assay::collector
