// The data to which counts are charged: numbered objects, blocks of the heap, and thread-local
// variables.
#pragma once

#include "framework/symbols/data_symbols.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::collector {

// A variable, all blocks that were allocated in one calling context, or a thread's stack, for
// example.
struct DataObject {
    // Has the values of TRACE_DATA_*.
    enum class Kind : std::uint8_t {
        kUnknown,
        kVariable,  // of an image; or a section, for addresses without a variable
        kThreadLocal,
        kHeap,     // blocks of allocation functions
        kMapping,  // memory of system calls, without a file
        kFile,
        kBreak,  // below the program break and in no block: the allocator's own data
        kStack,
        kFrameVariable,  // a variable of a function, in its frames on a thread's stack
    };
    Kind kind = Kind::kUnknown;
    std::uint32_t context = 0;  // kHeap, kMapping: where it was allocated
    // kStack, kFrameVariable. Threads from number trace::kOwnSlots on share this number, because a
    // program can have any number of threads, one after another.
    std::uint32_t thread = 0;
    std::uint32_t file = 0;  // variables, kFile: number of the file, for MemoryObjects::path()
    const symbols::DataSymbol* symbol = nullptr;  // kVariable, kThreadLocal
    std::uint32_t stack = 0;                      // kFrameVariable: number of the thread's stack
    std::string_view name, function;              // kFrameVariable
    // Size of a variable, or of each block. 0 if the sizes of blocks differ, and for other kinds.
    std::uint64_t size = 0;
    std::uint64_t blocks = 0, bytes = 0, peak = 0;  // kHeap, kMapping
    std::uint64_t live = 0;                         // bytes in use now
    // For blocks, in instructions of the process: time of the first allocation and of the last end;
    // sum of all lifetimes; sum of all times from the first to the last reference.
    std::uint64_t first = UINT64_MAX, last = 0, lifetimes = 0, touched = 0;
};

class DataObjects {
  public:
    static constexpr std::uint32_t kUnknown = 0;  // an object that always exists

    const std::vector<DataObject>& all() const { return all_; }
    DataObject& operator[](std::uint32_t number) { return all_[number]; }

    std::uint32_t add(const DataObject& object);
    // Returns the object of the kind. `key` is its context (kHeap, kMapping), thread (kStack) or
    // file (kFile).
    std::uint32_t of(DataObject::Kind kind, std::uint32_t key);
    std::uint32_t of_variable(const symbols::DataSymbol& variable, DataObject::Kind kind,
                              std::uint32_t file);
    // Counts another block of the object.
    void add_block(std::uint32_t number, std::uint64_t bytes, std::uint64_t time);

    // Returns a provisional object for a block that is referred to before its allocating context is
    // known. `entry` is its entry in the allocation log.
    std::uint32_t of_entry(std::uint64_t entry);
    // Called when the object of the entry is known.
    void settle(std::uint64_t entry, std::uint32_t object);
    std::uint32_t final_number(std::uint32_t number) const;

  private:
    static constexpr std::uint32_t kAsItIs = UINT32_MAX;

    std::vector<DataObject> all_ = std::vector<DataObject>(1);
    std::map<std::pair<DataObject::Kind, std::uint32_t>, std::uint32_t> numbers_;
    std::unordered_map<const symbols::DataSymbol*, std::uint32_t> variables_;
    std::unordered_map<std::uint64_t, std::uint32_t> unsettled_;
    std::vector<std::uint32_t> final_;  // by number
};

// The blocks of allocation functions that exist. A block can lie inside another block, if it was
// cut out of it.

class HeapBlocks {
  public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    // The first and the last record that refers to a block.
    struct Touched {
        std::uint64_t first = UINT64_MAX, last = 0;
    };
    // It fits in a line of the processor's cache, because references to blocks are often scattered.
    struct alignas(64) Block {
        std::uint64_t start = 0, end = 0;
        std::uint64_t next = 0;        // where the next block begins, in the order of starts
        std::uint64_t born = 0;        // number of its entry in the allocation log
        std::uint32_t object = kNone;  // kNone until the allocating context is known
        std::uint32_t outer = kNone;
        std::uint32_t inner = 0;    // number of blocks inside it
        std::uint32_t version = 0;  // changes with each change of the block
        Touched touched = {};

        bool contains(std::uint64_t address) const { return start <= address && address < end; }
        // True if no other block overlaps this one.
        bool is_alone() const { return outer == kNone && inner == 0; }
    };
    static_assert(sizeof(Block) == 64);

    // Called with a block that is about to end, and with the entry that says so.
    using Ends = std::function<void(std::uint32_t block, std::uint64_t died)>;
    explicit HeapBlocks(Ends ends) : ends_(std::move(ends)) {}

    void allocate(std::uint64_t start, std::uint64_t bytes, std::uint64_t born);
    void give_back(std::uint64_t start, std::uint64_t died);

    Block& operator[](std::uint32_t block) { return blocks_[block / kOfPart][block % kOfPart]; }
    const Block& operator[](std::uint32_t block) const {
        return blocks_[block / kOfPart][block % kOfPart];
    }
    void touch(std::uint32_t block, std::uint64_t record) {
        Touched& touched = (*this)[block].touched;
        touched.first = std::min(touched.first, record);
        touched.last = record;
    }
    const Touched& touched(std::uint32_t block) const { return (*this)[block].touched; }

    // The innermost block that contains an address, or that begins there. If there is no such
    // block: kNone, and the range around the address without a block.
    struct Place {
        std::uint32_t block;
        std::uint64_t start = 0, end = 0;
    };
    Place find(std::uint64_t address) const;
    std::uint32_t innermost(std::uint64_t address) const { return find(address).block; }
    std::uint32_t beginning_at(std::uint64_t start) const;
    std::vector<std::uint32_t> all() const;
    // Changes with each change of any block.
    const std::uint32_t& version() const { return version_; }

  private:
    using At = std::map<std::uint64_t, std::uint32_t>;
    void remove(std::uint32_t block, std::uint64_t died);
    void link(At::iterator at);
    Place search(std::uint64_t address, std::uint32_t& before) const;
    void note_gap(const Place& gap) const;

    Ends ends_;
    // Blocks stay where they are.
    static constexpr std::uint32_t kOfPart = 1024;
    std::vector<std::unique_ptr<Block[]>> blocks_;
    std::uint32_t count_ = 0;
    std::vector<std::uint32_t> free_;
    At at_;  // by start; the innermost block
    std::uint32_t version_ = 0;
    // Large ranges without a block that were found last.
    struct Gap {
        std::uint64_t start = 0, end = 0;
    };
    mutable std::array<Gap, 4> gaps_{};
    mutable std::size_t next_gap_ = 0;
    // Blocks that were found last, or that begin last before an address without a block, by granule
    // of memory.
    static constexpr std::uint64_t kGranule = 16;
    mutable std::vector<std::uint32_t> recent_ = std::vector<std::uint32_t>(131072, 0);
};

// The addresses of those thread-local variables that exist when a program begins.

// The block of an image in each thread.
struct ThreadLocalBlock {
    std::uint32_t file;   // the number of its path
    std::uint64_t below;  // bytes from the block's start up to the thread pointer
    std::uint64_t bytes;
};

// `symbols` is null for an image without symbols. lay_out_thread_locals() needs the images in the
// order of mapping.
struct MappedImage {
    std::uint32_t file;
    const symbols::DataSymbols* symbols;
};
std::vector<ThreadLocalBlock> lay_out_thread_locals(std::span<const MappedImage> images);

}  // namespace assay::collector
