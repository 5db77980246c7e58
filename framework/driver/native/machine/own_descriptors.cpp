#include "framework/driver/native/machine/own_descriptors.h"

#include "framework/trace/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <new>
#include <vector>

namespace assay::native {
namespace {

// A descriptor, and the process whose driver uses it. Its alignment tells clang that the atomic is
// lock-free.
struct alignas(std::uint64_t) Entry {
    int descriptor = -1;  // -1: unused
    pid_t owner = 0;
};

constexpr pid_t kGone = 0, kCommon = -1;  // owners

// The table is in memory that all processes share that share the descriptors. A process has three
// or four own descriptors, so hundreds of processes fit. A descriptor that does not fit is visible
// to the program.
struct Table {
    std::atomic<bool> shared = false;   // several processes share it, or did so before
    std::atomic<std::size_t> used = 0;  // later entries have never been used
    std::array<std::atomic<Entry>, 1000> entries;

    auto begin() { return entries.begin(); }
    auto end() { return entries.begin() + used.load(); }
};
static_assert(std::atomic<Entry>::is_always_lock_free);

Table& new_table(void* place) {
    void* memory = mmap(place, sizeof(Table), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | (place ? MAP_FIXED : 0), -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return *new (memory) Table;
}

Table& table() {
    static Table& own = new_table(nullptr);
    return own;
}

void add(int descriptor, pid_t owner) {
    Table& all = table();
    for (std::size_t at = 0; at < all.entries.size(); ++at) {
        Entry unused;
        std::size_t before = all.used.load();
        while (before <= at && !all.used.compare_exchange_weak(before, at + 1)) {
        }
        if (all.entries[at].compare_exchange_strong(unused, {descriptor, owner})) return;
    }
}

// Closes the descriptors of all entries that fulfil `wanted`.
template <typename Wanted>
void close_entries(const Wanted& wanted) {
    for (auto& entry : table()) {
        Entry found = entry.load();
        if (found.descriptor < 0 || !wanted(found)) continue;
        if (entry.compare_exchange_strong(found, {})) close(found.descriptor);
    }
}

std::vector<unsigned> sorted() {
    std::vector<unsigned> found;
    for (const auto& entry : table())
        if (const Entry own = entry.load(); own.descriptor >= 0)
            found.push_back(static_cast<unsigned>(own.descriptor));
    std::sort(found.begin(), found.end());
    return found;
}

// From here on, this process and the others do not see each other's changes.
void make_table_private(const std::vector<Entry>& entries) {
    Table& own = new_table(&table());
    std::copy(entries.begin(), entries.end(), own.entries.begin());
    own.used = entries.size();
}

bool is_gone(pid_t owner) {
    return owner == kGone || (owner != kCommon && kill(owner, 0) != 0 && errno == ESRCH);
}

int adopt(int descriptor, pid_t owner) {
    if (descriptor < 0) return descriptor;
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    add(descriptor, owner);
    return descriptor;
}

std::vector<Entry> entries() {
    return {table().begin(), table().end()};
}

}  // namespace

int own_descriptor(int descriptor) {
    return adopt_descriptor(trace::move_high(descriptor));
}

int adopt_descriptor(int descriptor) {
    return adopt(descriptor, getpid());
}

int adopt_common_descriptor(int descriptor) {
    return adopt(descriptor, kCommon);
}

void close_own_descriptor(int descriptor) {
    close_entries([&](const Entry& entry) { return entry.descriptor == descriptor; });
}

bool is_own_descriptor(long descriptor) {
    return descriptor >= 0 && std::any_of(table().begin(), table().end(), [&](const auto& entry) {
               return entry.load(std::memory_order_relaxed).descriptor == descriptor;
           });
}

long close_other_descriptors(unsigned first, unsigned last, unsigned flags) {
    const auto close_range = [flags](unsigned from, unsigned to) -> long {
        return syscall(SYS_close_range, from, to, flags) < 0 ? -errno : 0;
    };
    for (const unsigned own : sorted()) {
        if (own < first) continue;
        if (own > last) break;
        if (own > first)
            if (const long error = close_range(first, own - 1)) return error;
        if (own == last) return 0;
        first = own + 1;
    }
    return close_range(first, last);
}

void prepare_descriptors_for_fork(bool shared) {
    if (table().shared) close_entries([](const Entry& entry) { return is_gone(entry.owner); });
    if (shared) table().shared = true;
}

void leave_descriptors_to_parent(bool shared) {
    if (shared) return;
    make_table_private(entries());
    close_entries([](const Entry& entry) { return entry.owner != kCommon; });
}

void stop_sharing_descriptors() {
    if (!table().shared || unshare(CLONE_FILES) != 0) return;
    const std::vector<Entry> before = entries();
    // The entries stay in the shared table. Owner kGone tells the other processes to close them.
    for (auto& entry : table()) {
        Entry own = entry.load();
        if (own.owner == getpid()) entry.compare_exchange_strong(own, {own.descriptor, kGone});
    }
    make_table_private(before);
}

void close_shared_descriptors() {
    const pid_t self = getpid();
    if (table().shared) close_entries([&](const Entry& entry) { return entry.owner == self; });
}

}  // namespace assay::native
