#include "framework/driver/native/code_cache/code_watch.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <ctime>

namespace assay::native {
namespace {

// A comparison takes about 0.1 microseconds for each execution of a block. A fault takes about 5,
// and the page's blocks have to be translated again. More than kMostWrites faults within kShortTime
// nanoseconds are too many.
constexpr std::uint32_t kMostWrites = 64;
constexpr std::uint64_t kShortTime = 20'000'000;

// Not through the vDSO, which the program may have unmapped.
std::uint64_t now() {
    timespec time{};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
}

long set_protection(std::uint64_t start, std::uint64_t end, int protection) {
    return mprotect(reinterpret_cast<void*>(start), end - start, protection) == 0 ? 0 : -errno;
}

}  // namespace

bool CodeWatch::begin(std::uint64_t pc) {
    const Region* region = memory_.find(pc);
    if (region == nullptr) return false;
    if (region->shared) return true;
    if (!region->writable) return false;
    Page& page = pages_[pc / kPage];
    if (page.writes >= kMostWrites) return true;
    if (!page.guarded) page.guarded = guard(pc / kPage);
    return !page.guarded;
}

// The pages need not stay executable, because the program only executes translations.
bool CodeWatch::guard(std::uint64_t page) {
    return set_protection(page * kPage, (page + 1) * kPage, PROT_READ) == 0;
}

bool CodeWatch::let_write(std::uint64_t address) {
    const auto found = pages_.find(address / kPage);
    if (found == pages_.end()) return false;
    Page& page = found->second;
    if (!page.guarded) {  // another thread's write came first
        const Region* region = memory_.find(address);
        return region != nullptr && region->writable;
    }
    page.guarded = false;
    if (page.writes < kMostWrites && now() - page.writes_since > kShortTime) {
        page.writes = 0;
        page.writes_since = now();
    }
    ++page.writes;
    const std::uint64_t start = address & ~(kPage - 1);
    return set_protection(start, start + kPage, PROT_READ | PROT_WRITE) == 0;
}

std::vector<std::uint64_t> CodeWatch::let_write_everywhere() {
    std::vector<std::uint64_t> written;
    for (const auto& [page, state] : pages_)
        if (state.guarded) written.push_back(page);
    for (const std::uint64_t page : written) let_write(page * kPage);
    return written;
}

long CodeWatch::protect(std::uint64_t start, std::uint64_t end, int protection,
                        const CodeCache& cache) {
    const bool guards = protection & PROT_WRITE && memory_.overlaps(start, end);
    if (!guards) {
        forget(start, end);
        return set_protection(start, end, protection);
    }
    const auto guarded_at = [&](std::uint64_t address) {
        return memory_.find(address) != nullptr && !memory_.find(address)->shared &&
               cache.has_code(address / kPage);
    };
    for (std::uint64_t from = start, to = start; from < end; from = to) {
        const bool guarded = guarded_at(from);
        while (to < end && guarded_at(to) == guarded) {
            if (guarded)
                pages_[to / kPage].guarded = true;
            else
                pages_.erase(to / kPage);
            to += kPage;
        }
        const long result = set_protection(from, to, guarded ? PROT_READ : protection);
        if (result != 0) return result;
    }
    return 0;
}

void CodeWatch::forget(std::uint64_t start, std::uint64_t end) {
    std::erase_if(pages_, [=](const auto& entry) {
        return entry.first >= start / kPage && entry.first < (end + kPage - 1) / kPage;
    });
}

}  // namespace assay::native
