#include "framework/collector/trace/memory_objects.h"

#include <algorithm>

namespace assay::collector {
namespace {

using Kind = DataObject::Kind;

// The most blocks that are kept for last_at() after they were given back.
constexpr std::size_t kMostPast = 1024 * 1024;

}  // namespace

MemoryObjects::MemoryObjects(const Segment& segment, const std::deque<std::string>& paths)
    : log_(segment.fd(), trace::kAllocationsOffset, trace::kAllocationsBytes,
           SharedMemory::Access::kRead),
      segment_(segment),
      paths_(paths),
      blocks_([this](std::uint32_t block, std::uint64_t died) { end_block(block, died); }),
      areas_(objects_, blocks_, paths) {}

void MemoryObjects::available(std::uint64_t entries) {
    available_ = std::clamp(entries, available_, trace::kMaxAllocations);
}

const trace::AllocationEntry& MemoryObjects::entry(std::uint64_t number) const {
    return log_.at<const trace::AllocationEntry>(number * sizeof(trace::AllocationEntry));
}

// The log has the first thread's start, and the memory that exists then, before any record.
MemoryObjects::Thread& MemoryObjects::thread(std::uint32_t number) {
    if (last_thread_ != nullptr && last_thread_number_ == number) return *last_thread_;
    const auto [found, is_new] = threads_.try_emplace(number);
    last_thread_ = &found->second;
    last_thread_number_ = number;
    has_threads_ = has_threads_ || threads_.size() > 1;
    if (is_new && number == 0) {
        std::uint64_t first = 0;
        while (first < available_ && entry(first).use != trace::MemoryUse::kStack) ++first;
        const std::uint64_t inherited = segment_.control().inherited_allocations;
        found->second.now = std::min(std::max(first + 1, inherited), available_);
        advance(found->second.now);
        inherit();
    }
    return found->second;
}

// Keeps the first thread, because its start is applied only once.
void MemoryObjects::end_thread(std::uint32_t number) {
    if (number == 0) {
        thread(0).now = UINT64_MAX;
        return;
    }
    threads_.erase(number);
    last_thread_ = nullptr;
}

// Charges the inherited memory of a forked process to context 0, because it is unknown where the
// parent allocated it.
void MemoryObjects::inherit() {
    for (const std::uint32_t number : blocks_.all()) {
        HeapBlocks::Block& block = blocks_[number];
        block.object = objects_.of(Kind::kHeap, 0);
        objects_.add_block(block.object, block.end - block.start, entry(block.born).time);
        heap_.allocate(block.object, block.end - block.start, entry(block.born).time);
    }
    areas_.inherit();
}

void MemoryObjects::mark(std::uint32_t number, const trace_record_t& record, std::uint32_t context,
                         std::uint64_t place) {
    Thread& thread = this->thread(number);
    if (record.aux == trace::kBegins) {
        thread.context = context;
        return;
    }
    const std::uint64_t seen = std::min(record.value, available_);
    if (seen <= thread.now) return;
    thread.now = seen;
    const bool is_own = record.aux == trace::kHas && seen == record.value;
    if (is_own) times_.note(place, entry(seen - 1).time);
    advance(seen);
    if (!is_own) return;
    const trace::AllocationEntry& own = entry(seen - 1);
    const bool by_function =
        own.use == trace::MemoryUse::kAllocated || own.use == trace::MemoryUse::kMoved;
    resolve(own, seen - 1, by_function ? thread.context : context);
}

void MemoryObjects::advance(std::uint64_t to) {
    while (applied_ < to) apply(applied_++);
}

void MemoryObjects::apply(std::uint64_t number) {
    const trace::AllocationEntry own = entry(number);
    const std::uint64_t end = own.address + own.bytes;
    if (end < own.address) return;
    switch (own.use) {
        case trace::MemoryUse::kMoved:
            blocks_.give_back(own.before, number);
            [[fallthrough]];
        case trace::MemoryUse::kAllocated:
            return blocks_.allocate(own.address, own.bytes, number);
        case trace::MemoryUse::kFreed:
            return blocks_.give_back(own.address, number);
        case trace::MemoryUse::kMapped:
            return areas_.map(own, number);
        case trace::MemoryUse::kFile:
            return areas_.map_file(own, number);
        case trace::MemoryUse::kUnmapped:
            return areas_.unmap(own.address, end);
        case trace::MemoryUse::kBreak:
            return areas_.set_break(own, number);
        case trace::MemoryUse::kStack:
            thread(own.thread);
            return areas_.name_stack(own);
        case trace::MemoryUse::kThreadPointer:
            return areas_.place_thread_locals(own.address, number);
        case trace::MemoryUse::kRemapped:
            return areas_.move(own);
    }
}

// Removes old blocks whose end all threads have seen, because no thread can refer to them. If too
// many remain, removes all old blocks.
void MemoryObjects::forget_past() {
    if (past_.size() < most_past_) return;
    const std::uint64_t horizon = applied_ - std::min<std::uint64_t>(applied_, kMostPast / 4);
    std::uint64_t all_have_seen = applied_;
    for (const auto& [number, thread] : threads_)
        all_have_seen = std::min(all_have_seen, thread.now);
    past_.forget(std::min(all_have_seen, horizon));
    if (past_.size() > kMostPast / 2) past_.forget(horizon);
    most_past_ = std::max(kFirstMost, 2 * past_.size());
}

// --- Blocks.

void MemoryObjects::end_block(std::uint32_t number, std::uint64_t died) {
    const HeapBlocks::Block& block = blocks_[number];
    forget_past();
    unsigned depth = 0;
    for (std::uint32_t outer = block.outer; outer != HeapBlocks::kNone;
         outer = blocks_[outer].outer)
        ++depth;
    past_.add(block.start, {block.end, block.born, died, object_of_block(block)}, depth);
    if (block.object == HeapBlocks::kNone) {
        touched_until_.erase(number);
        return;
    }
    DataObject& object = objects_[block.object];
    object.live -= std::min(object.live, block.end - block.start);
    object.last = std::max(object.last, entry(died).time);
    heap_.release(block.object, block.end - block.start, entry(died).time);
    add_life(number, entry(died).time);
}

// The times of references are estimates, and can be before the block's start.
void MemoryObjects::add_life(std::uint32_t number, std::uint64_t time) {
    const HeapBlocks::Block& block = blocks_[number];
    DataObject& object = objects_[block.object];
    const std::uint64_t born = entry(block.born).time, died = std::max(born, time);
    object.lifetimes += died - born;
    const auto [first, last] = blocks_.touched(number);
    if (first > last) return;
    std::uint64_t until = times_.of(last);
    if (const auto left_out = touched_until_.extract(number))
        until = std::max(until, left_out.mapped());
    const std::uint64_t end = std::clamp(until, born, died);
    object.touched += end - std::clamp(times_.of(first), born, end);
}

void MemoryObjects::end() {
    advance(available_);
    for (const std::uint32_t block : blocks_.all())
        if (blocks_[block].object != HeapBlocks::kNone) add_life(block, times_.last());
    heap_.finish();
}

// Called when the context is known in which the entry's memory was allocated.
void MemoryObjects::resolve(const trace::AllocationEntry& own, std::uint64_t number,
                            std::uint32_t context) {
    switch (own.use) {
        case trace::MemoryUse::kAllocated:
        case trace::MemoryUse::kMoved: {
            const std::uint32_t object = objects_.of(Kind::kHeap, context);
            objects_.add_block(object, own.bytes, own.time);
            heap_.allocate(object, own.bytes, own.time);
            objects_.settle(number, object);
            const std::uint32_t block = blocks_.beginning_at(own.address);
            if (block == HeapBlocks::kNone || blocks_[block].born != number) {
                // Another thread has already given it back.
                objects_[object].live -= own.bytes;
                heap_.release(object, own.bytes, own.time);
                return;
            }
            blocks_[block].object = object;
            ++blocks_[block].version;
            return;
        }
        case trace::MemoryUse::kMapped:
            return areas_.resolve(own, number, context);
        default:
            return;
    }
}

// Returns a provisional object if the block's object is not known yet.
std::uint32_t MemoryObjects::object_of_block(const HeapBlocks::Block& block) {
    return block.object != HeapBlocks::kNone ? block.object : objects_.of_entry(block.born);
}

// --- Finding.

FoundObject MemoryObjects::find(std::uint32_t number, std::uint64_t address) {
    const Thread& thread = this->thread(number);
    const HeapBlocks::Place place = blocks_.find(address);
    const std::uint32_t index = place.block;
    if (index != HeapBlocks::kNone) {
        const HeapBlocks::Block& block = blocks_[index];
        if (!has_threads_ || block.born < thread.now) {
            const bool whole = block.inner == 0;
            return {whole ? block.start : address,
                    whole ? block.end : address + 1,
                    object_of_block(block),
                    &block.version,
                    block.version,
                    index};
        }
    }
    if (has_threads_) {
        if (const auto past = find_past(thread, address)) return *past;
        if (index != HeapBlocks::kNone) {
            const HeapBlocks::Block& block = blocks_[index];
            return {address, address + 1, object_of_block(block), &block.version, block.version};
        }
        if (const auto coming = find_coming(address)) return *coming;
    }
    if (const auto variable = areas_.find_in_images(address)) return *variable;
    if (const auto area = areas_.find(address, place)) return *area;
    return {address, address + 1, DataObjects::kUnknown, &areas_.version(), areas_.version()};
}

MemoryObjects::Last MemoryObjects::last_at(std::uint64_t address) {
    advance(available_);
    if (const std::uint32_t block = blocks_.innermost(address); block != HeapBlocks::kNone)
        return {object_of_block(blocks_[block]), blocks_[block].start};
    if (const auto past = past_.last_at(address)) return {past->block.object, past->start};
    const FoundObject found = find(0, address);
    const Kind kind = objects_.all()[found.object].kind;
    const bool begins = kind == Kind::kVariable || kind == Kind::kThreadLocal;
    return {found.object, begins ? found.start : address};
}

// Finds a block that was given back, if this thread may not have seen its end.
std::optional<FoundObject> MemoryObjects::find_past(const Thread& thread, std::uint64_t address) {
    const auto past = past_.at(address, thread.now);
    if (!past) return std::nullopt;
    return FoundObject{address, address + 1, past->block.object, &blocks_.version(),
                       blocks_.version()};
}

// Finds a block that another thread has allocated, if the records that place the allocation have
// not been read.
std::optional<FoundObject> MemoryObjects::find_coming(std::uint64_t address) {
    if (coming_.size() >= most_coming_) {
        if (applied_ > 0) coming_.forget(applied_ - 1);
        most_coming_ = std::max(kFirstMost, 2 * coming_.size());
    }
    for (indexed_ = std::max(indexed_, applied_); indexed_ < available_; ++indexed_) {
        const trace::AllocationEntry& next = entry(indexed_);
        const std::uint64_t end = next.address + next.bytes;
        const bool allocates =
            next.use == trace::MemoryUse::kAllocated || next.use == trace::MemoryUse::kMoved;
        if (allocates && end > next.address)
            coming_.add(next.address, {end, indexed_, indexed_, HeapBlocks::kNone});
    }
    const auto coming = coming_.first_at(address, applied_);
    if (!coming) return std::nullopt;
    return FoundObject{address, address + 1, objects_.of_entry(coming->block.born),
                       &blocks_.version(), blocks_.version()};
}

}  // namespace assay::collector
