#include "framework/driver/native/trace/allocation_functions.h"

#include <algorithm>
#include "framework/driver/native/load/elf_functions.h"

namespace assay::native {
namespace {

constexpr AllocationFunction kMalloc{.size = 1};
constexpr AllocationFunction kCalloc{.size = 2, .count = 1};
constexpr AllocationFunction kRealloc{.size = 2, .before = 1};
constexpr AllocationFunction kReallocArray{.size = 3, .count = 2, .before = 1};
constexpr AllocationFunction kAligned{.size = 2};
constexpr AllocationFunction kPosixAligned{.size = 3, .result = 1};
constexpr AllocationFunction kFree{.freed = 1};

struct Named {
    std::string_view name;
    AllocationFunction function;
};
// malloc(3), malloc_usable_size(3), posix_memalign(3), the names of the operators in the C++ ABI,
// and further functions of jemalloc, tcmalloc (gperftools) and mimalloc.
constexpr Named kKnown[] = {
    {"malloc", kMalloc},
    {"calloc", kCalloc},
    {"realloc", kRealloc},
    {"reallocarray", kReallocArray},
    {"aligned_alloc", kAligned},
    {"memalign", kAligned},
    {"posix_memalign", kPosixAligned},
    {"valloc", kMalloc},
    {"pvalloc", kMalloc},
    {"free", kFree},
    {"cfree", kFree},
    {"free_sized", kFree},
    {"free_aligned_sized", kFree},
    {"__libc_malloc", kMalloc},
    {"__libc_calloc", kCalloc},
    {"__libc_realloc", kRealloc},
    {"__libc_reallocarray", kReallocArray},
    {"__libc_memalign", kAligned},
    {"__libc_valloc", kMalloc},
    {"__libc_pvalloc", kMalloc},
    {"__libc_free", kFree},
    {"_Znwm", kMalloc},
    {"_Znam", kMalloc},
    {"_ZnwmRKSt9nothrow_t", kMalloc},
    {"_ZnamRKSt9nothrow_t", kMalloc},
    {"_ZnwmSt11align_val_t", kMalloc},
    {"_ZnamSt11align_val_t", kMalloc},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", kMalloc},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", kMalloc},
    {"_ZdlPv", kFree},
    {"_ZdaPv", kFree},
    {"_ZdlPvm", kFree},
    {"_ZdaPvm", kFree},
    {"_ZdlPvRKSt9nothrow_t", kFree},
    {"_ZdaPvRKSt9nothrow_t", kFree},
    {"_ZdlPvSt11align_val_t", kFree},
    {"_ZdaPvSt11align_val_t", kFree},
    {"_ZdlPvmSt11align_val_t", kFree},
    {"_ZdaPvmSt11align_val_t", kFree},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", kFree},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", kFree},
    {"mallocx", kMalloc},
    {"rallocx", kRealloc},
    {"dallocx", kFree},
    {"sdallocx", kFree},
    {"je_malloc", kMalloc},
    {"je_calloc", kCalloc},
    {"je_realloc", kRealloc},
    {"je_aligned_alloc", kAligned},
    {"je_memalign", kAligned},
    {"je_posix_memalign", kPosixAligned},
    {"je_valloc", kMalloc},
    {"je_free", kFree},
    {"je_mallocx", kMalloc},
    {"je_rallocx", kRealloc},
    {"je_dallocx", kFree},
    {"je_sdallocx", kFree},
    {"tc_malloc", kMalloc},
    {"tc_calloc", kCalloc},
    {"tc_realloc", kRealloc},
    {"tc_memalign", kAligned},
    {"tc_posix_memalign", kPosixAligned},
    {"tc_valloc", kMalloc},
    {"tc_free", kFree},
    {"tc_new", kMalloc},
    {"tc_newarray", kMalloc},
    {"tc_delete", kFree},
    {"tc_deletearray", kFree},
    {"mi_malloc", kMalloc},
    {"mi_zalloc", kMalloc},
    {"mi_calloc", kCalloc},
    {"mi_realloc", kRealloc},
    {"mi_reallocarray", kReallocArray},
    {"mi_malloc_aligned", kMalloc},
    {"mi_zalloc_aligned", kMalloc},
    {"mi_aligned_alloc", kAligned},
    {"mi_memalign", kAligned},
    {"mi_posix_memalign", kPosixAligned},
    {"mi_valloc", kMalloc},
    {"mi_free", kFree},
    {"mi_free_size", kFree},
    {"mi_free_aligned", kFree},
    {"mi_new", kMalloc},
    {"mi_new_nothrow", kMalloc},
};

void set(AllocationFunction& function, std::string_view key, std::string_view value) {
    if (value.size() != 1 || value[0] < '1' || value[0] > '6') return;
    const auto argument = static_cast<std::uint8_t>(value[0] - '0');
    if (key == "size") function.size = argument;
    if (key == "count") function.count = argument;
    if (key == "old") function.before = argument;
    if (key == "free") function.freed = argument;
    if (key == "result") function.result = argument;
}

// Returns the text before `separator`, and removes both from `text`.
std::string_view take_before(std::string_view& text, char separator) {
    const std::size_t length = std::min(text.find(separator), text.size());
    const std::string_view part = text.substr(0, length);
    text.remove_prefix(std::min(length + 1, text.size()));
    return part;
}

}  // namespace

void AllocationFunctions::initialise(std::string_view more) {
    for (const Named& known : kKnown)
        functions_.insert_or_assign(std::string(known.name), known.function);
    while (!more.empty()) {
        std::string_view line = take_before(more, '\n');
        const std::string_view name = take_before(line, '(');
        std::string_view arguments = take_before(line, ')');
        AllocationFunction function;
        while (!arguments.empty()) {
            std::string_view argument = take_before(arguments, ',');
            const std::string_view key = take_before(argument, '=');
            set(function, key, argument);
        }
        functions_.insert_or_assign(std::string(name), function);
    }
}

void AllocationFunctions::mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                                 const std::string& path) {
    if (empty()) return;
    for_each_function(path, [&](std::string_view symbol, std::uint64_t place) {
        if (place < offset || place - offset >= end - start) return;
        const auto found = functions_.find(symbol);
        if (found != functions_.end()) entries_.emplace(start + (place - offset), found->second);
    });
}

void AllocationFunctions::unmapped(std::uint64_t start, std::uint64_t end) {
    entries_.erase(entries_.lower_bound(start), entries_.lower_bound(end));
}

}  // namespace assay::native
