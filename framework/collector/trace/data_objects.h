// The data that counts are charged to: objects by number, the blocks of the heap, and the variables
// of each thread.
#pragma once

#include "framework/symbols/data_symbols.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::collector {

// A variable; all blocks that were allocated in one calling context; a thread's stack.
struct DataObject {
    // As TRACE_DATA_*.
    enum class Kind : std::uint8_t {
        kUnknown,
        kVariable,  // of an image, or a section of one where there is no variable
        kThreadLocal,
        kHeap,     // blocks of allocation functions
        kMapping,  // memory of no file, by system calls
        kFile,
        kBreak,  // below the program break, and no block: the allocator's own
        kStack,
        kFrameVariable,  // a variable of a function, in its frames on a thread's stack
    };
    Kind kind = Kind::kUnknown;
    std::uint32_t context = 0;  // kHeap, kMapping: where it was allocated
    // kStack, kFrameVariable. trace::kOwnSlots stands for all threads from that number on: a
    // program can have any number of them, one after the other.
    std::uint32_t thread = 0;
    std::uint32_t file = 0;  // variables, kFile: its path, MemoryObjects::path()
    const symbols::DataSymbol* symbol = nullptr;  // kVariable, kThreadLocal
    std::uint32_t stack = 0;                      // kFrameVariable: the number of its thread's
    std::string_view name, function;              // kFrameVariable
    std::uint64_t size = 0;  // of a variable, or of each block; 0 if blocks differ, and of others
    std::uint64_t blocks = 0, bytes = 0, peak = 0;  // kHeap, kMapping
    std::uint64_t live = 0;                         // bytes, now
    // Of blocks that were allocated there: when the first was, and when the last was given back;
    // how long they have lived together, and how long from their first reference to their last. In
    // instructions of the process.
    std::uint64_t first = UINT64_MAX, last = 0, lifetimes = 0, touched = 0;
};

class DataObjects {
  public:
    static constexpr std::uint32_t kUnknown = 0;  // the object that there is always

    const std::vector<DataObject>& all() const { return all_; }
    DataObject& operator[](std::uint32_t number) { return all_[number]; }

    std::uint32_t add(const DataObject& object);
    // Of that kind, the one of a context (kHeap, kMapping), a thread (kStack) or a file (kFile).
    std::uint32_t of(DataObject::Kind kind, std::uint32_t key);
    std::uint32_t of_variable(const symbols::DataSymbol& variable, DataObject::Kind kind,
                              std::uint32_t file);
    // Another block of it.
    void add_block(std::uint32_t number, std::uint64_t bytes, std::uint64_t time);

    // What was referred to before it was known where it had been allocated has a number of its own,
    // by its entry in the allocation log.
    std::uint32_t of_entry(std::uint64_t entry);
    // It is that object.
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

// Which blocks of allocation functions there are. Blocks can lie in another one, out of which they
// were cut.

class HeapBlocks {
  public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    struct Block {
        std::uint64_t start = 0, end = 0;
        std::uint64_t born = 0;        // its entry in the allocation log
        std::uint32_t object = kNone;  // none as long as it is not known where it was allocated
        std::uint32_t outer = kNone;
        std::uint32_t inner = 0;    // how many lie in it
        std::uint32_t version = 0;  // changes whenever what is said of it does

        bool contains(std::uint64_t address) const { return start <= address && address < end; }
    };
    // The records that have referred to it.
    struct Touched {
        std::uint64_t first = UINT64_MAX, last = 0;
    };

    // `ends`: called with a block that is about to be gone, and the entry that tells so.
    using Ends = std::function<void(std::uint32_t block, std::uint64_t died)>;
    explicit HeapBlocks(Ends ends) : ends_(std::move(ends)) {}

    void allocate(std::uint64_t start, std::uint64_t bytes, std::uint64_t born);
    void give_back(std::uint64_t start, std::uint64_t died);

    Block& operator[](std::uint32_t block) { return blocks_[block]; }
    void touch(std::uint32_t block, std::uint64_t record) {
        Touched& touched = touched_[block];
        touched.first = std::min(touched.first, record);
        touched.last = record;
    }
    const Touched& touched(std::uint32_t block) const { return touched_[block]; }

    // The innermost one that contains the address, and that begins there; kNone if there is none.
    std::uint32_t innermost(std::uint64_t address) const;
    std::uint32_t beginning_at(std::uint64_t start) const;
    // Of an address in no block: how far it is so, at most between these.
    std::pair<std::uint64_t, std::uint64_t> gap(std::uint64_t address, std::uint64_t start,
                                                std::uint64_t end) const;
    // All that there are.
    std::vector<std::uint32_t> all() const;
    // Changes whenever any of them does.
    const std::uint32_t& version() const { return version_; }

  private:
    void remove(std::uint32_t block, std::uint64_t died);

    Ends ends_;
    std::deque<Block> blocks_;
    std::vector<Touched> touched_;  // by block
    std::vector<std::uint32_t> free_;
    std::map<std::uint64_t, std::uint32_t> at_;  // by start; the innermost
    std::uint32_t version_ = 0;
};

// Where the thread-local variables of what a program begins with are.

// The block of an image in each thread.
struct ThreadLocalBlock {
    std::uint32_t file;   // the number of its path
    std::uint64_t below;  // from the thread pointer down to its start, in bytes
    std::uint64_t bytes;
};

// Of the images in the order in which they were mapped; those without symbols are null.
struct MappedImage {
    std::uint32_t file;
    const symbols::DataSymbols* symbols;
};
std::vector<ThreadLocalBlock> lay_out_thread_locals(std::span<const MappedImage> images);

}  // namespace assay::collector
