#include "framework/driver/native/load/initial_stack.h"

#include "framework/driver/native/memory/address_space.h"
#include "framework/driver/native/processor/shown_processor.h"
#include "framework/trace/segment_layout.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <algorithm>
#include <cstring>

namespace assay::native {
namespace {

constexpr std::uint64_t kMostStackBytes = 1024 * trace::kMiB;
constexpr std::uint64_t kStringsBytes = trace::kMiB / 4;
// An odd number of cache lines, so that the starts of slots spread over all sets of a cache.
constexpr std::uint64_t kStringUnit = 64, kSlotBytes = 9 * kStringUnit;

std::uint64_t stack_bytes() {
    rlimit limit{};
    getrlimit(RLIMIT_STACK, &limit);
    const std::uint64_t wanted = std::max<std::uint64_t>(limit.rlim_cur, trace::kMiB);
    return std::min(wanted, kMostStackBytes) & ~4095ULL;
}

constexpr std::uint64_t kStackGuardBytes = 4096;
constexpr std::uint64_t kReserved = kMostStackBytes + kStackGuardBytes;

// Returns the top, or 0. Always takes the same number of addresses, so that the limit does not
// change where the next mapping lies. Memory below the stack cannot be accessed: a stack overflow
// faults instead of writing elsewhere.
std::uint64_t map_stack(std::uint64_t size) {
    unsigned char* memory = reserve_in_arena(kReserved);
    if (memory == nullptr) return 0;
    unsigned char* top = memory + kReserved;
    if (mprotect(top - size, size, PROT_READ | PROT_WRITE) != 0) return 0;
    return reinterpret_cast<std::uint64_t>(top);
}

class StackBuilder {
  public:
    explicit StackBuilder(std::uint64_t top) : top_(top), sp_(top) {}
    std::uint64_t bytes(const void* data, std::size_t count) { return place(data, count, count); }
    // Pushes `text` with its final zero byte. The size is rounded up to a multiple of `unit`.
    std::uint64_t text(const std::string& text, std::uint64_t unit) {
        const std::size_t count = text.size() + 1;
        return place(text.c_str(), count, (count + unit - 1) / unit * unit);
    }
    std::uint64_t used() const { return top_ - sp_; }

  private:
    std::uint64_t place(const void* data, std::size_t count, std::uint64_t room) {
        sp_ -= room;
        std::memcpy(reinterpret_cast<void*>(sp_), data, count);
        return sp_;
    }

    std::uint64_t top_, sp_;
};

// Puts each string into its slot, and long strings below the slots. If slots would take more than
// kStringsBytes, packs all strings instead.
std::vector<std::uint64_t> place_strings(StackBuilder& stack,
                                         const std::vector<std::string>& strings) {
    std::vector<std::uint64_t> addresses(strings.size());
    const bool in_slots = strings.size() * (kSlotBytes + sizeof(std::uint64_t)) < kStringsBytes / 2;
    const auto is_long = [&](const std::string& text) {
        return in_slots && text.size() >= kSlotBytes;
    };
    const std::uint64_t unit = in_slots ? kSlotBytes : 1;
    const std::string empty;
    for (std::size_t i = 0; i < strings.size(); ++i)
        addresses[i] = stack.text(is_long(strings[i]) ? empty : strings[i], unit);
    for (std::size_t i = 0; i < strings.size(); ++i)
        if (is_long(strings[i])) addresses[i] = stack.text(strings[i], kStringUnit);
    return addresses;
}

// 16 bytes from which libc makes its stack protector and its pointer guard. They are fixed if
// addresses are fixed, so that runs are identical.
void random_bytes(unsigned char* out) {
    const auto* ours = reinterpret_cast<const unsigned char*>(getauxval(AT_RANDOM));
    if (chooses_addresses())
        std::memset(out, 0x5a, 16);
    else if (ours)
        std::memcpy(out, ours, 16);
}

struct Placed {
    std::uint64_t file_name, random, platform;
};

// The list is fixed because newer kernels add entries, and ld.so looks at each one. It has no
// entries for rseq, because the driver refuses rseq(2).
std::vector<std::uint64_t> auxiliary_vector(const LoadedProgram& program, const Placed& placed) {
    const ShownProcessor& processor = shown_processor();
    const std::uint64_t vdso_type = processor.has_vdso() ? AT_SYSINFO_EHDR : AT_IGNORE;
    const std::uint64_t frame_type = processor.signal_stack() != 0 ? AT_MINSIGSTKSZ : AT_IGNORE;
    return {vdso_type,   program.vdso,
            frame_type,  processor.signal_stack(),
            AT_HWCAP,    processor.hwcap(),
            AT_PAGESZ,   getauxval(AT_PAGESZ),
            AT_CLKTCK,   getauxval(AT_CLKTCK),
            AT_PHDR,     program.program_headers,
            AT_PHENT,    sizeof(Elf64_Phdr),
            AT_PHNUM,    program.header_count,
            AT_BASE,     program.interpreter_base,
            AT_FLAGS,    0,
            AT_ENTRY,    program.entry,
            AT_UID,      getauxval(AT_UID),
            AT_EUID,     getauxval(AT_EUID),
            AT_GID,      getauxval(AT_GID),
            AT_EGID,     getauxval(AT_EGID),
            AT_SECURE,   getauxval(AT_SECURE),
            AT_RANDOM,   placed.random,
            AT_HWCAP2,   processor.hwcap2(),
            AT_EXECFN,   placed.file_name,
            AT_PLATFORM, placed.platform,
            AT_NULL,     0};
}

}  // namespace

std::uint64_t build_stack(LoadedProgram& program, const std::vector<std::string>& argv,
                          char** environment) {
    const std::uint64_t size = stack_bytes();
    const std::uint64_t top = map_stack(size);
    if (top == 0) return 0;
    program.stack_start = top - size;
    program.stack_end = top;
    program.stack_guard = top - kReserved;
    std::vector<std::string> strings{program.name};
    strings.insert(strings.end(), argv.begin(), argv.end());
    for (char** entry = environment; *entry; ++entry) {
        strings.emplace_back(*entry);
        program.environment.append(strings.back()).push_back('\0');
    }

    unsigned char random[16] = {};
    random_bytes(random);
    StackBuilder stack(top);
    Placed placed{};
    placed.random = stack.bytes(random, sizeof random);
    placed.platform = stack.text("x86_64", kStringUnit - sizeof random);
    const std::vector<std::uint64_t> addresses = place_strings(stack, strings);
    placed.file_name = addresses[0];

    const auto first_variable = addresses.begin() + 1 + static_cast<std::ptrdiff_t>(argv.size());
    std::vector<std::uint64_t> words{argv.size()};
    words.insert(words.end(), addresses.begin() + 1, first_variable);
    words.push_back(0);
    words.insert(words.end(), first_variable, addresses.end());
    words.push_back(0);
    program.auxiliary_vector = auxiliary_vector(program, placed);
    words.insert(words.end(), program.auxiliary_vector.begin(), program.auxiliary_vector.end());

    const std::uint64_t needed = stack.used() + words.size() * sizeof words[0];
    const std::uint64_t taken = (needed + kStringsBytes - 1) / kStringsBytes * kStringsBytes;
    if (taken + kStringsBytes > size) return 0;
    std::memcpy(reinterpret_cast<void*>(top - taken), words.data(), words.size() * sizeof words[0]);
    return top - taken;
}

void extend_stack(LoadedProgram& program, MemoryMap& memory) {
    const std::uint64_t old = program.stack_start, start = program.stack_end - stack_bytes();
    if (start >= old ||
        mprotect(reinterpret_cast<void*>(start), old - start, PROT_READ | PROT_WRITE) != 0)
        return;
    if (const Region* known = memory.find(old)) {
        Region more = *known;
        more.start = start;
        more.end = old;
        memory.add(more);
    }
    program.stack_start = start;
}

}  // namespace assay::native
