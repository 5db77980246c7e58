#include "framework/driver/native/code_cache/code_cache.h"

#include "framework/driver/native/emit/assembler.h"
#include "framework/driver/native/emit/countdown.h"
#include "framework/driver/native/emit/record_stubs.h"
#include "framework/driver/native/memory/address_space.h"

#include <sys/mman.h>
#include <algorithm>
#include <bit>
#include <utility>

namespace assay::native {
namespace {

constexpr std::uint64_t kCacheBytes = 512 * trace::kMiB;
constexpr std::uint64_t kWindowBytes = 768 * trace::kMiB;
constexpr std::uint64_t kLargePage = 2 * trace::kMiB;
constexpr std::uint64_t kUnitMargin = 1 * trace::kMiB;  // no unit is larger
constexpr std::uint64_t kLinkMargin = 4096;             // no landing or link is larger

}  // namespace

bool CodeCache::reserve() {
    unsigned char* window = reserve_in_arena(kWindowBytes + kCacheBytes);
    if (window == nullptr) return false;
    window_ = reinterpret_cast<std::uint64_t>(window);
    void* memory = window + kWindowBytes;
    if (mprotect(memory, kCacheBytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
    madvise(memory, kCacheBytes, MADV_HUGEPAGE);
    base_ = reinterpret_cast<std::uint64_t>(memory);
    add_own_memory({base_, base_ + kCacheBytes});
    static_assert(kCacheBytes <= UINT32_MAX);
    CodeAddress::set_base(base_);
    size_ = kCacheBytes;
    return true;
}

std::uint64_t CodeCache::open_window() {
    munmap(reinterpret_cast<void*>(window_), kWindowBytes);
    note_unmapped({window_, window_ + kWindowBytes});
    return (window_ + kLargePage - 1) & ~(kLargePage - 1);
}

void CodeCache::initialise(Context& context, const trace::Spec& spec,
                           driver::ObjectRegions* regions) {
    indirect_table_ = context.indirect_table[0];
    if (spec.captures & trace::kCaptureFetches) fetch_filter_ = spec.fetch;
    emit_thunks(spec, regions);
    sole_context_ = reinterpret_cast<std::uint64_t>(&context);
    static_assert(4 * kPart == kCacheBytes);
    // The thunks and the first half's hot code share large pages.
    for (std::uint64_t half = 0; half < 2; ++half) {
        Generation& generation = halves_[(generation_ + half) % 2];
        const std::uint64_t begin = base_ + half * 2 * part_bytes_;
        generation.hot_begin = half == 0 ? thunks_end_ : begin;
        generation.hot_end = begin + part_bytes_;
        generation.cold_end = begin + 2 * part_bytes_;
    }
    begin_half();
}

void CodeCache::emit_thunks(const trace::Spec& spec, driver::ObjectRegions* regions) {
    Assembler code = assembler_at(base_ + trace::kMaxThreads * kStepBytes);
    gs_setter_ = code.address;
    constexpr std::uint8_t kWrgsbaseRdiRet[] = {0xf3, 0x48, 0x0f, 0xae, 0xdf, 0xc3};
    code.raw(kWrgsbaseRdiRet, sizeof kWrgsbaseRdiRet);
    exit_thunk_ = code.address;
    code.jump_context(offsetof(Context, exit_glue));
    indirect_miss_ = emit_indirect_exit(code, kIndirectMiss);
    left_thunk_ = emit_indirect_exit(code, kLeft);
    counted_out_thunk_ = emit_indirect_exit(code, kCountedOut);
    for (unsigned reg = 0; reg <= kGprs; ++reg) {
        if (reg == RSP) continue;
        const unsigned cursor = reg == kGprs ? kNoGpr : reg;
        fetch_stubs_[reg] = code.address;
        if (spec.fetch.ways != 0) emit_first_level_fetch_stub(code, cursor);
        reference_stubs_[reg] = code.address;
        if (spec.data.ways != 0) {
            emit_first_level_reference_stub(code, cursor);
            series_stubs_[reg] = code.address;
            emit_first_level_series_stub(code, cursor);
        } else {
            emit_reference_stub(code, spec, cursor);
            series_stubs_[reg] = code.address;
            emit_series_stub(code, spec, cursor, reference_stubs_[reg]);
        }
    }
    for (unsigned stub = 0; stub < kCallTreeStubs; ++stub) {
        call_tree_stubs_[stub] = code.address;
        if (spec.captures & trace::kCaptureContexts)
            emit_call_tree_stub(code, static_cast<CallTreeStub>(stub));
    }
    spec_ = spec;
    object_stub_ = code.address;
    if (regions != nullptr) emit_object_stub(code, regions);
    fetch_miss_stub_ = code.address;
    if (spec.fetch.ways != 0) emit_first_level_fetch_miss_stub(code, spec);
    miss_stubs_ = (code.address + 63) & ~63ULL;
    miss_stub_bytes_ = spec.data.ways != 0 ? first_level_miss_stub_bytes(spec) : kMissStubBytes;
    thunks_end_ = miss_stubs_ + has_miss_stub_.size() * miss_stub_bytes_;
}

std::uint64_t CodeCache::miss_stub(unsigned address, unsigned spare, unsigned bytes) {
    const unsigned number =
        (address * kGprs + spare) * kMissStubSizes + static_cast<unsigned>(std::countr_zero(bytes));
    const std::uint64_t stub = miss_stubs_ + number * miss_stub_bytes_;
    if (has_miss_stub_[number]) return stub;
    has_miss_stub_[number] = true;
    Assembler code = assembler_at(stub);
    if (spec_.data.ways != 0)
        emit_first_level_miss_stub(code, spec_, address, spare, bytes, reference_stub(kGprs));
    else
        emit_miss_stub(code, spec_, address, spare, bytes, reference_stub(kGprs));
    return stub;
}

// Emits an indirect branch's exit. The target is in rcx; the context has the program's rax and rcx.
std::uint64_t CodeCache::emit_indirect_exit(Assembler& code, ExitReason reason) {
    const std::uint64_t address = code.address;
    code.store_context(offsetof(Context, pc), RCX);
    code.load_context(RCX, offsetof(Context, indirect_rcx));
    code.load_context(RAX, offsetof(Context, indirect_rax));
    code.with_context(0xc7, 0, offsetof(Context, exit_id), false);
    code.u32(reason);
    code.jump_context(offsetof(Context, exit_glue));
    return address;
}

Assembler CodeCache::assembler_at(std::uint64_t address) const {
    Assembler assembler;
    assembler.out = reinterpret_cast<std::uint8_t*>(address);
    assembler.address = address;
    assembler.context = sole_context_;
    return assembler;
}

void CodeCache::begin_half() {
    Generation& half = current();
    half.blocks.clear();
    half.exits.clear();
    half.units.clear();
    half.often_missed.clear();
    half.points.clear();
    half.specials.clear();
    hot = half.hot_begin;
    cold = half.hot_end;
    for (PcMap<std::uint32_t>& table : tables_) table.clear();
    pages_.clear();
    suspended_.clear();
    for (const Version version : {kPlain, kCollecting, kExact, kApproach})
        if (used_[version]) clear_landings(version);
}

void CodeCache::use(Version version) {
    if (!std::exchange(used_[version], true)) clear_landings(version);
}

Block* CodeCache::find(std::uint64_t pc, Version version) {
    const std::uint32_t* index = tables_[version].find(pc);
    return index == nullptr || *index == kNoBlock ? nullptr : &blocks()[*index];
}

void CodeCache::enter_block(std::uint32_t index) {
    Block& block = blocks()[index];
    tables_[block.version].set(block.pc, index);
    const std::uint64_t page = block.pc / kPage;
    if (const std::uint32_t* first = pages_.find(page)) block.next_in_page = *first;
    pages_.set(page, index);
}

bool CodeCache::has_fetched(std::uint64_t begin, std::uint64_t end, std::uint64_t pc,
                            unsigned length) const {
    if (fetch_filter_.line_bytes == 0) return true;
    const std::uint64_t line = fetch_filter_.line_bytes;
    return begin / line <= pc / line && (pc + length - 1) / line <= (end - 1) / line &&
           (end - 1) / line - begin / line < fetch_filter_.sets;
}

// Tags start at 1, because the filter's tables start with 0. The trace's tables are full before 32
// bits are.
std::uint32_t CodeCache::line_tag(std::uint64_t line) {
    if (const std::uint32_t* known = line_numbers_.find(line)) return *known;
    line_numbers_.set(line, ++last_line_tag_);
    return last_line_tag_;
}

std::uint32_t CodeCache::line_number(std::uint64_t line) {
    if (const std::uint32_t* known = line_numbers_.find(line)) return *known;
    const std::uint64_t set = line % fetch_filter_.sets;
    lines_of_set_.resize(fetch_filter_.sets, 1);
    const std::uint32_t number =
        lines_of_set_[set] * fetch_filter_.sets + static_cast<std::uint32_t>(set);
    most_lines_of_set_ = std::max(most_lines_of_set_, ++lines_of_set_[set]);
    line_numbers_.set(line, number);
    return number;
}

bool CodeCache::line_numbers_full() const {
    constexpr std::uint32_t kMargin = 16384;  // lines, more than a unit has
    if (most_lines_of_set_ == 0) return false;
    return std::uint64_t{most_lines_of_set_ + 2} * fetch_filter_.sets + kMargin >
           FirstLevel::kMostCodeLines;
}

void CodeCache::link(std::uint32_t exit, Block& target) {
    Exit& from = exits()[exit];
    if (from.linked || !has_room_to_link()) return;
    from.next_linked = target.linked_from;
    target.linked_from = exit;
    direct(from, target);
}

void CodeCache::direct(Exit& exit, const Block& target) {
    std::uint64_t entry = target.entry;
    // The lines that the exit's own block has just fetched are the most recent ones of their sets.
    const Block& from = blocks()[exit.block];
    // The code that counts the exit's own block has also counted the target.
    const bool forward = from.unit == target.unit && from.first_instr < target.first_instr;
    const bool counted =
        (forward && from.counted_by == target.counted_by) || target.to_count <= exit.counted_beyond;
    if (counted && target.entry_counted != 0) entry = target.entry_counted;
    if (target.entry_fetched != target.entry &&
        has_fetched(from.pc, from.end_pc(), target.pc, target.first_length))
        entry = target.entry_fetched;
    if (exit.counts && exit.uncounted() != target.position())
        entry = emit_counting_link(exit, target);
    exit.linked = true;
    write_displacement(exit.jump, entry);
}

// Emits code that counts down the instructions that the exit itself has not counted.
std::uint64_t CodeCache::emit_counting_link(const Exit& exit, const Block& target) {
    const int instructions = int{exit.uncounted()} - int{target.position()};
    Assembler code = assembler_at(cold);
    if (exit.flags_live) save_flags(code, false);
    count_down(code, offsetof(Context, countdown), instructions);
    const std::uint64_t negative = code.jump_if(kSign, code.address);
    if (exit.flags_live) restore_flags(code, false);
    code.jump(target.entry);
    code.patch(negative, code.address);
    count_down(code, offsetof(Context, countdown), -instructions);
    if (exit.flags_live) restore_flags(code, false);
    code.jump(exit.stub);
    return std::exchange(cold, code.address);
}

void CodeCache::replace(const Unit& unit, std::span<const Block> new_blocks,
                        std::span<const Exit> new_exits) {
    const auto index = static_cast<std::uint32_t>(units().size());
    units().push_back(unit);
    for (std::uint32_t i = 0; i < unit.exit_count; ++i) {
        Exit& exit = exits()[unit.first_exit + i];
        const Exit& replacement = new_exits[i];
        if (exit.kind != ExitKind::kDirect) {
            exit.stub = replacement.stub;
            continue;
        }
        // A thread that executes the old code leaves here.
        write_displacement(exit.jump, exit.stub);
        exit.jump = replacement.jump;
        exit.counted_beyond = replacement.counted_beyond;
        exit.stub = replacement.stub;
        if (exit.linked) direct(exit, *find(exit.target, blocks()[exit.block].version));
    }
    for (std::uint32_t i = 0; i < unit.block_count; ++i) {
        Block& block = blocks()[unit.first_block + i];
        block.unit = index;
        block.entry = new_blocks[i].entry;
        block.entry_fetched = new_blocks[i].entry_fetched;
        block.entry_counted = new_blocks[i].entry_counted;
        block.counted_by = new_blocks[i].counted_by;
        block.to_count = new_blocks[i].to_count;
        if (block.to_landing_jump != 0) {
            write_displacement(block.landing_jump(), block.entry);
        } else if (block.landing != 0) {
            const bool landed = block.landed;
            if (landed) unlist_landing(block);
            block.landing = new_blocks[i].landing;
            block.to_landing_next = new_blocks[i].to_landing_next;
            if (landed) list_landing(block);
        }
        for (std::uint32_t from = block.linked_from; from != kNoExit;
             from = exits()[from].next_linked)
            direct(exits()[from], block);
    }
}

bool CodeCache::has_code(std::uint64_t page) const {
    const std::uint32_t* head = pages_.find(page);
    if (head != nullptr && *head != kNoBlock) return true;
    head = page == 0 ? nullptr : pages_.find(page - 1);
    if (head == nullptr) return false;
    for (std::uint32_t i = *head; i != kNoBlock; i = current().blocks[i].next_in_page)
        if (current().blocks[i].end_pc() > page * kPage) return true;
    return false;
}

bool CodeCache::nearly_full() const {
    return hot + kUnitMargin > current().hot_end || cold + kUnitMargin > current().cold_end;
}

// Landings and links are made between translations, which first check nearly_full().
bool CodeCache::has_room_to_link() const {
    return cold + kLinkMargin <= current().cold_end;
}

// --- Lookups in both halves.

const CodeCache::Generation* CodeCache::generation_at(std::uint64_t host_pc) const {
    for (const Generation& half : halves_)
        if (host_pc >= half.hot_begin && host_pc < half.cold_end) return &half;
    return nullptr;
}

const Exit& CodeCache::exit(std::uint32_t id) const {
    return generation_of(id).exits[index_of_exit(id)];
}

const Block& CodeCache::block_of(std::uint32_t id) const {
    return generation_of(id).blocks[exit(id).block];
}

const Instruction& CodeCache::special(std::uint32_t id) const {
    return generation_of(id).specials[exit(id).special];
}

const Unit* CodeCache::unit_at(std::uint64_t host_pc) const {
    const Generation* half = generation_at(host_pc);
    if (half == nullptr) return nullptr;
    const bool in_hot = host_pc < half->hot_end;
    const auto after = std::upper_bound(half->units.begin(), half->units.end(), host_pc,
                                        [in_hot](std::uint64_t pc, const Unit& unit) {
                                            return pc < (in_hot ? unit.hot_begin : unit.cold_begin);
                                        });
    if (after == half->units.begin()) return nullptr;
    const Unit& unit = *std::prev(after);
    return host_pc < (in_hot ? unit.hot_end : unit.cold_end) ? &unit : nullptr;
}

const RecoveryPoint* CodeCache::point_at(std::uint64_t host_pc) const {
    const Unit* unit = unit_at(host_pc);
    if (unit == nullptr || host_pc >= unit->hot_end || host_pc < unit->hot_begin) return nullptr;
    const auto first = generation_at(host_pc)->points.begin() + unit->first_point;
    const auto after = std::upper_bound(
        first, first + unit->point_count, host_pc - unit->hot_begin,
        [](std::uint64_t offset, const RecoveryPoint& point) { return offset < point.offset; });
    return after == first ? nullptr : &*std::prev(after);
}

const Block& CodeCache::block_at(std::uint64_t host_pc, unsigned block_in_unit) const {
    return generation_at(host_pc)->blocks[unit_at(host_pc)->first_block + block_in_unit];
}

bool CodeCache::reaches_into(std::uint64_t host_pc, std::uint64_t page_address) const {
    const Unit* unit = unit_at(host_pc);
    if (unit == nullptr) return false;
    const auto first = generation_at(host_pc)->blocks.begin() + unit->first_block;
    return std::any_of(first, first + unit->block_count, [=](const Block& block) {
        return block.pc < page_address + kPage && block.end_pc() > page_address;
    });
}

const Block* CodeCache::entered_at(std::uint64_t host_pc) const {
    const Unit* unit = unit_at(host_pc);
    if (unit == nullptr) return nullptr;
    const std::deque<Block>& known = generation_at(host_pc)->blocks;
    for (std::uint32_t i = unit->first_block; i < unit->first_block + unit->block_count; ++i)
        if (known[i].entry == host_pc || known[i].entry_fetched == host_pc) return &known[i];
    return nullptr;
}

}  // namespace assay::native
