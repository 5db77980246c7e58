// The interpreter that the program has registered (assay/client.h): how its code tells which
// instruction of an interpreted program it executes, and the lines of these instructions.
//
// Translated code reads the lines. It has no floating-point registers, so this header includes
// neither <atomic> nor <memory> and <vector>, whose functions for long double clang refuses there.
#pragma once

#include "framework/driver/shared/in_translated_code.h"
#include "framework/trace/context_nodes.h"

#include <cstdint>

namespace assay::driver {

class Interpreter {
  public:
    Interpreter() = default;
    ~Interpreter();
    Interpreter(const Interpreter&) = delete;
    Interpreter& operator=(const Interpreter&) = delete;

    // --- For the driver, which must hold its lock. Threads that execute the interpreter at the
    // same time may see the earlier lines.

    // The function in [start, end) stores the position at `displacement` from a register, before it
    // executes the instruction there. The last call counts.
    void set_function(std::uint64_t start, std::uint64_t end, std::int64_t displacement);
    bool stores_position(std::uint64_t pc, std::int64_t displacement) const {
        return pc - start_ < bytes_ && displacement == displacement_;
    }
    // The instruction at `position` belongs to the line that the address `line` stands for; 0: to
    // that of the instruction executed before. Returns true if it belonged to another one.
    bool set_line(std::uint64_t position, std::uint64_t line);

    // --- In translated code.

    PART_OF_THESE bool has_lines() const { return __atomic_load_n(&table_, __ATOMIC_RELAXED); }
    PART_OF_THESE std::uint64_t line_at(std::uint64_t position) const {
        const Table* const table = __atomic_load_n(&table_, __ATOMIC_ACQUIRE);
        if (table == nullptr) return 0;
        const std::uint64_t slot = table->slot_of(position);
        return __atomic_load_n(&table->entries[slot].line, __ATOMIC_RELAXED);
    }

  private:
    // With open addressing. An entry whose position is 0 is empty.
    struct Entry {
        std::uint64_t position, line;
    };
    struct Table {
        Entry* entries;
        std::uint64_t mask;

        PART_OF_THESE std::uint64_t slot_of(std::uint64_t position) const {
            std::uint64_t slot = trace::mixed(position) & mask;
            for (;; slot = (slot + 1) & mask) {
                const std::uint64_t known =
                    __atomic_load_n(&entries[slot].position, __ATOMIC_ACQUIRE);
                if (known == position || known == 0) return slot;
            }
        }
    };
    struct Memory;

    void grow();

    std::uint64_t start_ = 0, bytes_ = 0;
    std::int64_t displacement_ = 0;
    const Table* table_ = nullptr;
    std::uint64_t used_ = 0;
    Memory* memory_ = nullptr;  // of the present table
    Memory* before_ = nullptr;  // of the one before, which another thread may still read
};

}  // namespace assay::driver
