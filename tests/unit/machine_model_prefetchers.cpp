#include "machine_model_cache.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace model {
namespace {

class NextLine : public Prefetcher {
  public:
    explicit NextLine(const machine::Prefetch& how) : how_(how) {}

  private:
    std::vector<std::uint64_t> reference(const Told& told) override {
        std::vector<std::uint64_t> wanted;
        for (std::uint32_t i = 0; told.is_trigger() && i < how_.degree; ++i)
            wanted.push_back(told.line + how_.distance + i);
        return wanted;
    }
    machine::Prefetch how_;
};

class Stride : public Prefetcher {
  public:
    Stride(const machine::Prefetch& how, std::uint32_t line_bytes)
        : how_(how), line_bytes_(line_bytes) {}

  private:
    struct Entry {
        std::uint64_t pc = 0, address = 0;
        std::int64_t stride = 0;
        int confidence = 0;
    };
    std::vector<std::uint64_t> reference(const Told& told) override {
        const std::uint64_t index = (told.pc ^ told.pc >> 8) % 256;
        if (!table_.contains(index) || table_[index].pc != told.pc) {
            table_[index] = {told.pc, told.address, 0, 0};
            return {};
        }
        Entry& entry = table_[index];
        const auto stride = static_cast<std::int64_t>(told.address - entry.address);
        entry.address = told.address;
        if (stride == entry.stride) {
            entry.confidence = std::min(entry.confidence + 1, 3);
        } else {
            entry.confidence = std::max(entry.confidence - 1, 0);
            if (entry.confidence == 0) entry.stride = stride;
        }
        std::vector<std::uint64_t> wanted;
        if (entry.confidence < 2 || entry.stride == 0) return wanted;
        for (std::uint32_t i = 0; i < how_.degree; ++i) {
            const std::int64_t ahead = entry.stride * (how_.distance + std::int64_t{i});
            const std::uint64_t line =
                (told.address + static_cast<std::uint64_t>(ahead)) / line_bytes_;
            if (line != told.line && (wanted.empty() || wanted.back() != line))
                wanted.push_back(line);
        }
        return wanted;
    }
    machine::Prefetch how_;
    std::uint32_t line_bytes_;
    std::map<std::uint64_t, Entry> table_;
};

class Stream : public Prefetcher {
  public:
    explicit Stream(const machine::Prefetch& how) : how_(how) {}

  private:
    struct Run {
        std::uint64_t last;
        int direction = 0;  // not known
        int continuations = 0;
    };
    std::vector<std::uint64_t> reference(const Told& told) override {
        if (!told.is_trigger()) return {};
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            Run run = runs_[i];
            const int direction = told.line == run.last + 1   ? 1
                                  : told.line + 1 == run.last ? -1
                                                              : 0;
            if (direction == 0 || (run.direction != 0 && run.direction != direction)) continue;
            run = {told.line, direction, run.continuations + 1};
            runs_.erase(runs_.begin() + static_cast<std::ptrdiff_t>(i));
            runs_.insert(runs_.begin(), run);
            return run.continuations < 2 ? std::vector<std::uint64_t>{} : ahead(run);
        }
        runs_.insert(runs_.begin(), Run{told.line});
        if (runs_.size() > 16) runs_.pop_back();
        return {};
    }
    std::vector<std::uint64_t> ahead(const Run& run) const {
        std::vector<std::uint64_t> wanted;
        for (std::uint32_t i = 0; i < how_.degree; ++i) {
            const std::uint64_t far = how_.distance + i;
            wanted.push_back(run.direction > 0 ? run.last + far : run.last - far);
        }
        return wanted;
    }
    machine::Prefetch how_;
    std::vector<Run> runs_;  // the one continued or begun last first
};

// Michaud, "Best-offset hardware prefetching", HPCA 2016; the numbers are its table 2's.
class BestOffset : public Prefetcher {
  public:
    explicit BestOffset(const machine::Prefetch& how) : how_(how) {
        for (int offset = 1; offset <= 256; ++offset) {
            int rest = offset;
            for (const int prime : {2, 3, 5})
                while (rest % prime == 0) rest /= prime;
            if (rest == 1) offsets_.push_back(offset);
        }
        scores_.assign(offsets_.size(), 0);
    }

  private:
    static constexpr int kHighestScore = 31, kMostRounds = 100, kBadScore = 1;

    static std::uint64_t slot(std::uint64_t line) { return (line ^ line >> 8) % 256; }
    bool is_recent(std::uint64_t line) const {
        const auto found = recent_.find(slot(line));
        return found != recent_.end() && found->second == line;
    }
    std::vector<std::uint64_t> reference(const Told& told) override {
        if (!told.is_trigger()) return {};
        learn(told.line);
        recent_[slot(told.line)] = told.line;
        std::vector<std::uint64_t> wanted;
        for (std::uint32_t i = 1; best_ != 0 && i <= how_.degree; ++i)
            wanted.push_back(told.line + i * static_cast<std::uint64_t>(best_));
        return wanted;
    }
    void learn(std::uint64_t line) {
        if (is_recent(line - static_cast<std::uint64_t>(offsets_[tested_]))) ++scores_[tested_];
        if (++tested_ < offsets_.size()) return;
        tested_ = 0;
        ++rounds_;
        const auto best = std::max_element(scores_.begin(), scores_.end());
        if (*best < kHighestScore && rounds_ < kMostRounds) return;
        best_ = *best > kBadScore ? offsets_[static_cast<std::size_t>(best - scores_.begin())] : 0;
        scores_.assign(offsets_.size(), 0);
        rounds_ = 0;
    }
    machine::Prefetch how_;
    std::vector<int> offsets_, scores_;
    std::size_t tested_ = 0;
    int rounds_ = 0;
    int best_ = 1;  // 0: none is good
    std::map<std::uint64_t, std::uint64_t> recent_;
};

}  // namespace

std::unique_ptr<Prefetcher> make_prefetcher(const machine::Prefetch& prefetch,
                                            std::uint32_t line_bytes) {
    if (prefetch.kind == "next-line") return std::make_unique<NextLine>(prefetch);
    if (prefetch.kind == "stride") return std::make_unique<Stride>(prefetch, line_bytes);
    if (prefetch.kind == "stream") return std::make_unique<Stream>(prefetch);
    if (prefetch.kind == "best-offset") return std::make_unique<BestOffset>(prefetch);
    throw std::invalid_argument(prefetch.kind);
}

}  // namespace model
