#include "framework/driver/native/memory/page_kinds.h"

#include "assay/trace_types.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <algorithm>
#include <utility>

namespace assay::native {
namespace {

constexpr std::uint64_t kLargestPage = std::uint64_t{1} << 30;

PageKind of_size(std::uint64_t bytes) {
    return bytes >= kLargestPage       ? PageKind::k1G
           : bytes >= PageKinds::kUnit ? PageKind::k2M
                                       : PageKind::kSmall;
}

// The flags contain the logarithm of the page size. Without one the system's default applies; the
// driver takes x86-64's smallest size (mmap(2)).
PageKind of_hugetlb(long flags) {
    constexpr int kShift = 26, kMask = 0x3f, kDefault = 21;
    const long logarithm = flags >> kShift & kMask;
    return of_size(std::uint64_t{1} << (logarithm != 0 ? logarithm : kDefault));
}

std::uint64_t operation_of(PageKind kind) {
    switch (kind) {
        case PageKind::kPrivate:
            return TRACE_MARKER_PAGES_PRIVATE;
        case PageKind::kAdvised:
            return TRACE_MARKER_PAGES_ADVISED;
        case PageKind::k2M:
            return TRACE_MARKER_PAGES_2M;
        case PageKind::k1G:
            return TRACE_MARKER_PAGES_1G;
        default:
            return 0;
    }
}

std::uint64_t unit_down(std::uint64_t address) {
    return address & ~(PageKinds::kUnit - 1);
}
std::uint64_t unit_up(std::uint64_t address) {
    return unit_down(address + PageKinds::kUnit - 1);
}

}  // namespace

PageKind kind_of_mapping(long flags, int fd) {
    if (flags & MAP_ANONYMOUS) {
        if (flags & MAP_HUGETLB) return of_hugetlb(flags);
        if ((flags & MAP_TYPE) != MAP_PRIVATE) return PageKind::kSmall;
        // Since Linux 6.7 (include/linux/mman.h, calc_vm_flag_bits()).
        return flags & MAP_STACK ? PageKind::kAgainst : PageKind::kPrivate;
    }
    struct statfs system;
    if (fd < 0 || fstatfs(fd, &system) != 0 || system.f_type != HUGETLBFS_MAGIC)
        return PageKind::kSmall;
    return of_size(static_cast<std::uint64_t>(system.f_bsize));
}

// A hugetlb mapping ends with a whole page (mm/mmap.c, ksys_mmap_pgoff()).
void PageKinds::set(const Range& range, PageKind kind) {
    const std::uint64_t page = kind == PageKind::k1G   ? kLargestPage
                               : kind == PageKind::k2M ? kUnit
                                                       : 1;
    const Range whole{range.start, (range.end + page - 1) & ~(page - 1)};
    kinds_.set(whole, kind);
    touched_.push_back(whole);
}

void PageKinds::advise(const Range& range, bool huge) {
    std::vector<Range> parts;
    kinds_.each(range, [&](const Range& part, PageKind kind) {
        if (kind == PageKind::kPrivate || kind == PageKind::kAdvised || kind == PageKind::kAgainst)
            parts.push_back(part);
    });
    for (const Range& part : parts) set(part, huge ? PageKind::kAdvised : PageKind::kAgainst);
}

void PageKinds::move(const Range& from, const Range& to, bool keeps) {
    std::vector<std::pair<Range, PageKind>> parts;
    kinds_.each(from, [&](const Range& part, PageKind kind) { parts.emplace_back(part, kind); });
    if (!keeps) set(from, PageKind::kSmall);
    set(to, PageKind::kSmall);
    if (parts.empty()) return;
    parts.back().first.end = std::max(parts.back().first.end, from.start + (to.end - to.start));
    for (const auto& [part, kind] : parts) {
        const Range moved{to.start + (part.start - from.start), to.start + (part.end - from.start)};
        set({moved.start, std::min(moved.end, to.end)}, kind);
    }
}

std::vector<PageKinds::Change> PageKinds::units_of(const Range& range) const {
    std::vector<Change> units;
    const auto add = [&](std::uint64_t start, std::uint64_t end, std::uint64_t operation) {
        if (start >= end) return;
        if (!units.empty() && units.back().operation == operation)
            units.back().range.end = end;
        else
            units.push_back({{start, end}, operation});
    };
    std::uint64_t at = range.start;
    kinds_.each(range, [&](const Range& part, PageKind kind) {
        const std::uint64_t operation = operation_of(kind);
        const std::uint64_t start = std::max(unit_up(part.start), at), end = unit_down(part.end);
        if (operation == 0 || start >= end) return;
        add(at, start, 0);
        add(start, end, operation);
        at = end;
    });
    add(at, range.end, 0);
    return units;
}

std::vector<PageKinds::Change> PageKinds::take_changes() {
    std::vector<Change> changes;
    for (const Range& range : std::exchange(touched_, {}))
        for (const Change& now : units_of({unit_down(range.start), unit_up(range.end)})) {
            told_.each(now.range, [&](const Range& part, Told before) {
                if (before.operation == now.operation) return;
                changes.push_back({part, now.operation != 0
                                             ? now.operation
                                             : std::uint64_t{TRACE_MARKER_PAGES_4K}});
            });
            told_.set(now.range, {now.operation});
        }
    changes_ += changes.size();
    return changes;
}

void PageKinds::tell_anew() {
    touched_.clear();
    told_ = {};
    changes_ = 0;
    constexpr std::uint64_t kHighest = std::uint64_t{1} << 56;  // with five levels of page tables
    kinds_.each({0, kHighest}, [&](const Range& part, PageKind kind) {
        if (operation_of(kind) != 0) touched_.push_back(part);
    });
}

}  // namespace assay::native
