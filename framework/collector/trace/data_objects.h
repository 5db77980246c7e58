// What counts are charged to, by number.
#pragma once

#include "framework/symbols/data_symbols.h"

#include <cstdint>
#include <map>
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

}  // namespace assay::collector
