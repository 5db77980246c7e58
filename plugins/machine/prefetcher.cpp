#include "plugins/machine/prefetcher.h"

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <vector>

namespace machine {
namespace {

bool is_trigger(const Prefetcher::Reference& reference) {
    return !reference.hit || reference.first;
}

// Tagged prefetching: after a miss, and after the first reference to a prefetched line (Smith,
// "Cache memories", ACM Computing Surveys 14, 1982).
class NextLine final : public Prefetcher {
  public:
    explicit NextLine(const Prefetch& prefetch)
        : degree_(prefetch.degree), distance_(prefetch.distance) {}

    void reference(const Reference& reference, Lines& wanted) override {
        if (!is_trigger(reference)) return;
        for (std::uint32_t i = 0; i < degree_; ++i) wanted.add(reference.line + distance_ + i);
    }

  private:
    std::uint32_t degree_, distance_;
};

class Stride final : public Prefetcher {
  public:
    Stride(const Prefetch& prefetch, std::uint32_t line_bytes)
        : table_(prefetch.degree, prefetch.distance,
                 static_cast<unsigned>(std::countr_zero(line_bytes))) {}

    void reference(const Reference& reference, Lines& wanted) override {
        table_.reference(reference.by.pc, reference.address,
                         [&](std::uint64_t line) { wanted.add(line); });
    }

  private:
    StrideTable table_;
};

// Sixteen streams of neighbouring lines, upwards or downwards. The third line confirms the
// direction (as in Tendler, Dodson, Fields, Le and Sinharoy, "POWER4 system microarchitecture", IBM
// Journal of Research and Development 46, 2002).
class Stream final : public Prefetcher {
  public:
    explicit Stream(const Prefetch& prefetch)
        : degree_(prefetch.degree), distance_(prefetch.distance) {}

    void reference(const Reference& reference, Lines& wanted) override {
        if (!is_trigger(reference)) return;
        const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const Entry& entry) {
            return continues(entry, reference.line);
        });
        if (found == streams_.end()) {
            if (streams_.size() == kStreams) streams_.pop_back();
            streams_.insert(streams_.begin(), Entry{reference.line, 0, 0});
            return;
        }
        Entry entry = *found;
        streams_.erase(found);
        entry.step = reference.line == entry.last + 1 ? 1 : -1;
        entry.last = reference.line;
        ++entry.confirmed;
        streams_.insert(streams_.begin(), entry);
        if (entry.confirmed < 2) return;
        for (std::uint32_t i = 0; i < degree_; ++i)
            wanted.add(entry.last + static_cast<std::uint64_t>(entry.step) * (distance_ + i));
    }

  private:
    static constexpr std::size_t kStreams = 16;
    struct Entry {
        std::uint64_t last;
        std::int64_t step;  // 0: unknown
        std::uint64_t confirmed;
    };
    static bool continues(const Entry& entry, std::uint64_t line) {
        return (entry.step != -1 && line == entry.last + 1) ||
               (entry.step != 1 && line == entry.last - 1);
    }

    std::uint32_t degree_, distance_;
    std::vector<Entry> streams_;  // the most recently continued stream first
};

// Michaud, "Best-offset hardware prefetching", HPCA 2016, with the paper's parameters. Prefetched
// lines arrive at once. Addresses are virtual, so prefetches may cross pages.
class BestOffset final : public Prefetcher {
  public:
    explicit BestOffset(const Prefetch& prefetch) : degree_(prefetch.degree), recent_(256) {
        for (std::uint32_t offset = 1; offset <= 256; ++offset) {
            std::uint32_t rest = offset;
            for (const std::uint32_t factor : {2u, 3u, 5u})
                while (rest % factor == 0) rest /= factor;
            if (rest == 1) offsets_.push_back(offset);
        }
        scores_.resize(offsets_.size());
    }

    void reference(const Reference& reference, Lines& wanted) override {
        if (!is_trigger(reference)) return;
        learn(reference.line);
        if (best_ == 0) return note(reference.line);
        for (std::uint32_t i = 1; i <= degree_; ++i) wanted.add(reference.line + i * best_);
        note(reference.line);
    }

  private:
    static constexpr std::uint32_t kMostScore = 31, kMostRounds = 100, kBadScore = 1;

    // When line Y arrives, prefetched with offset D, the paper notes line Y - D, which caused the
    // prefetch.
    void note(std::uint64_t line) { slot(line) = line + 1; }
    std::uint64_t& slot(std::uint64_t line) { return recent_[(line ^ line >> 8) % recent_.size()]; }

    void learn(std::uint64_t line) {
        const std::uint64_t before = line - offsets_[tested_];
        const bool found = slot(before) == before + 1;
        if (found) ++scores_[tested_];
        if (++tested_ < offsets_.size()) return;
        tested_ = 0;
        ++round_;
        const auto most = std::max_element(scores_.begin(), scores_.end());
        if (*most < kMostScore && round_ < kMostRounds) return;
        best_ = *most > kBadScore ? offsets_[static_cast<std::size_t>(most - scores_.begin())] : 0;
        std::fill(scores_.begin(), scores_.end(), 0);
        round_ = 0;
    }

    std::uint32_t degree_;
    std::vector<std::uint32_t> offsets_, scores_;
    std::vector<std::uint64_t> recent_;  // line numbers plus 1
    std::size_t tested_ = 0;
    std::uint32_t round_ = 0;
    std::uint32_t best_ = 1;  // 0: no prefetching
};

constexpr std::array kKindNames = {"next-line", "stride", "stream", "best-offset"};

}  // namespace

bool is_prefetcher(const std::string& kind) {
    return std::find(kKindNames.begin(), kKindNames.end(), kind) != kKindNames.end();
}

std::vector<std::string> prefetcher_names() {
    return {kKindNames.begin(), kKindNames.end()};
}

bool sees_hits(const Prefetch& prefetch) {
    return prefetch.kind == "stride" || !is_prefetcher(prefetch.kind);
}

std::unique_ptr<Prefetcher> built_in_prefetcher(const Prefetch& prefetch,
                                                std::uint32_t line_bytes) {
    const std::string& kind = prefetch.kind;
    if (kind == "next-line") return std::make_unique<NextLine>(prefetch);
    if (kind == "stride") return std::make_unique<Stride>(prefetch, line_bytes);
    if (kind == "stream") return std::make_unique<Stream>(prefetch);
    if (kind == "best-offset") return std::make_unique<BestOffset>(prefetch);
    return nullptr;
}

}  // namespace machine
