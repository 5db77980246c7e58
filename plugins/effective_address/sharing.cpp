#include "plugins/effective_address/sharing.h"

#include "plugins/effective_address/hash.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace effective_address {
namespace {

constexpr std::size_t kFewestSlots = 1024;
// Pairs of threads are compared; more threads at one line than these are not.
constexpr std::size_t kMostThreadsOfLine = 128;

std::uint64_t mask_of(std::uint64_t first, std::uint64_t last) {
    return (~std::uint64_t{0} << first) & (~std::uint64_t{0} >> (kLineBytes - 1 - last));
}

// Calls `use` for each stretch of touches for which `key` is the same.
template <typename Key, typename Use>
void for_each_group(std::span<const Touch> touches, const Key& key, const Use& use) {
    for (std::size_t begin = 0, end = 0; begin < touches.size(); begin = end) {
        while (end < touches.size() && key(touches[end]) == key(touches[begin])) ++end;
        use(touches.subspan(begin, end - begin));
    }
}

template <typename Writes>
std::vector<ThreadBytes> bytes_by_thread(std::span<const Touch> line, const Writes& writes) {
    std::vector<ThreadBytes> threads;
    for (const Touch& touch : line) {
        if (threads.empty() || threads.back().thread != touch.thread)
            threads.push_back({touch.thread});
        threads.back().touched |= touch.bytes;
        if (writes(touch.operand)) threads.back().written |= touch.bytes;
    }
    if (threads.size() > kMostThreadsOfLine) threads.resize(kMostThreadsOfLine);
    return threads;
}

}  // namespace

void Sharing::add(const Run& run, std::uint32_t operand, std::uint16_t bytes,
                  std::uint32_t thread) {
    if (run.stride == 0) return add_reference(run.end, bytes, run.count, operand, thread);
    for (std::uint64_t i = run.count; i-- > 0;)
        add_reference(run.address(i), bytes, 1, operand, thread);
}

void Sharing::add_reference(std::uint64_t address, std::uint16_t bytes, std::uint64_t count,
                            std::uint32_t operand, std::uint32_t thread) {
    const std::uint64_t last = address + bytes - 1;
    for (std::uint64_t line = address >> kLineShift; line <= last >> kLineShift; ++line) {
        const std::uint64_t start = line << kLineShift;
        const std::uint64_t from = std::max(address, start) - start;
        const std::uint64_t to = std::min(last, start + kLineBytes - 1) - start;
        if (looked_at(line)) add_line({line, mask_of(from, to), count, operand, thread});
    }
}

bool Sharing::looked_at(std::uint64_t line) const {
    return (hash(line >> kLinesOfPageShift) & (scale() - 1)) == 0;
}

void Sharing::add_line(const Touch& touch) {
    if (table_.empty()) table_.resize(kFewestSlots);
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
}

Touch& Sharing::slot_of(const Touch& touch) {
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = hash(touch.line ^ std::uint64_t{touch.operand} << 40 ^
                            std::uint64_t{touch.thread} << 58 ^ touch.thread) &
                       mask;
    while (table_[slot].count != 0 &&
           std::tie(table_[slot].line, table_[slot].operand, table_[slot].thread) !=
               std::tie(touch.line, touch.operand, touch.thread))
        slot = (slot + 1) & mask;
    return table_[slot];
}

void Sharing::make_room() {
    std::vector<Touch> old = std::exchange(table_, {});
    if (old.size() >= most_) ++dropped_bits_;
    table_.resize(old.size() < most_ ? old.size() * 2 : most_);
    used_ = 0;
    for (const Touch& touch : old) {
        if (touch.count == 0 || !looked_at(touch.line)) continue;
        slot_of(touch) = touch;
        ++used_;
    }
}

std::vector<Touch> Sharing::touches() const {
    std::vector<Touch> found;
    for (const Touch& touch : table_)
        if (touch.count != 0) found.push_back(touch);
    std::sort(found.begin(), found.end(), [](const Touch& a, const Touch& b) {
        return std::tie(a.line, a.thread, a.operand) < std::tie(b.line, b.thread, b.operand);
    });
    return found;
}

Relation relation(const ThreadBytes& a, const ThreadBytes& b) {
    if (a.written == 0 && b.written == 0) return Relation::kNone;
    const bool same = (a.written & b.touched) != 0 || (b.written & a.touched) != 0;
    return same ? Relation::kTrue : Relation::kFalse;
}

namespace {

class Evaluation {
  public:
    Evaluation(std::uint64_t scale, std::size_t operands,
               const std::function<bool(std::uint32_t)>& writes)
        : scale_(scale), writes_(writes) {
        result_.by_operand.resize(operands);
    }

    void add_line(std::span<const Touch> line) {
        const std::vector<ThreadBytes> threads = bytes_by_thread(line, writes_);
        std::uint64_t false_references = 0;
        bool truly = false;
        for (const ThreadBytes& thread : threads) {
            const Relation found = strongest(thread, threads);
            if (found == Relation::kNone) continue;
            for (const Touch& touch : line) {
                if (touch.thread != thread.thread) continue;
                Shared& shared = result_.by_operand[touch.operand];
                (found == Relation::kFalse ? shared.falsely : shared.truly) += touch.count * scale_;
                if (found == Relation::kFalse) false_references += touch.count * scale_;
            }
            truly |= found == Relation::kTrue;
        }
        if (false_references != 0) result_.lines.push_back({line, false_references});
        if (false_references != 0) result_.lines_shared_falsely += scale_;
        if (truly) result_.lines_shared_truly += scale_;
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
                             return a.references > b.references;
                         });
        return std::move(result_);
    }

  private:
    // False sharing with any other thread is what can be repaired, so that it counts first.
    static Relation strongest(const ThreadBytes& thread, const std::vector<ThreadBytes>& all) {
        Relation found = Relation::kNone;
        for (const ThreadBytes& other : all) {
            if (other.thread == thread.thread) continue;
            const Relation with = relation(thread, other);
            if (with == Relation::kFalse) return with;
            if (with == Relation::kTrue) found = with;
        }
        return found;
    }

    const std::uint64_t scale_;
    const std::function<bool(std::uint32_t)>& writes_;
    SharingResult result_;
};

}  // namespace

SharingResult evaluate(std::span<const Touch> touches, std::uint64_t scale, std::size_t operands,
                       const std::function<bool(std::uint32_t)>& writes) {
    Evaluation evaluation(scale, operands, writes);
    for_each_group(
        touches, [](const Touch& t) { return t.line; },
        [&](std::span<const Touch> line) { evaluation.add_line(line); });
    for_each_group(
        touches, [](const Touch& t) { return t.line >> kLinesOfPageShift; },
        [&](std::span<const Touch> page) { evaluation.add_page(page); });
    return evaluation.finish();
}

}  // namespace effective_address
