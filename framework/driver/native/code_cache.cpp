#include "framework/driver/native/code_cache.h"

#include "framework/driver/native/assembler.h"
#include "framework/driver/native/record_stubs.h"

#include <sys/mman.h>
#include <algorithm>

namespace assay::native {
namespace {

constexpr std::uint64_t kCacheBytes = 512 * trace::kMiB;
constexpr std::uint64_t kWindowBytes = 768 * trace::kMiB;
constexpr std::uint64_t kLargePage = 2 * trace::kMiB;
constexpr std::uint64_t kUnitMargin = 1 * trace::kMiB;  // no unit is larger

void write_displacement(std::uint64_t site, std::uint64_t target) {
    const auto value = static_cast<std::uint32_t>(target - (site + 4));
    std::memcpy(reinterpret_cast<void*>(site), &value, sizeof value);
}

Assembler at(std::uint64_t address) {
    Assembler assembler;
    assembler.out = reinterpret_cast<std::uint8_t*>(address);
    assembler.address = address;
    return assembler;
}

}  // namespace

void emit_indirect_jump(Assembler& code) {
    code.u8(0x65);
    code.with_memory(
        0xff, 4,
        Address{kNoGpr, RAX, 8, static_cast<std::int32_t>(offsetof(Context, indirect_table))},
        false);
}

bool CodeCache::reserve() {
    void* window = mmap(nullptr, kWindowBytes + kCacheBytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (window == MAP_FAILED) return false;
    window_ = reinterpret_cast<std::uint64_t>(window);
    void* memory = static_cast<char*>(window) + kWindowBytes;
    if (mprotect(memory, kCacheBytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
    madvise(memory, kCacheBytes, MADV_HUGEPAGE);
    base_ = reinterpret_cast<std::uint64_t>(memory);
    size_ = kCacheBytes;
    hot = base_;
    cold = base_ + kCacheBytes / 2;
    hot_end_ = cold;
    cold_end_ = base_ + kCacheBytes;
    return true;
}

std::uint64_t CodeCache::open_window() {
    munmap(reinterpret_cast<void*>(window_), kWindowBytes);
    return (window_ + kLargePage - 1) & ~(kLargePage - 1);
}

void CodeCache::initialise(Context& context, const trace::Spec& spec) {
    context_ = &context;
    if (spec.captures & trace::kCaptureFetches) fetch_filter_ = spec.fetch;
    emit_thunks(spec);
    hot_start_ = hot;
    cold_start_ = cold;
    std::fill_n(context.indirect_table, kIndirectEntries, indirect_miss_);
}

void CodeCache::emit_thunks(const trace::Spec& spec) {
    Assembler code = at(cold);
    exit_thunk_ = code.address;
    code.jump_context(offsetof(Context, exit_glue));
    // An indirect branch arrives with the target in rcx, the target's rax and rcx put aside.
    indirect_miss_ = code.address;
    code.store_context(offsetof(Context, pc), RCX);
    code.load_context(RCX, offsetof(Context, indirect_rcx));
    code.load_context(RAX, offsetof(Context, indirect_rax));
    code.with_context(0xc7, 0, offsetof(Context, exit_id), false);
    code.u32(kIndirectMiss);
    code.jump_context(offsetof(Context, exit_glue));
    reference_stub_ = code.address;
    emit_reference_stub(code, spec.data);
    cold = code.address;
}

Block* CodeCache::find(std::uint64_t pc) {
    const std::uint32_t* index = table_.find(pc);
    return index == nullptr ? nullptr : &blocks_[*index];
}

bool CodeCache::has_fetched(std::uint64_t begin, std::uint64_t end, std::uint64_t pc,
                            unsigned length) const {
    if (fetch_filter_.line_bytes == 0) return true;
    const std::uint64_t line = fetch_filter_.line_bytes;
    return begin / line <= pc / line && (pc + length - 1) / line <= (end - 1) / line &&
           (end - 1) / line - begin / line < fetch_filter_.sets;
}

std::uint32_t CodeCache::line_tag(std::uint64_t line) {
    // 24 bits of the line, and 8 bits that number the part of the address space it lies in, from
    // 1: the filter's tables are 0 in the beginning. Code in more than 255 parts of at least
    // 256 MiB shares the last number, and may then be fetched once too often.
    constexpr unsigned kLineBits = 24;
    constexpr std::size_t kMostRegions = 255;
    const std::uint64_t region = line >> kLineBits;
    std::size_t number = 0;
    while (number < line_regions_.size() && line_regions_[number] != region) ++number;
    if (number == line_regions_.size() && number < kMostRegions) line_regions_.push_back(region);
    return static_cast<std::uint32_t>((number + 1) << kLineBits | (line & ((1U << kLineBits) - 1)));
}

void CodeCache::link(std::uint32_t exit, Block& target) {
    if (exits_[exit].linked != exits_[exit].stub) return;
    exits_[exit].next_linked = target.linked_from;
    target.linked_from = exit;
    direct(exits_[exit], target);
}

void CodeCache::direct(Exit& exit, const Block& target) {
    exit.linked = target.entry;
    // The lines that the exit's own block has just fetched are the most recent of their sets.
    const Block& from = blocks_[exit.block];
    if (target.entry_fetched != target.entry &&
        has_fetched(from.pc, from.end_pc, target.pc, target.first_length))
        exit.linked = target.entry_fetched;
    write_displacement(exit.site, exit.linked);
}

void CodeCache::replace(const Unit& unit, std::span<const Block> blocks,
                        std::span<const Exit> exits) {
    const auto index = static_cast<std::uint32_t>(units_.size());
    units_.push_back(unit);
    for (std::uint32_t i = 0; i < unit.exit_count; ++i) {
        Exit& exit = exits_[unit.first_exit + i];
        const bool linked = exit.linked != exit.stub;
        exit.site = exits[i].site;
        exit.stub = exit.linked = exits[i].stub;
        if (exit.kind == ExitKind::kDirect && linked) direct(exit, *find(exit.target));
    }
    for (std::uint32_t i = 0; i < unit.block_count; ++i) {
        Block& block = blocks_[unit.first_block + i];
        block.unit = index;
        block.entry = blocks[i].entry;
        block.entry_fetched = blocks[i].entry_fetched;
        if (block.landing != 0) move_landing(block, blocks[i]);
        for (std::uint32_t from = block.linked_from; from != kNoExit;
             from = exits_[from].next_linked)
            direct(exits_[from], block);
    }
}

void CodeCache::add_landing(Block& block) {
    if (block.landed) return;
    if (block.landing == 0) emit_landing(block);
    std::uint64_t& entry = context_->indirect_table[block.pc & (kIndirectEntries - 1)];
    block.landing_after = entry;
    write_displacement(block.landing_next, entry);
    entry = block.landing;
    block.landed = true;
}

// rcx = target - pc, without touching the flags; on a mismatch rcx is made the target again and
// the next landing of the same table index has its turn.
void CodeCache::emit_landing(Block& block) {
    Assembler code = at(cold);
    block.landing = code.address;
    code.move_imm64(RAX, 0 - block.pc);
    code.lea(RCX, Address{RCX, RAX, 1, 0});
    code.u8(0xe3);  // jrcxz over the mismatch part
    code.u8(10 + 4 + 5);
    code.move_imm64(RAX, block.pc);
    code.lea(RCX, Address{RCX, RAX, 1, 0});
    block.landing_after = indirect_miss_;
    block.landing_next = code.jump(indirect_miss_);
    code.load_context(RCX, offsetof(Context, indirect_rcx));
    code.load_context(RAX, offsetof(Context, indirect_rax));
    block.landing_jump = code.jump(block.entry);
    cold = code.address;
}

// The landing of `block` goes on where `to` is.
void CodeCache::move_landing(Block& block, const Block& to) {
    if (block.landing_jump != 0) {
        write_displacement(block.landing_jump, to.entry);
        write_displacement(block.landing_next, block.landing_after);
        return;
    }
    std::uint64_t& entry = context_->indirect_table[block.pc & (kIndirectEntries - 1)];
    write_displacement(to.landing_next, block.landing_after);
    at(block.landing).jump(to.landing);
    if (entry == block.landing) entry = to.landing;
    block.landing = to.landing;
    block.landing_next = to.landing_next;
}

Unit* CodeCache::unit_at(std::uint64_t host_pc) {
    if (!contains(host_pc) || units_.empty()) return nullptr;
    const bool in_hot = host_pc < hot_end_;
    auto after = std::upper_bound(units_.begin(), units_.end(), host_pc,
                                  [in_hot](std::uint64_t pc, const Unit& unit) {
                                      return pc < (in_hot ? unit.hot_begin : unit.cold_begin);
                                  });
    if (after == units_.begin()) return nullptr;
    return &*std::prev(after);
}

Unit* CodeCache::unit_behind(std::uint64_t host_pc, std::uint64_t sp) {
    // The stub leaves the stack as its call did: the return address is on top.
    if (host_pc >= reference_stub_ && host_pc < cold_start_)
        std::memcpy(&host_pc, reinterpret_cast<const void*>(sp), sizeof host_pc);
    Unit* unit = unit_at(host_pc);
    const bool inside = unit != nullptr &&
                        (host_pc < unit->hot_end || host_pc >= unit->cold_begin) &&
                        host_pc < unit->cold_end;
    if (inside) return unit;
    // In a landing of its own, behind whichever unit was the last then.
    const auto block = std::find_if(blocks_.begin(), blocks_.end(), [=](const Block& candidate) {
        return candidate.landing_jump != 0 && host_pc >= candidate.landing &&
               host_pc < candidate.landing_jump + 4;
    });
    return block == blocks_.end() ? unit : &units_[block->unit];
}

void CodeCache::divert(const Unit& unit) {
    // A landing leads to other units, too.
    for (std::uint32_t i = 0; i < unit.block_count; ++i) {
        const Block& block = blocks_[unit.first_block + i];
        if (block.landing != 0) write_displacement(block.landing_next, indirect_miss_);
    }
    for (std::uint32_t i = 0; i < unit.exit_count; ++i) {
        const Exit& exit = exits_[unit.first_exit + i];
        if (exit.kind == ExitKind::kDirect) write_displacement(exit.site, exit.stub);
    }
    if (unit.indirect_jump != 0) at(unit.indirect_jump).jump(indirect_miss_);
}

void CodeCache::restore(const Unit& unit) {
    for (std::uint32_t i = 0; i < unit.block_count; ++i) {
        const Block& block = blocks_[unit.first_block + i];
        if (block.landing != 0) write_displacement(block.landing_next, block.landing_after);
    }
    for (std::uint32_t i = 0; i < unit.exit_count; ++i) {
        const Exit& exit = exits_[unit.first_exit + i];
        if (exit.kind == ExitKind::kDirect) write_displacement(exit.site, exit.linked);
    }
    if (unit.indirect_jump != 0) {
        Assembler code = at(unit.indirect_jump);
        emit_indirect_jump(code);
    }
}

void CodeCache::flush() {
    ++generation_;
    hot = hot_start_;
    cold = cold_start_;
    blocks_.clear();
    exits_.clear();
    units_.clear();
    often_missed_.clear();
    table_.clear();
    std::fill_n(context_->indirect_table, kIndirectEntries, indirect_miss_);
}

bool CodeCache::nearly_full() const {
    return hot + kUnitMargin > hot_end_ || cold + kUnitMargin > cold_end_;
}

}  // namespace assay::native
