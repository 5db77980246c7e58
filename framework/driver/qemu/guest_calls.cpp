#include "framework/driver/qemu/guest_calls.h"

#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

namespace assay::qemu {
namespace {

// From the kernel's tables: include/uapi/asm-generic/unistd.h, and arch/*/.../syscall.tbl. The
// mapping calls are mmap, mmap2, munmap, mprotect, mremap, shmat and shmdt. The calls for signals
// are rt_sigaction, rt_sigreturn and sigreturn.
constexpr CallNumbers kNumbers[] = {
    {"aarch64", 220, 221, 281, 134, {139}, {222, 0, 215, 226, 216, 196, 197}, 0},
    {"riscv64", 220, 221, 281, 134, {139}, {222, 0, 215, 226, 216, 196, 197}, 0},
    {"x86_64", 56, 59, 322, 13, {15}, {9, 0, 11, 10, 25, 30, 67}, 0},
    {"arm", 120, 11, 387, 174, {173, 119}, {90, 192, 91, 125, 163, 305, 306}, 0},
    {"i386", 120, 11, 358, 174, {173, 119}, {90, 192, 91, 125, 163, 397, 398}, 0},
    {"ppc64le", 120, 11, 362, 173, {172, 119}, {90, 192, 91, 125, 163, 0, 0}, 0},
    {"s390x", 120, 11, 354, 174, {173, 119}, {90, 0, 91, 125, 163, 0, 0}, 1},
};

}  // namespace

CallKind CallNumbers::kind(std::int64_t number) const {
    if (number <= 0) return CallKind::kOther;
    if (number == clone) return CallKind::kClone;
    if (number == execve) return CallKind::kExecute;
    if (number == execveat) return CallKind::kExecuteAt;
    if (number == sigaction) return CallKind::kHandlesSignal;
    if (number == sigreturn[0] || number == sigreturn[1]) return CallKind::kReturnsFromSignal;
    return std::find(std::begin(of_mappings), std::end(of_mappings), number) !=
                   std::end(of_mappings)
               ? CallKind::kChangesMappings
               : CallKind::kOther;
}

const CallNumbers* call_numbers(std::string_view target) {
    const auto* const found =
        std::find_if(std::begin(kNumbers), std::end(kNumbers),
                     [&](const CallNumbers& known) { return known.target == target; });
    return found == std::end(kNumbers) ? nullptr : found;
}

// A system call, because the address can be invalid.
bool GuestMemory::read(std::uint64_t address, void* into, std::size_t bytes) const {
    const iovec local{into, bytes};
    const iovec remote{reinterpret_cast<void*>(address + base_), bytes};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

std::optional<std::string> GuestMemory::text(std::uint64_t address) const {
    constexpr std::size_t kTogether = 64, kMost = std::size_t{1} << 20;
    std::string found;
    while (found.size() < kMost) {
        std::array<char, kTogether> part;
        // Not across a page, because the next one may be missing.
        const std::size_t bytes = kTogether - address % kTogether;
        if (!read(address, part.data(), bytes)) return {};
        const auto* const end = static_cast<const char*>(std::memchr(part.data(), 0, bytes));
        found.append(part.data(), end ? static_cast<std::size_t>(end - part.data()) : bytes);
        if (end) return found;
        address += bytes;
    }
    return {};
}

std::optional<std::uint64_t> GuestMemory::pointer(std::uint64_t address) const {
    std::uint64_t pointer = 0;
    if (!read(address, &pointer, pointer_bytes_)) return {};
    if (big_endian_) pointer = __builtin_bswap64(pointer) >> 8 * (sizeof pointer - pointer_bytes_);
    return pointer;
}

std::optional<std::vector<std::string>> GuestMemory::texts(std::uint64_t address) const {
    std::vector<std::string> found;
    for (; address != 0; address += pointer_bytes_) {
        const std::optional<std::uint64_t> pointer = this->pointer(address);
        if (!pointer) return {};
        if (*pointer == 0) return found;
        std::optional<std::string> one = text(*pointer);
        if (!one) return {};
        found.push_back(std::move(*one));
    }
    return found;
}

}  // namespace assay::qemu
