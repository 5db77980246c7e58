#include "framework/driver/shared/interpreter.h"

#include <memory>
#include <utility>
#include <vector>

namespace assay::driver {

struct Interpreter::Memory {
    std::vector<Entry> entries;
    Table table;
};

Interpreter::~Interpreter() {
    delete memory_;
    delete before_;
}

void Interpreter::set_function(std::uint64_t start, std::uint64_t end, std::int64_t displacement) {
    start_ = start;
    bytes_ = end - start;
    displacement_ = displacement;
}

bool Interpreter::set_line(std::uint64_t position, std::uint64_t line) {
    if (position == 0) return false;
    if (table_ == nullptr || (used_ + 1) * 2 > table_->mask) grow();
    Entry& entry = table_->entries[table_->slot_of(position)];
    const std::uint64_t before = std::exchange(entry.line, line);
    if (entry.position != 0) return before != line;
    ++used_;
    __atomic_store_n(&entry.position, position, __ATOMIC_RELEASE);
    return false;
}

// Forgets positions without a line.
void Interpreter::grow() {
    constexpr std::uint64_t kFewest = 4096;
    std::uint64_t lines = 0;
    if (table_ != nullptr)
        for (std::uint64_t slot = 0; slot <= table_->mask; ++slot)
            lines += table_->entries[slot].line != 0;
    std::uint64_t size = kFewest;
    while (size < lines * 4) size *= 2;
    auto memory = std::make_unique<Memory>();
    memory->entries.resize(size);
    memory->table = {memory->entries.data(), size - 1};
    used_ = lines;
    for (std::uint64_t slot = 0; table_ != nullptr && slot <= table_->mask; ++slot)
        if (const Entry& entry = table_->entries[slot]; entry.line != 0)
            memory->entries[memory->table.slot_of(entry.position)] = entry;
    __atomic_store_n(&table_, &memory->table, __ATOMIC_RELEASE);
    delete before_;
    before_ = memory_;
    memory_ = memory.release();
}

}  // namespace assay::driver
