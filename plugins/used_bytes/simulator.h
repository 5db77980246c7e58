// The cache, fed with trace records.
#pragma once

#include "plugins/used_bytes/accounts.h"
#include "plugins/used_bytes/footprint_cache.h"

#include "assay/trace_types.h"

#include <span>
#include <vector>

namespace used_bytes {

class Simulator {
  public:
    // Throws std::bad_alloc.
    Simulator(const cache::Geometry& geometry, std::optional<SectionChoice> choice,
              Separation separation);

    struct Buffer {
        std::uint32_t thread;
        std::span<const trace_record_t> records;
        std::span<const std::uint32_t> contexts;  // by record
        std::span<const trace_marker_t> markers;
    };
    // `sites` is the whole table, of which the simulator already knows the beginning.
    void process(std::span<const trace_site_t> sites, const Buffer& buffer);
    // The program has ended: what is in the cache counts as well.
    void finish();

    const Accounts& accounts() const { return accounts_; }
    std::uint32_t line_bytes() const { return cache_.line_bytes(); }

  private:
    void learn();
    void run(const Buffer& buffer, std::size_t begin, std::size_t end);
    template <bool kUsual>
    void run(const Buffer& buffer, std::size_t begin, std::size_t end);
    void access(const trace_record_t& record, std::uint32_t context);

    FootprintCache cache_;
    Accounts accounts_;
    std::span<const trace_site_t> sites_;
    std::vector<std::uint8_t> sizes_;  // by site
};

}  // namespace used_bytes
