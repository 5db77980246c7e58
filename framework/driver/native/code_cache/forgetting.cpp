// Forgets translations whose code has changed, is gone, or cannot be executed for a while.
#include "framework/driver/native/code_cache/code_cache.h"

namespace assay::native {
namespace {

// Program addresses leave the version's bits free.
std::uint64_t rows_key(std::uint64_t pc, Version version) {
    return pc | std::uint64_t{version} << 62;
}

}  // namespace

template <typename Visit>
void CodeCache::for_each_block(std::uint64_t start, std::uint64_t end, const Visit& visit) {
    const auto look_at = [&](const Block& block) {
        if (block.end_pc() > start && end > block.pc) visit(block);
    };
    // A block of the previous page can reach into the first one.
    const std::uint64_t first = start / kPage - (start >= kPage ? 1 : 0);
    const std::uint64_t last = (end - 1) / kPage;
    if (last - first > blocks().size()) {
        for (const Block& block : blocks()) look_at(block);
        return;
    }
    for (std::uint64_t page = first; page <= last; ++page) {
        const std::uint32_t* head = pages_.find(page);
        for (std::uint32_t i = head == nullptr ? kNoBlock : *head; i != kNoBlock;
             i = blocks()[i].next_in_page)
            look_at(blocks()[i]);
    }
}

bool CodeCache::invalidate(std::uint64_t start, std::uint64_t end) {
    bool found = false;
    for_each_block(start, end, [&](const Block& block) {
        if (block.suspended) return set_suspended(units()[block.unit], false);
        if (find(block.pc, block.version) != &block) return;
        unlink(units()[block.unit]);
        found = true;
    });
    const std::uint64_t whole_pages = end / kPage - (start + kPage - 1) / kPage;
    for (std::uint64_t i = 0; i < whole_pages && whole_pages <= blocks().size(); ++i) {
        const std::uint64_t page = (start + kPage - 1) / kPage + i;
        if (pages_.find(page) != nullptr) pages_.set(page, kNoBlock);
    }
    return found;
}

void CodeCache::suspend(std::uint64_t start, std::uint64_t end) {
    for_each_block(start, end, [&](const Block& block) {
        if (block.suspended || find(block.pc, block.version) != &block) return;
        unlink(units()[block.unit]);
        set_suspended(units()[block.unit], true);
        suspended_.push_back(block.unit);
    });
}

void CodeCache::resume(std::uint64_t start, std::uint64_t end) {
    std::erase_if(suspended_, [&](std::uint32_t index) {
        const Unit& unit = units()[index];
        const Block& first = blocks()[unit.first_block];
        if (!first.suspended) return true;  // invalidated
        if (first.pc < start || first.pc >= end) return false;
        set_suspended(unit, false);
        for (std::uint32_t i = unit.first_block; i < unit.first_block + unit.block_count; ++i)
            if (find(blocks()[i].pc, first.version) == nullptr)
                tables_[first.version].set(blocks()[i].pc, i);
        return true;
    });
}

void CodeCache::set_suspended(const Unit& unit, bool suspended) {
    for (std::uint32_t i = unit.first_block; i < unit.first_block + unit.block_count; ++i)
        blocks()[i].suspended = suspended;
}

const CodeCache::Rows* CodeCache::forgotten_rows(std::uint64_t pc, Version version) const {
    const auto known = forgotten_rows_.find(rows_key(pc, version));
    return known == forgotten_rows_.end() ? nullptr : &known->second;
}

void CodeCache::keep_rows(const Unit& unit) {
    const Block& first = blocks()[unit.first_block];
    const Block& last = blocks()[unit.first_block + unit.block_count - 1];
    if (find(first.pc, first.version) != &first) return;
    forgotten_rows_[rows_key(first.pc, first.version)] = {
        {first.id, first.first_instr, unit.first_site},
        {last.id + 1, last.first_instr + last.instr_count, unit.end_site}};
}

// Removes the unit from lookups and from all jumps.
void CodeCache::unlink(const Unit& unit) {
    keep_rows(unit);
    for (std::uint32_t i = unit.first_block; i < unit.first_block + unit.block_count; ++i) {
        Block& block = blocks()[i];
        if (find(block.pc, block.version) == &block) tables_[block.version].set(block.pc, kNoBlock);
        if (block.landed) unlist_landing(block);
        for (std::uint32_t from = block.linked_from; from != kNoExit;
             from = exits()[from].next_linked) {
            Exit& exit = exits()[from];
            exit.linked = false;
            write_displacement(exit.jump, exit.stub);
        }
        block.linked_from = kNoExit;
    }
}

void CodeCache::flush() {
    for (const Unit& unit : units()) keep_rows(unit);
    for (const Exit& exit : exits())
        if (exit.linked) write_displacement(exit.jump, exit.stub);
    ++generation_;
    begin_half();
}

}  // namespace assay::native
