// The targets of indirect branches: the table that the branches jump through, and the landings that
// it leads to. Landings of one index are a list: each leads to the next if the target is another.
#include "framework/driver/native/code_cache/code_cache.h"
#include "framework/driver/native/emit/assembler.h"
#include "framework/driver/native/machine/own_descriptors.h"
#include "framework/driver/native/memory/own_memory.h"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <utility>

namespace assay::native {
namespace {

constexpr std::size_t kAllEntries = kVersions * kIndirectEntries;
constexpr std::uint64_t kTableBytes = kAllEntries * sizeof(std::uint64_t);

std::size_t index_of_landing(const Block& block) {
    return block.pc & (kIndirectEntries - 1);
}

}  // namespace

void emit_indirect_jump(Assembler& code, Version version) {
    const std::size_t table =
        offsetof(Context, indirect_table) + version * sizeof Context::indirect_table[0];
    code.u8(0x65);
    code.with_memory(0xff, 4, Address{kNoGpr, RAX, 8, static_cast<std::int32_t>(table)}, false);
}

void CodeCache::clear_landings(Version version) {
    landings_[version].assign(kIndirectEntries, kNoBlock);
    std::uint64_t* const first = indirect_table_ + version * kIndirectEntries;
    populate({reinterpret_cast<std::uint64_t>(first),
              reinterpret_cast<std::uint64_t>(first + kIndirectEntries)});
    std::fill_n(first, kIndirectEntries, indirect_miss_);
}

std::uint32_t& CodeCache::first_landing(const Block& block) {
    return landings_[block.version][index_of_landing(block)];
}

std::uint64_t* CodeCache::indirect_entry(const Block& block) {
    return indirect_table_ + block.version * kIndirectEntries + index_of_landing(block);
}

bool CodeCache::share_indirect_table(Context& context) {
    constexpr int kProtection = PROT_READ | PROT_WRITE;
    if (shared_table_ < 0) {
        const int file = memfd_create("assay-indirect-table", MFD_CLOEXEC);
        if (file < 0) return false;
        const bool copied = write(file, indirect_table_, kTableBytes) == ssize_t{kTableBytes} &&
                            mmap(indirect_table_, kTableBytes, kProtection, MAP_SHARED | MAP_FIXED,
                                 file, 0) != MAP_FAILED;
        if (!copied) return close(file), false;
        shared_table_ = own_descriptor(file);
    }
    return mmap(context.indirect_table, kTableBytes, kProtection, MAP_SHARED | MAP_FIXED,
                shared_table_, 0) != MAP_FAILED;
}

std::vector<std::uint64_t> CodeCache::copy_shared_table() const {
    if (shared_table_ < 0) return {};
    return {indirect_table_, indirect_table_ + kAllEntries};
}

bool CodeCache::own_indirect_table(Context& context, std::span<const std::uint64_t> copy) {
    indirect_table_ = context.indirect_table[0];
    if (std::exchange(shared_table_, -1) < 0) return true;
    if (mmap(context.indirect_table, kTableBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    std::copy(copy.begin(), copy.end(), indirect_table_);
    return true;
}

void CodeCache::add_landing(Block& block) {
    if (block.landed || (block.landing == 0 && !has_room_to_link())) return;
    if (block.landing == 0) emit_landing(block);
    list_landing(block);
}

// The landing of a block. kNoBlock is the end of the list.
std::uint64_t CodeCache::landing_of(std::uint32_t block) {
    if (block == kNoBlock) return indirect_miss_;
    return blocks()[block].landing;
}

void CodeCache::list_landing(Block& block) {
    std::uint32_t& first = first_landing(block);
    write_displacement(block.landing_next(), landing_of(first));
    block.next_landed = first;
    first = block.index;
    block.landed = true;
    __atomic_store_n(indirect_entry(block), block.landing, __ATOMIC_RELEASE);
}

// A thread in the removed landing continues to the same place as before.
void CodeCache::unlist_landing(Block& block) {
    const std::uint64_t next = landing_of(block.next_landed);
    std::uint32_t* link = &first_landing(block);
    if (*link == block.index) {
        __atomic_store_n(indirect_entry(block), next, __ATOMIC_RELEASE);
    } else {
        while (blocks()[*link].next_landed != block.index) link = &blocks()[*link].next_landed;
        write_displacement(blocks()[*link].landing_next(), next);
        link = &blocks()[*link].next_landed;
    }
    *link = block.next_landed;
    block.next_landed = kNoBlock;
    block.landed = false;
}

// Computes rcx = target - pc without changing the flags. On a mismatch, restores the target in rcx
// and jumps to the next landing with the same table index.
void CodeCache::emit_landing(Block& block) {
    Assembler code = assembler_at(cold);
    const std::uint64_t next = code.patchable([&] {
        block.landing = code.address;
        code.move_imm64(RAX, 0 - block.pc);
        code.lea(RCX, Address{RCX, RAX, 1, 0});
        code.u8(0xe3);  // jrcxz over the mismatch part
        code.u8(10 + 4 + 5);
        code.move_imm64(RAX, block.pc);
        code.lea(RCX, Address{RCX, RAX, 1, 0});
        return code.jump(indirect_miss_);
    });
    if (block.position() != 0) {
        code.load_context(RAX, offsetof(Context, countdown));
        code.lea(RAX, Address{RAX, kNoGpr, 1, block.position()});
        code.store_context(offsetof(Context, countdown), RAX);
    }
    code.load_context(RCX, offsetof(Context, indirect_rcx));
    code.load_context(RAX, offsetof(Context, indirect_rax));
    const std::uint64_t jump = code.patchable([&] { return code.jump(block.entry); });
    block.to_landing_next = static_cast<std::uint8_t>(next - block.landing);
    block.to_landing_jump = static_cast<std::uint8_t>(jump - block.landing);
    cold = code.address;
}

}  // namespace assay::native
