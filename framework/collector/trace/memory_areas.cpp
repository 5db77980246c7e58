#include "framework/collector/trace/memory_areas.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace assay::collector {
namespace {

using Kind = DataObject::Kind;

// In a map from the starts of ranges: returns the range that contains the address, or end().
template <typename Map>
auto containing(Map& map, std::uint64_t address) {
    auto at = map.upper_bound(address);
    if (at == map.begin()) return map.end();
    --at;
    return address < at->second.end ? at : map.end();
}

}  // namespace

void MemoryAreas::clear(std::uint64_t start, std::uint64_t end) {
    ++version_;
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

void MemoryAreas::set(std::uint64_t start, const Area& area) {
    clear(start, area.end);
    if (area.end > start) areas_.insert_or_assign(start, area);
}

void MemoryAreas::map(const trace::AllocationEntry& mapped, std::uint64_t number) {
    set(mapped.address, {.end = mapped.address + mapped.bytes, .born = number});
}

// ld.so first maps a library as a whole, and then maps its segments over that.
void MemoryAreas::map_file(const trace::AllocationEntry& mapped, std::uint64_t number) {
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
    set(mapped.address, {.end = end,
                         .kind = Kind::kFile,
                         .object = objects_.of(Kind::kFile, place.file),
                         .file = place.file,
                         .born = number});
}

void MemoryAreas::unmap(std::uint64_t start, std::uint64_t end) {
    clear(start, end);
    images_.erase(images_.lower_bound(start), images_.lower_bound(end));
}

void MemoryAreas::move(const trace::AllocationEntry& moved) {
    const auto from = containing(areas_, moved.before);
    Area area = from == areas_.end() ? Area{} : from->second;
    if (from != areas_.end()) clear(moved.before, area.end);
    area.end = moved.address + moved.bytes;
    set(moved.address, area);
}

void MemoryAreas::set_break(const trace::AllocationEntry& now, std::uint64_t number) {
    set(now.address, {.end = now.address + now.bytes,
                      .kind = Kind::kBreak,
                      .object = objects_.of(Kind::kBreak, 0),
                      .born = number});
}

void MemoryAreas::name_stack(const trace::AllocationEntry& begun) {
    // The stack pointer can be just above the stack.
    const auto at = containing(areas_, begun.address - 1);
    if (at == areas_.end()) return;
    at->second.kind = Kind::kStack;
    at->second.object = objects_.of(Kind::kStack, std::min(begun.thread, trace::kOwnSlots));
    ++version_;
}

void MemoryAreas::place_thread_locals(std::uint64_t thread_pointer, std::uint64_t number) {
    if (!thread_local_blocks_) {
        std::vector<MappedImage> images;
        for (const std::uint32_t file : images_in_order_)
            images.push_back({file, symbols_of(file)});
        thread_local_blocks_ = lay_out_thread_locals(images);
    }
    for (const ThreadLocalBlock& block : *thread_local_blocks_) {
        const std::uint64_t start = thread_pointer - block.below;
        if (start < thread_pointer)
            set(start, {.end = start + block.bytes,
                        .kind = Kind::kThreadLocal,
                        .object = objects_.of(Kind::kFile, block.file),
                        .file = block.file,
                        .born = number});
    }
}

void MemoryAreas::resolve(const trace::AllocationEntry& mapped, std::uint64_t number,
                          std::uint32_t context) {
    const auto at = areas_.find(mapped.address);
    if (at == areas_.end() || at->second.born != number) return;
    at->second.object = objects_.of(Kind::kMapping, context);
    objects_.add_block(at->second.object, mapped.bytes, mapped.time);
    ++version_;
}

void MemoryAreas::inherit() {
    for (auto& [start, area] : areas_)
        if (area.object == kNoObject) area.object = objects_.of(Kind::kMapping, 0);
}

// --- Symbols and variables. They stay where they are.

const symbols::DataSymbols* MemoryAreas::symbols_of(std::uint32_t file) {
    const auto [found, is_new] = symbols_.try_emplace(file);
    if (is_new) found->second = symbols::DataSymbols::open(paths_[file]);
    return found->second.get();
}

symbols::FrameVariables* MemoryAreas::frame_variables_of(std::uint32_t file) {
    const auto [found, is_new] = frame_variables_.try_emplace(file);
    if (is_new) found->second = symbols::FrameVariables::open(paths_[file]);
    return found->second.get();
}

void MemoryAreas::read_symbols(Image& image) {
    if (std::exchange(image.has_symbols, true)) return;
    image.symbols = symbols_of(image.file);
    image.variables = image.symbols ? frame_variables_of(image.file) : nullptr;
}

void MemoryAreas::read_debug_information() {
    for (const auto& [file, symbols] : symbols_)
        if (symbols != nullptr) symbols->read_debug_information();
}

// --- Finding.

std::optional<FoundObject> MemoryAreas::find_in_images(std::uint64_t address) {
    const auto image = containing(images_, address);
    if (image == images_.end() || !image->second.executable) return std::nullopt;
    return find_in_image(address, image->first, image->second);
}

FoundObject MemoryAreas::find_in_image(std::uint64_t address, std::uint64_t start, Image& image) {
    read_symbols(image);
    const symbols::DataSymbols* const symbols = image.symbols;
    const auto unnamed = [&] {
        const std::uint32_t whole = objects_.of(Kind::kFile, image.file);
        return FoundObject{address, address + 1, whole, &version_, version_};
    };
    if (symbols == nullptr) return unnamed();
    const std::uint64_t bias = start - symbols->address_of_offset(image.offset);
    const auto here = symbols->find(address - bias);
    if (!here) return unnamed();
    const std::uint32_t object = objects_.of_variable(*here->symbol, Kind::kVariable, image.file);
    return {here->start + bias, here->end + bias, object, &version_, version_};
}

// Memory between blocks can belong to the allocator, so the result ends at the next blocks.
std::optional<FoundObject> MemoryAreas::find(std::uint64_t address, const HeapBlocks::Place& gap) {
    const auto at = containing(areas_, address);
    if (at == areas_.end()) return std::nullopt;
    Area& area = at->second;
    if (area.object == kNoObject) area.object = objects_.add({.kind = Kind::kMapping});
    if (area.kind == Kind::kThreadLocal) return find_thread_local(address, at->first, area);
    if (area.kind == Kind::kStack || area.kind == Kind::kFile)
        return FoundObject{at->first, area.end, area.object, &version_, version_};
    return FoundObject{std::max(at->first, gap.start), std::min(area.end, gap.end), area.object,
                       &blocks_.version(), blocks_.version()};
}

// The variable of each thread belongs to the same object.
FoundObject MemoryAreas::find_thread_local(std::uint64_t address, std::uint64_t start,
                                           const Area& area) {
    const symbols::DataSymbols* symbols = symbols_of(area.file);
    const symbols::DataSymbol* variable =
        symbols ? symbols->find_thread_local(address - start) : nullptr;
    if (variable == nullptr) return {address, address + 1, area.object, &version_, version_};
    const std::uint32_t object = objects_.of_variable(*variable, area.kind, area.file);
    const std::uint64_t begin = start + variable->start;
    return {begin, std::min(area.end, begin + variable->size), object, &version_, version_};
}

bool MemoryAreas::has_frame_variables() {
    if (has_frame_variables_version_ == version_) return has_frame_variables_;
    has_frame_variables_version_ = version_;
    has_frame_variables_ = std::any_of(images_.begin(), images_.end(), [this](const auto& entry) {
        const Image& image = entry.second;
        return image.executable && symbols_of(image.file) != nullptr &&
               frame_variables_of(image.file) != nullptr;
    });
    return has_frame_variables_;
}

// Returns the range between variables around `offset`, at most one page: only the stack is so near.
MemoryAreas::InFrame MemoryAreas::between_variables(
    std::uint32_t stack, std::int64_t offset, std::span<const symbols::FrameVariable> variables) {
    constexpr std::int64_t kPage = 4096;
    InFrame found{offset & -kPage, (offset & -kPage) + kPage, stack};
    for (const symbols::FrameVariable& variable : variables) {
        if (variable.end <= offset) found.start = std::max(found.start, variable.end);
        if (variable.start > offset) found.end = std::min(found.end, variable.start);
    }
    return found;
}

MemoryAreas::InFrame MemoryAreas::find_in_frame(std::uint32_t stack, std::uint64_t pc,
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

}  // namespace assay::collector
