// The initial stack: strings, auxiliary vector, environment, arguments (psABI, figure 3.9).
#include "framework/driver/native/process.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <cstring>

namespace assay::native {
namespace {

constexpr std::uint64_t kMostStackBytes = 1024 * trace::kMiB;
constexpr std::uint64_t kAtRseqFeatureSize = 27, kAtRseqAlign = 28;

std::uint64_t stack_bytes() {
    rlimit limit{};
    getrlimit(RLIMIT_STACK, &limit);
    const std::uint64_t wanted = std::max<std::uint64_t>(limit.rlim_cur, trace::kMiB);
    return std::min(wanted, kMostStackBytes) & ~4095ULL;
}

class StackBuilder {
  public:
    explicit StackBuilder(std::uint64_t top) : sp_(top) {}
    std::uint64_t bytes(const void* data, std::size_t count) {
        sp_ -= count;
        std::memcpy(reinterpret_cast<void*>(sp_), data, count);
        return sp_;
    }
    std::uint64_t text(const char* string) { return bytes(string, std::strlen(string) + 1); }
    void align() { sp_ &= ~15ULL; }
    std::uint64_t pointer() const { return sp_; }

  private:
    std::uint64_t sp_;
};

// 16 bytes that libc makes its stack protector and pointer guard of: fixed where addresses are
// fixed too, so that runs are identical.
void random_bytes(unsigned char* out) {
    const auto* ours = reinterpret_cast<const unsigned char*>(getauxval(AT_RANDOM));
    const int persona = personality(0xffffffff);
    if (persona >= 0 && persona & ADDR_NO_RANDOMIZE)
        std::memset(out, 0x5a, 16);
    else if (ours)
        std::memcpy(out, ours, 16);
}

std::vector<Elf64_auxv_t> host_vector() {
    std::vector<Elf64_auxv_t> entries;
    const int fd = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return entries;
    Elf64_auxv_t entry;
    while (read(fd, &entry, sizeof entry) == sizeof entry && entry.a_type != AT_NULL)
        entries.push_back(entry);
    close(fd);
    return entries;
}

std::vector<std::uint64_t> auxiliary_vector(const LoadedProgram& program, std::uint64_t execfn,
                                            std::uint64_t random, std::uint64_t platform) {
    std::vector<std::uint64_t> words;
    for (const Elf64_auxv_t& entry : host_vector()) {
        std::uint64_t value = entry.a_un.a_val;
        switch (entry.a_type) {
            case AT_PHDR:
                value = program.program_headers;
                break;
            case AT_PHNUM:
                value = program.header_count;
                break;
            case AT_PHENT:
                value = sizeof(Elf64_Phdr);
                break;
            case AT_ENTRY:
                value = program.entry;
                break;
            case AT_BASE:
                value = program.interpreter_base;
                break;
            case AT_EXECFN:
                value = execfn;
                break;
            case AT_RANDOM:
                value = random;
                break;
            case AT_PLATFORM:
                value = platform;
                break;
            case kAtRseqFeatureSize:
            case kAtRseqAlign:
                continue;  // rseq is refused
            default:
                break;
        }
        words.push_back(entry.a_type);
        words.push_back(value);
    }
    words.push_back(AT_NULL);
    words.push_back(0);
    return words;
}

}  // namespace

std::uint64_t build_stack(LoadedProgram& program, const std::vector<std::string>& argv,
                          char** environment) {
    const std::uint64_t size = stack_bytes();
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return 0;
    program.stack_start = reinterpret_cast<std::uint64_t>(memory) + 4096;
    program.stack_end = reinterpret_cast<std::uint64_t>(memory) + size;
    mprotect(memory, 4096, PROT_NONE);  // running out of stack is a fault, not a write elsewhere
    StackBuilder stack(reinterpret_cast<std::uint64_t>(memory) + size - 16);
    const std::uint64_t execfn = stack.text(program.path.c_str());
    std::vector<std::uint64_t> words{argv.size()};
    for (const std::string& argument : argv) words.push_back(stack.text(argument.c_str()));
    words.push_back(0);
    for (char** entry = environment; *entry; ++entry) words.push_back(stack.text(*entry));
    words.push_back(0);
    const std::uint64_t platform = stack.text("x86_64");
    unsigned char random[16] = {};
    random_bytes(random);
    stack.align();
    const std::uint64_t random_at = stack.bytes(random, sizeof random);
    for (const std::uint64_t word : auxiliary_vector(program, execfn, random_at, platform))
        words.push_back(word);
    if (words.size() % 2) stack.bytes("\0\0\0\0\0\0\0\0", 8);
    return stack.bytes(words.data(), words.size() * 8);
}

}  // namespace assay::native
