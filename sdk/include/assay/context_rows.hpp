// assay/context_rows.hpp - counts by site or instruction, split by calling context.
//
//     assay::ContextRows rows;
//     std::vector<Counts> counts;                      // by row
//
//     const std::uint32_t row = rows.of(contexts[i], records[i].site);
//     counts.resize(rows.size());                      // if it is a new one
//     ++counts[row].misses;
//
//     rows.each(site, [&](std::uint32_t row) {         // in finish()
//         samples.count(pc, kMisses, counts[row].misses, rows.context_of_samples(row));
//     });
//
// A row is a pair of a context and a site, or of other small numbers. Rows are numbered from 0 in
// the order of their first use. Finding the row of the context in which a site was seen last takes
// a nanosecond. Another row takes some ten, if prefetch() was called shortly before. A row takes
// about 32 bytes, a site 12. Not thread-safe.
#ifndef ASSAY_CONTEXT_ROWS_HPP
#define ASSAY_CONTEXT_ROWS_HPP

#include <assay/vprofiler.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay {

class ContextRows {
  public:
    static constexpr std::uint32_t kUsualMost = 16 * 1024 * 1024;

    // After `most` rows, new ones are of context 0, because there can be contexts times sites of
    // them.
    explicit ContextRows(std::uint32_t most = kUsualMost) : most_(most), slots_(1024) {}

    std::uint32_t of(std::uint32_t context, std::uint32_t site) {
        if (site < sites_.size() && sites_[site].context == context) [[likely]]
            return sites_[site].row;
        return look_up(context, site);
    }
    // Call this some calls before of(), with the same arguments.
    void prefetch(std::uint32_t context, std::uint32_t site) const {
        if (site < sites_.size() && sites_[site].context == context) [[likely]]
            return;
        __builtin_prefetch(&slots_[hash(context, site) & (slots_.size() - 1)]);
    }

    std::uint32_t size() const { return static_cast<std::uint32_t>(rows_.size()); }
    std::uint32_t site(std::uint32_t row) const { return rows_[row].site; }
    std::uint32_t context(std::uint32_t row) const { return rows_[row].context; }
    // For Samples::count: context 0 becomes VP_NO_CONTEXT.
    std::uint64_t context_of_samples(std::uint32_t row) const {
        return rows_[row].context == 0 ? VP_NO_CONTEXT : rows_[row].context;
    }
    // Calls `visit(row)` for all rows of a site.
    template <typename Visit>
    void each(std::uint32_t site, const Visit& visit) const {
        if (site >= sites_.size()) return;
        for (std::uint32_t row = sites_[site].first; row != kNone; row = rows_[row].next)
            visit(row);
    }

  private:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    struct Row {
        std::uint32_t context, site;
        std::uint32_t next;  // next row of the site
    };
    struct Site {
        std::uint32_t context = kNone, row = kNone;  // the last lookup
        std::uint32_t first = kNone;                 // row
    };
    struct Slot {
        std::uint32_t context = 0, site = 0;
        std::uint32_t row = kNone;  // kNone: the slot is free
    };

    std::uint32_t look_up(std::uint32_t context, std::uint32_t site) {
        if (site >= sites_.size()) sites_.resize(site + std::size_t{site} / 2 + 64);
        sites_[site].context = context;
        std::size_t slot = slot_of(context, site);
        if (slots_[slot].row == kNone && size() >= most_) {
            context = 0;
            slot = slot_of(context, site);
        }
        if (slots_[slot].row == kNone) slot = add(slot, context, site);
        return sites_[site].row = slots_[slot].row;
    }

    std::size_t add(std::size_t slot, std::uint32_t context, std::uint32_t site) {
        if ((rows_.size() + 1) * 4 > slots_.size() * 3) {
            slots_.assign(slots_.size() * 2, Slot{});
            for (std::uint32_t row = 0; row < size(); ++row)
                slots_[slot_of(rows_[row].context, rows_[row].site)] = {rows_[row].context,
                                                                        rows_[row].site, row};
            slot = slot_of(context, site);
        }
        slots_[slot] = {context, site, size()};
        rows_.push_back({context, site, sites_[site].first});
        sites_[site].first = slots_[slot].row;
        return slot;
    }

    static std::size_t hash(std::uint32_t context, std::uint32_t site) {
        // The multiplier of splitmix64's finaliser (Steele, Lea, Flood 2014).
        const std::uint64_t product =
            (std::uint64_t{context} << 32 | site) * std::uint64_t{0x94D049BB133111EB};
        return product ^ product >> 32;
    }
    // The slot of the row, or the free slot where it belongs.
    std::size_t slot_of(std::uint32_t context, std::uint32_t site) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = hash(context, site) & mask;
        while (slots_[at].row != kNone &&
               (slots_[at].context != context || slots_[at].site != site))
            at = (at + 1) & mask;
        return at;
    }

    std::uint32_t most_;
    std::vector<Row> rows_;
    std::vector<Site> sites_;
    std::vector<Slot> slots_;  // rows by hash: open addressing, a power of two
};

}  // namespace assay

#endif
