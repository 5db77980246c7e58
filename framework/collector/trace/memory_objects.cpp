#include "framework/collector/trace/memory_objects.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace assay::collector {
namespace {

using Kind = DataObject::Kind;

// The most blocks that are kept for last_at() after they were given back.
constexpr std::size_t kMostPast = 1024 * 1024;

// In a map from the starts of ranges: returns the range that contains the address, or end().
template <typename Map>
auto containing(Map& map, std::uint64_t address) {
    auto at = map.upper_bound(address);
    if (at == map.begin()) return map.end();
    --at;
    return address < at->second.end ? at : map.end();
}

}  // namespace

MemoryObjects::MemoryObjects(const Segment& segment, const std::deque<std::string>& paths)
    : log_(segment.fd(), trace::kAllocationsOffset, trace::kAllocationsBytes,
           SharedMemory::Access::kRead),
      segment_(segment),
      paths_(paths),
      blocks_([this](std::uint32_t block, std::uint64_t died) { end_block(block, died); }) {}

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
    for (auto& [start, area] : areas_)
        if (area.object == kNoObject) area.object = objects_.of(Kind::kMapping, 0);
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
            return set_area(own.address, {.end = end, .born = number});
        case trace::MemoryUse::kFile:
            return map_file(own, number);
        case trace::MemoryUse::kUnmapped:
            clear_areas(own.address, end);
            images_.erase(images_.lower_bound(own.address), images_.lower_bound(end));
            return;
        case trace::MemoryUse::kBreak:
            return set_area(own.address, {.end = end,
                                          .kind = Kind::kBreak,
                                          .object = objects_.of(Kind::kBreak, 0),
                                          .born = number});
        case trace::MemoryUse::kStack:
            return name_stack(own);
        case trace::MemoryUse::kThreadPointer:
            return place_thread_locals(own.address, number);
        case trace::MemoryUse::kRemapped:
            return move_area(own);
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

// --- Memory of system calls.

void MemoryObjects::clear_areas(std::uint64_t start, std::uint64_t end) {
    ++areas_version_;
    auto at = areas_.upper_bound(start);
    if (at != areas_.begin()) {
        auto before = std::prev(at);
        if (before->first < start && before->second.end > start) {
            if (before->second.end > end) areas_.emplace(end, before->second);
            before->second.end = start;
        }
    }
    for (at = areas_.lower_bound(start); at != areas_.end() && at->first < end;
         at = areas_.erase(at))
        if (at->second.end > end) {
            areas_.emplace(end, at->second);
        }
}

void MemoryObjects::set_area(std::uint64_t start, const Area& area) {
    clear_areas(start, area.end);
    if (area.end > start) areas_.insert_or_assign(start, area);
}

// ld.so first maps a library as a whole, and then maps its segments over that.
void MemoryObjects::map_file(const trace::AllocationEntry& mapped, std::uint64_t number) {
    const trace::FilePlace place = trace::file_place(mapped.before);
    const std::uint64_t end = mapped.address + mapped.bytes;
    if (place.file >= paths_.size()) return;
    const auto around = containing(images_, mapped.address);
    if (around != images_.end() && end <= around->second.end) {
        if (around->second.file == place.file) around->second.executable |= place.executable;
    } else {
        images_.insert_or_assign(mapped.address,
                                 Image{end, place.file, place.offset, place.executable});
        images_in_order_.push_back(place.file);
    }
    set_area(mapped.address, {.end = end,
                              .kind = Kind::kFile,
                              .object = objects_.of(Kind::kFile, place.file),
                              .file = place.file,
                              .born = number});
}

void MemoryObjects::move_area(const trace::AllocationEntry& moved) {
    const auto from = containing(areas_, moved.before);
    Area area = from == areas_.end() ? Area{} : from->second;
    if (from != areas_.end()) clear_areas(moved.before, area.end);
    area.end = moved.address + moved.bytes;
    set_area(moved.address, area);
}

void MemoryObjects::name_stack(const trace::AllocationEntry& begun) {
    thread(begun.thread);
    // The stack pointer can be just above the stack.
    const auto at = containing(areas_, begun.address - 1);
    if (at == areas_.end()) return;
    at->second.kind = Kind::kStack;
    at->second.object = objects_.of(Kind::kStack, std::min(begun.thread, trace::kOwnSlots));
    ++areas_version_;
}

void MemoryObjects::place_thread_locals(std::uint64_t thread_pointer, std::uint64_t number) {
    if (!thread_local_blocks_) {
        std::vector<MappedImage> images;
        for (const std::uint32_t file : images_in_order_)
            images.push_back({file, symbols_of(file)});
        thread_local_blocks_ = lay_out_thread_locals(images);
    }
    for (const ThreadLocalBlock& block : *thread_local_blocks_) {
        const std::uint64_t start = thread_pointer - block.below;
        if (start < thread_pointer)
            set_area(start, {.end = start + block.bytes,
                             .kind = Kind::kThreadLocal,
                             .object = objects_.of(Kind::kFile, block.file),
                             .file = block.file,
                             .born = number});
    }
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
        case trace::MemoryUse::kMapped: {
            const auto at = areas_.find(own.address);
            if (at == areas_.end() || at->second.born != number) return;
            at->second.object = objects_.of(Kind::kMapping, context);
            objects_.add_block(at->second.object, own.bytes, own.time);
            ++areas_version_;
            return;
        }
        default:
            return;
    }
}

// Returns a provisional object if the block's object is not known yet.
std::uint32_t MemoryObjects::object_of_block(const HeapBlocks::Block& block) {
    return block.object != HeapBlocks::kNone ? block.object : objects_.of_entry(block.born);
}

const symbols::DataSymbols* MemoryObjects::symbols_of(std::uint32_t file) {
    const auto [found, is_new] = symbols_.try_emplace(file);
    if (is_new) found->second = symbols::DataSymbols::open(paths_[file]);
    return found->second.get();
}

// Symbols and variables stay where they are.
void MemoryObjects::read_symbols(Image& image) {
    if (std::exchange(image.has_symbols, true)) return;
    image.symbols = symbols_of(image.file);
    image.variables = image.symbols ? frame_variables_of(image.file) : nullptr;
}

// --- Finding.

MemoryObjects::Found MemoryObjects::find(std::uint32_t number, std::uint64_t address) {
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
    const auto image = containing(images_, address);
    if (image != images_.end() && image->second.executable)
        return find_in_image(address, image->first, image->second);
    if (const auto area = find_in_areas(address, place)) return *area;
    return {address, address + 1, DataObjects::kUnknown, &areas_version_, areas_version_};
}

MemoryObjects::Found MemoryObjects::find_in_image(std::uint64_t address, std::uint64_t start,
                                                  Image& image) {
    read_symbols(image);
    const symbols::DataSymbols* const symbols = image.symbols;
    const auto unnamed = [&] {
        const std::uint32_t whole = objects_.of(Kind::kFile, image.file);
        return Found{address, address + 1, whole, &areas_version_, areas_version_};
    };
    if (symbols == nullptr) return unnamed();
    const std::uint64_t bias = start - symbols->address_of_offset(image.offset);
    const auto here = symbols->find(address - bias);
    if (!here) return unnamed();
    const std::uint32_t object = objects_.of_variable(*here->symbol, Kind::kVariable, image.file);
    return {here->start + bias, here->end + bias, object, &areas_version_, areas_version_};
}

// The variable of each thread belongs to the same object.
std::optional<MemoryObjects::Found> MemoryObjects::find_thread_local(std::uint64_t address,
                                                                     std::uint64_t start,
                                                                     const Area& area) {
    const symbols::DataSymbols* symbols = symbols_of(area.file);
    const symbols::DataSymbol* variable =
        symbols ? symbols->find_thread_local(address - start) : nullptr;
    if (variable == nullptr)
        return Found{address, address + 1, area.object, &areas_version_, areas_version_};
    const std::uint32_t object = objects_.of_variable(*variable, area.kind, area.file);
    const std::uint64_t begin = start + variable->start;
    return Found{begin, std::min(area.end, begin + variable->size), object, &areas_version_,
                 areas_version_};
}

symbols::FrameVariables* MemoryObjects::frame_variables_of(std::uint32_t file) {
    const auto [found, is_new] = frame_variables_.try_emplace(file);
    if (is_new) found->second = symbols::FrameVariables::open(paths_[file]);
    return found->second.get();
}

bool MemoryObjects::has_frame_variables() {
    if (has_frame_variables_version_ == areas_version_) return has_frame_variables_;
    has_frame_variables_version_ = areas_version_;
    has_frame_variables_ = std::any_of(images_.begin(), images_.end(), [this](const auto& entry) {
        const Image& image = entry.second;
        return image.executable && symbols_of(image.file) != nullptr &&
               frame_variables_of(image.file) != nullptr;
    });
    return has_frame_variables_;
}

// Returns the range between variables around `offset`, at most one page: only the stack is so near.
MemoryObjects::InFrame MemoryObjects::between_variables(
    std::uint32_t stack, std::int64_t offset, std::span<const symbols::FrameVariable> variables) {
    constexpr std::int64_t kPage = 4096;
    InFrame found{offset & -kPage, (offset & -kPage) + kPage, stack};
    for (const symbols::FrameVariable& variable : variables) {
        if (variable.end <= offset) found.start = std::max(found.start, variable.end);
        if (variable.start > offset) found.end = std::min(found.end, variable.start);
    }
    return found;
}

MemoryObjects::InFrame MemoryObjects::find_in_frame(std::uint32_t stack, std::uint64_t pc,
                                                    std::int64_t offset) {
    const auto image = containing(images_, pc);
    if (image == images_.end() || !image->second.executable)
        return between_variables(stack, offset, {});
    read_symbols(image->second);
    const std::uint32_t file = image->second.file;
    symbols::FrameVariables* const variables = image->second.variables;
    if (variables == nullptr) return between_variables(stack, offset, {});
    const std::uint64_t link_pc =
        pc - image->first + image->second.symbols->address_of_offset(image->second.offset);
    const auto variable = variables->find(link_pc, offset);
    if (!variable) return between_variables(stack, offset, variables->at(link_pc));
    const auto [known, is_new] =
        frame_objects_.try_emplace({stack, variable->function, variable->name}, 0);
    if (is_new)
        known->second =
            objects_.add({.kind = Kind::kFrameVariable,
                          .thread = objects_.all()[stack].thread,
                          .file = file,
                          .stack = stack,
                          .name = variable->name,
                          .function = variable->function,
                          .size = static_cast<std::uint64_t>(variable->end - variable->start)});
    return {variable->start, variable->end, known->second};
}

MemoryObjects::Last MemoryObjects::last_at(std::uint64_t address) {
    advance(available_);
    if (const std::uint32_t block = blocks_.innermost(address); block != HeapBlocks::kNone)
        return {object_of_block(blocks_[block]), blocks_[block].start};
    if (const auto past = past_.last_at(address)) return {past->block.object, past->start};
    const Found found = find(0, address);
    const Kind kind = objects_.all()[found.object].kind;
    const bool begins = kind == Kind::kVariable || kind == Kind::kThreadLocal;
    return {found.object, begins ? found.start : address};
}

void MemoryObjects::read_debug_information() {
    for (const auto& [file, symbols] : symbols_)
        if (symbols != nullptr) symbols->read_debug_information();
}

// Memory between blocks can belong to the allocator, so the result ends at the next blocks.
std::optional<MemoryObjects::Found> MemoryObjects::find_in_areas(std::uint64_t address,
                                                                 const HeapBlocks::Place& gap) {
    const auto at = containing(areas_, address);
    if (at == areas_.end()) return std::nullopt;
    Area& area = at->second;
    if (area.object == kNoObject) area.object = objects_.add({.kind = Kind::kMapping});
    if (area.kind == Kind::kThreadLocal) return find_thread_local(address, at->first, area);
    if (area.kind == Kind::kStack || area.kind == Kind::kFile)
        return Found{at->first, area.end, area.object, &areas_version_, areas_version_};
    return Found{std::max(at->first, gap.start), std::min(area.end, gap.end), area.object,
                 &blocks_.version(), blocks_.version()};
}

// Finds a block that was given back, if this thread may not have seen its end.
std::optional<MemoryObjects::Found> MemoryObjects::find_past(const Thread& thread,
                                                             std::uint64_t address) {
    const auto past = past_.at(address, thread.now);
    if (!past) return std::nullopt;
    return Found{address, address + 1, past->block.object, &blocks_.version(), blocks_.version()};
}

// Finds a block that another thread has allocated, if the records that place the allocation have
// not been read.
std::optional<MemoryObjects::Found> MemoryObjects::find_coming(std::uint64_t address) {
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
            coming_.add(next.address, {end, indexed_, indexed_, kNoObject});
    }
    const auto coming = coming_.first_at(address, applied_);
    if (!coming) return std::nullopt;
    return Found{address, address + 1, objects_.of_entry(coming->block.born), &blocks_.version(),
                 blocks_.version()};
}

}  // namespace assay::collector
