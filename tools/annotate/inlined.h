// Which functions were inlined where, and what they count there.
#pragma once

#include "tools/annotate/functions.h"
#include "tools/annotate/profile.h"
#include "tools/annotate/table.h"
#include "tools/output/output.h"
#include "tools/replacement.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace assay::annotate {

// Receives what a Profile passes on while it reads.
class InlinedCalls final : public events::Handler {
  public:
    InlinedCalls(std::vector<Replacement> file_names, std::vector<Replacement> function_names);

    // A function with the file that it is in, or a call of one in a function.
    struct Place {
        std::string_view file, function;
        std::uint32_t line;  // of the call; 0 if unknown
    };
    // By index: what was inlined, where, and what it counts itself when called from there.
    std::size_t size() const { return counts_.size(); }
    Place callee(std::size_t index) const { return text_of(counts_.key(index) >> 32); }
    Place caller(std::size_t index) const { return text_of(counts_.key(index) & UINT32_MAX); }
    Counts counts(std::size_t index) const { return counts_.counts(index); }

    // Indices of those above the threshold, the most important first.
    std::vector<std::size_t> in_order(const Profile& profile,
                                      const std::vector<SortColumn>& sort) const;

  private:
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // file, function, line

    void start(const events::Header& header) override;
    void site(const events::Site& site) override;
    void location(const events::Location& location) override;
    void line(std::uint32_t line, Counts counts) override;
    void line_sites(std::uint32_t site, std::uint64_t count) override;

    std::uint32_t place(std::string_view file, std::string_view function, std::uint32_t line);
    Place text_of(std::uint64_t place) const;

    std::vector<Replacement> file_names_, function_names_;
    Names names_;
    std::vector<Key> places_;
    std::map<Key, std::uint32_t> place_indices_;
    CountTable counts_;  // key: place of the callee << 32 | place of the call

    // Of the file being read.
    std::vector<std::uint32_t> sites_;     // places of calls; the first stands for none
    std::string file_, function_;          // of the location
    std::optional<std::uint32_t> callee_;  // its place, if it has been asked for
    std::vector<std::uint64_t> rows_;      // counts of the location's lines
    std::size_t next_row_ = 0;             // whose site may follow
};

// Nothing if no function above the threshold was inlined.
void write_inlined(const InlinedCalls& calls, const Profile& profile, const Columns& columns,
                   const std::vector<SortColumn>& sort, Output& output);

}  // namespace assay::annotate
