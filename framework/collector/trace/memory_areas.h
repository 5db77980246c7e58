// The memory of a program that system calls give, over time: mappings, files with their variables,
// the program break, stacks, and thread-local variables.
#pragma once

#include "framework/collector/trace/data_objects.h"
#include "framework/symbols/data_symbols.h"
#include "framework/symbols/frame_variables.h"
#include "framework/trace/allocation_log.h"
#include "framework/trace/segment_layout.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace assay::collector {

// The object at an address. It is the same for all of [start, end), as long as *version equals
// valid_version.
struct FoundObject {
    std::uint64_t start, end;
    std::uint32_t object;
    const std::uint32_t* version;
    std::uint32_t valid_version;
    std::uint32_t block = HeapBlocks::kNone;  // for MemoryObjects::touch()
};

class MemoryAreas {
  public:
    // `paths` are those of mapped files, by number. All arguments must live longer.
    MemoryAreas(DataObjects& objects, const HeapBlocks& blocks,
                const std::deque<std::string>& paths)
        : objects_(objects), blocks_(blocks), paths_(paths) {}

    // Applies an entry of the allocation log, by its number.
    void map(const trace::AllocationEntry& mapped, std::uint64_t number);
    void map_file(const trace::AllocationEntry& mapped, std::uint64_t number);
    void unmap(std::uint64_t start, std::uint64_t end);
    void move(const trace::AllocationEntry& moved);
    void set_break(const trace::AllocationEntry& now, std::uint64_t number);
    void name_stack(const trace::AllocationEntry& begun);
    void place_thread_locals(std::uint64_t thread_pointer, std::uint64_t number);
    // Called when the context is known in which a mapping was made. Does nothing if it is no longer
    // there.
    void resolve(const trace::AllocationEntry& mapped, std::uint64_t number, std::uint32_t context);
    // Charges mappings whose context is not known to context 0.
    void inherit();

    // Finds the variable of an image's static data, or the image as a whole.
    std::optional<FoundObject> find_in_images(std::uint64_t address);
    // `gap`: the range around the address without a block of the heap.
    std::optional<FoundObject> find(std::uint64_t address, const HeapBlocks::Place& gap);
    // Changes with each change of the areas.
    const std::uint32_t& version() const { return version_; }

    // Finds the variable at `offset` from the canonical frame address (CFA) of a function, while
    // the instruction at `pc` is executed there. [start, end) are offsets from the CFA. If there is
    // no variable, the object is the stack.
    struct InFrame {
        std::int64_t start, end;
        std::uint32_t object;
    };
    InFrame find_in_frame(std::uint32_t stack, std::uint64_t pc, std::int64_t offset);
    // False if no image has variables of functions: then a stack is one object.
    bool has_frame_variables();
    // Finds the types of variables, and the names that debuggers show. Called at the end.
    void read_debug_information();

  private:
    static constexpr std::uint32_t kNoObject = UINT32_MAX;

    struct Area {
        std::uint64_t end = 0;
        DataObject::Kind kind = DataObject::Kind::kMapping;
        std::uint32_t object = kNoObject;
        std::uint32_t file = 0;
        std::uint64_t born = 0;
    };
    // An ELF file with code.
    struct Image {
        std::uint64_t end = 0;
        std::uint32_t file = 0;
        std::uint64_t offset = 0;
        bool executable = false;
        // Both are null if there are none, or until has_symbols.
        const symbols::DataSymbols* symbols = nullptr;
        symbols::FrameVariables* variables = nullptr;
        bool has_symbols = false;
    };

    void set(std::uint64_t start, const Area& area);
    void clear(std::uint64_t start, std::uint64_t end);
    FoundObject find_in_image(std::uint64_t address, std::uint64_t start, Image& image);
    FoundObject find_thread_local(std::uint64_t address, std::uint64_t start, const Area& area);
    void read_symbols(Image& image);
    const symbols::DataSymbols* symbols_of(std::uint32_t file);
    symbols::FrameVariables* frame_variables_of(std::uint32_t file);
    static InFrame between_variables(std::uint32_t stack, std::int64_t offset,
                                     std::span<const symbols::FrameVariable> variables);

    DataObjects& objects_;
    const HeapBlocks& blocks_;
    const std::deque<std::string>& paths_;
    std::map<std::uint64_t, Area> areas_;
    std::map<std::uint64_t, Image> images_;
    std::vector<std::uint32_t> images_in_order_;  // files in the order of mapping
    std::optional<std::vector<ThreadLocalBlock>> thread_local_blocks_;  // empty at first
    std::uint32_t version_ = 0;
    bool has_frame_variables_ = false;
    std::uint32_t has_frame_variables_version_ = UINT32_MAX;  // the version_ of this
    std::map<std::uint32_t, std::unique_ptr<symbols::DataSymbols>> symbols_;
    std::map<std::uint32_t, std::unique_ptr<symbols::FrameVariables>> frame_variables_;
    // By stack, function and name.
    std::map<std::tuple<std::uint32_t, std::string_view, std::string_view>, std::uint32_t>
        frame_objects_;
};

}  // namespace assay::collector
