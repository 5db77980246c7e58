// A new replacement policy for a cache: SRRIP-HP with two bits (Jaleel, Theobald, Steely and Emer,
// "High performance cache replacement using re-reference interval prediction", ISCA 2010), beside
// LRU. Lines are predicted to be used again late when they come in, and soon when they are hit;
// one that is predicted the latest goes.
#include <assay/profiler.hpp>

#include <algorithm>
#include <stdexcept>

namespace {

enum Event : std::uint32_t { kReferences, kMisses };

class Replacement final : public assay::Profiler {
  public:
    static constexpr const char* kName = "replacement";
    static constexpr const char* kDescription = "simulates a data cache with SRRIP replacement";
    static constexpr vp_event_t kEvents[] = {
        {"Refs", "data references, by line", "references"},
        {"Misses", "references that missed", "misses"},
    };
    static constexpr vp_derived_t kDerived[] = {{"miss rate", "Misses / Refs", "%"}};
    static constexpr vp_option_t kOptions[] = {
        {"policy", "srrip|lru", "srrip", "Which line goes.", VP_OPTION_TEXT, 0},
        {"sets", "N", "64", "Sets of the cache.", VP_OPTION_UNSIGNED, 0},
    };

    void option(std::string_view name, const std::string& value) override {
        if (name == "policy" && value != "srrip" && value != "lru")
            throw std::invalid_argument("--policy: srrip or lru");
        if (name == "policy") lru_ = value == "lru";
        if (name == "sets") sets_ = std::stoull(value);
        if (sets_ == 0 || sets_ > 1'000'000) throw std::invalid_argument("--sets: 1 to 1000000");
    }

    // Every reference: SRRIP does not forget a repeated one as LRU does.
    void capture(assay::Captures& wanted) override {
        ways_.assign(sets_ * kWays, {UINT64_MAX, lru_ ? UINT64_MAX : kLatest});
        wanted.references();
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        const auto sites = trace.sites();
        for (const trace_record_t& record : trace.records()) {
            const trace_site_t& site = sites[record.site];
            if (site.kind < TRACE_SITE_READ || site.kind > TRACE_SITE_MODIFY) continue;
            Counts& counts = counts_[record.site];
            const std::uint64_t last = (record.value + site.bytes - 1) / kLine;
            for (std::uint64_t line = record.value / kLine; line <= last; ++line) {
                ++counts.references;
                counts.misses += !hits(line);
            }
        }
    }

    void finish(assay::Trace& trace, assay::Samples& samples) override {
        for (std::uint32_t i = 0; i < trace.sites().size(); ++i) {
            const std::uint64_t pc = trace.instrs()[trace.sites()[i].instr].pc;
            samples.count(pc, kReferences, counts_[i].references);
            samples.count(pc, kMisses, counts_[i].misses);
        }
    }

  private:
    static constexpr std::uint64_t kWays = 8, kLine = 64, kSoon = 0, kLate = 2, kLatest = 3;
    struct Way {
        std::uint64_t line, rank;  // SRRIP: the prediction; LRU: less than any used before
    };
    struct Counts {
        std::uint64_t references, misses;
    };

    // The policy: which rank a line gets, and whose line goes.
    bool hits(std::uint64_t line) {
        Way* const set = &ways_[line % sets_ * kWays];
        Way* way = std::find_if(set, set + kWays, [&](const Way& w) { return w.line == line; });
        const bool hit = way != set + kWays;
        const auto by_rank = [](const Way& a, const Way& b) { return a.rank < b.rank; };
        if (!hit) way = std::max_element(set, set + kWays, by_rank);
        if (!hit && !lru_)
            for (const std::uint64_t older = kLatest - way->rank;
                 Way & other : std::span(set, kWays))
                other.rank += older;
        way->line = line;
        way->rank = lru_ ? UINT64_MAX - ++time_ : hit ? kSoon : kLate;
        return hit;
    }

    bool lru_ = false;
    std::uint64_t sets_ = 64, time_ = 0;
    std::vector<Way> ways_;
    assay::Indexed<Counts> counts_;  // by site
};

}  // namespace

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = assay::dispatch<Replacement>();
