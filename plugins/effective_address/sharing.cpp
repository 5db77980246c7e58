#include "plugins/effective_address/sharing.h"

#include "plugins/effective_address/footprint.h"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <tuple>
#include <utility>

namespace effective_address {
namespace {

constexpr std::size_t kFewestSharedSlots = 1024;
// Each pair of threads is compared. More threads of a line are ignored.
constexpr std::size_t kMostThreadsOfLine = 128;

std::uint64_t mask_of(std::uint64_t first, std::uint64_t last) {
    return (~std::uint64_t{0} << first) & (~std::uint64_t{0} >> (kLineBytes - 1 - last));
}

// Calls `use` for each sequence of touches with equal `key`.
template <typename Key, typename Use>
void for_each_group(std::span<const Touch> touches, const Key& key, const Use& use) {
    for (std::size_t begin = 0, end = 0; begin < touches.size(); begin = end) {
        while (end < touches.size() && key(touches[end]) == key(touches[begin])) ++end;
        use(touches.subspan(begin, end - begin));
    }
}

// The entries of references are scattered over the table. With small pages, each reference would
// also miss the TLB.
void use_large_pages(void* memory, std::size_t bytes) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto start = (reinterpret_cast<std::uintptr_t>(memory) + page - 1) & ~(page - 1);
    const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) & ~(page - 1);
    if (start < end) madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
}

}  // namespace

void Sharing::add(const ReferenceRun& run, std::uint32_t operand, std::uint16_t bytes,
                  std::uint32_t thread, std::uint32_t since) {
    Touch use{0, 0, 1, thread, operand, since};
    if (run.stride == 0) {
        use.count = run.count;
        return add_reference(run.end, bytes, use);
    }
    for (std::uint64_t i = run.count; i-- > 0;) add_reference(run.address(i), bytes, use);
}

void Sharing::add_reference(std::uint64_t address, std::uint16_t bytes, const Touch& use) {
    const std::uint64_t last = address + bytes - 1;
    for (std::uint64_t line = address >> kLineShift; line <= last >> kLineShift; ++line) {
        const std::uint64_t start = line << kLineShift;
        const std::uint64_t from = std::max(address, start) - start;
        const std::uint64_t to = std::min(last, start + kLineBytes - 1) - start;
        if (!looked_at(line)) continue;
        if (waiting_ == waiting_touches_.size()) add_waiting();
        Touch& touch = waiting_touches_[waiting_++];
        touch = {line, mask_of(from, to), use.count, use.thread, use.operand, use.since};
        if (!table_.empty()) __builtin_prefetch(&table_[hash_of(touch) & (table_.size() - 1)], 1);
    }
}

bool Sharing::looked_at(std::uint64_t line) const {
    return dropped_bits_ == 0 || (hash(line >> kLinesOfPageShift) & (scale() - 1)) == 0;
}

void Sharing::add_waiting() {
    for (std::size_t i = 0; i < waiting_; ++i)
        if (looked_at(waiting_touches_[i].line)) add_line(waiting_touches_[i]);
    waiting_ = 0;
}

void Sharing::add_line(const Touch& touch) {
    if (table_.empty()) table_.resize(kFewestSharedSlots);
    Touch* found = &slot_of(touch);
    if (found->count == 0) {
        if (used_ >= table_.size() / 4 * 3) {
            make_room();
            if (!looked_at(touch.line)) return;
            found = &slot_of(touch);
        }
        ++used_;
        *found = touch;
        return;
    }
    found->bytes |= touch.bytes;
    found->count += touch.count;
    found->since = std::min(found->since, touch.since);
}

std::size_t Sharing::hash_of(const Touch& touch) {
    const std::uint64_t thread = touch.thread;
    return hash(touch.line ^ std::uint64_t{touch.operand} << 40 ^ thread << 58 ^ thread);
}

Touch& Sharing::slot_of(const Touch& touch) {
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = hash_of(touch) & mask;
    while (table_[slot].count != 0 &&
           !(table_[slot].line == touch.line && table_[slot].operand == touch.operand &&
             table_[slot].thread == touch.thread))
        slot = (slot + 1) & mask;
    return table_[slot];
}

void Sharing::make_room() {
    std::vector<Touch> old = std::exchange(table_, {});
    if (old.size() >= most_) ++dropped_bits_;
    const std::size_t slots = old.size() < most_ ? old.size() * 2 : most_;
    table_.reserve(slots);
    use_large_pages(table_.data(), slots * sizeof(Touch));
    table_.resize(slots);
    used_ = 0;
    for (const Touch& touch : old) {
        if (touch.count == 0 || !looked_at(touch.line)) continue;
        slot_of(touch) = touch;
        ++used_;
    }
}

std::vector<Touch> Sharing::touches() {
    add_waiting();
    std::vector<Touch> found;
    for (const Touch& touch : table_)
        if (touch.count != 0) found.push_back(touch);
    std::sort(found.begin(), found.end(), [](const Touch& a, const Touch& b) {
        if (a.line != b.line) return a.line < b.line;
        return a.thread != b.thread ? a.thread < b.thread : a.operand < b.operand;
    });
    return found;
}

Relation relation(const ThreadBytes& a, const ThreadBytes& b) {
    if ((a.written | b.written) == 0 || a.touched == 0 || b.touched == 0) return Relation::kNone;
    const bool same = (a.written & b.touched) != 0 || (b.written & a.touched) != 0;
    return same ? Relation::kTrue : Relation::kFalse;
}

namespace {

class Evaluation {
  public:
    Evaluation(std::uint64_t scale, std::size_t operands,
               const std::function<bool(std::uint32_t)>& writes, const ThreadEnds& ends)
        : scale_(scale), writes_(writes), ends_(ends) {
        result_.by_operand.resize(operands);
    }

    void add_line(std::span<const Touch> line) {
        const std::vector<User> users = users_of(line);
        std::uint64_t references = 0, most = 0, writes = 0;  // of the threads that share it falsely
        bool truly = false;
        for (const User& user : users) {
            const auto [found, until] = strongest(user, users);
            if (found == Relation::kNone) continue;
            truly |= found == Relation::kTrue;
            std::uint64_t of_user = 0;
            for (const Touch& touch : user.touches) {
                if (!is_shared(touch, until, user)) continue;
                const std::uint64_t count = touch.count * scale_;
                Shared& shared = result_.by_operand[touch.operand];
                (found == Relation::kFalse ? shared.falsely : shared.truly) += count;
                if (found != Relation::kFalse) continue;
                of_user += count;
                if (writes_(touch.operand)) writes += count;
            }
            references += of_user;
            most = std::max(most, of_user);
        }
        if (truly) result_.lines_shared_truly += scale_;
        if (references == 0) return;
        result_.lines_shared_falsely += scale_;
        result_.lines.push_back({line, references, most_transfers(references, most, writes)});
    }

    void add_page(std::span<const Touch> page) {
        bool several = false, written = false;
        for (const Touch& touch : page) {
            several |= touch.thread != page.front().thread;
            written |= writes_(touch.operand);
        }
        if (!several || !written) return;
        result_.pages_shared += scale_;
        for (const Touch& touch : page)
            result_.by_operand[touch.operand].pages += touch.count * scale_;
    }

    SharingResult finish() {
        std::stable_sort(result_.lines.begin(), result_.lines.end(),
                         [](const FalselyShared& a, const FalselyShared& b) {
                             return std::tie(a.transfers, a.references) >
                                    std::tie(b.transfers, b.references);
                         });
        return std::move(result_);
    }

  private:
    static constexpr std::uint64_t kNoEnd = UINT64_MAX;

    // A thread that uses the line.
    struct User {
        std::span<const Touch> touches;
        std::uint64_t end;  // end of the thread, from ThreadEnds
        ThreadBytes bytes;  // of all its touches
    };
    struct Strongest {
        Relation relation;
        std::uint64_t until;  // the latest end of the other threads with this relation
    };

    std::vector<User> users_of(std::span<const Touch> line) const {
        std::vector<User> users;
        for_each_group(
            line, [](const Touch& t) { return t.thread; },
            [&](std::span<const Touch> touches) {
                if (users.size() == kMostThreadsOfLine) return;
                const auto end = ends_.find(touches.front().thread);
                users.push_back({touches, end == ends_.end() ? kNoEnd : end->second, {}});
                ThreadBytes& bytes = users.back().bytes;
                bytes.thread = touches.front().thread;
                for (const Touch& touch : touches) {
                    bytes.touched |= touch.bytes;
                    if (writes_(touch.operand)) bytes.written |= touch.bytes;
                }
            });
        return users;
    }

    // True if the thread shares the touch with a thread that has that end.
    static bool is_shared(const Touch& touch, std::uint64_t end, const User& user) {
        return touch.since < end || user.bytes.written != 0;
    }

    static ThreadBytes shared_bytes(const User& user, std::uint64_t end) {
        ThreadBytes bytes = user.bytes;
        if (bytes.written != 0 || end == kNoEnd) return bytes;
        bytes.touched = 0;
        for (const Touch& touch : user.touches)
            if (touch.since < end) bytes.touched |= touch.bytes;
        return bytes;
    }

    static Relation relation_of(const User& a, const User& b) {
        return relation(shared_bytes(a, b.end), shared_bytes(b, a.end));
    }

    // False sharing with any other thread comes first, because it can be repaired.
    static Strongest strongest(const User& user, const std::vector<User>& all) {
        Strongest found{Relation::kNone, 0};
        for (const User& other : all) {
            if (&other == &user) continue;
            const Relation with = relation_of(user, other);
            if (with == Relation::kNone) continue;
            if (with == Relation::kFalse && found.relation != Relation::kFalse)
                found = {with, other.end};
            else if (found.relation == Relation::kNone || found.relation == with)
                found = {with, std::max(found.until, other.end)};
        }
        return found;
    }

    // Each reference of another thread can be next to two references of the thread with the most,
    // and each write can be next to two references.
    static std::uint64_t most_transfers(std::uint64_t references, std::uint64_t most,
                                        std::uint64_t writes) {
        return std::min({references - 1, 2 * (references - most), 2 * writes});
    }

    const std::uint64_t scale_;
    const std::function<bool(std::uint32_t)>& writes_;
    const ThreadEnds& ends_;
    SharingResult result_;
};

}  // namespace

SharingResult evaluate(std::span<const Touch> touches, std::uint64_t scale, std::size_t operands,
                       const std::function<bool(std::uint32_t)>& writes, const ThreadEnds& ends) {
    Evaluation evaluation(scale, operands, writes, ends);
    for_each_group(
        touches, [](const Touch& t) { return t.line; },
        [&](std::span<const Touch> line) { evaluation.add_line(line); });
    for_each_group(
        touches, [](const Touch& t) { return t.line >> kLinesOfPageShift; },
        [&](std::span<const Touch> page) { evaluation.add_page(page); });
    return evaluation.finish();
}

}  // namespace effective_address
