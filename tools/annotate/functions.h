// Which functions are shown, and the tables of them: by file, by name, and where they were inlined.
#pragma once

#include "tools/expressions/expressions.h"
#include "tools/output/output.h"
#include "tools/profile/profile.h"
#include "tools/table/table.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace assay::annotate {

// The files above the threshold, the most important first.
std::vector<std::uint32_t> files_to_show(const Profile& profile,
                                         const std::vector<SortColumn>& sort);
// Indices of functions in that order, all of them.
std::vector<std::size_t> functions_in_order(const Profile& profile,
                                            const std::vector<SortColumn>& sort);

// Files, each with its functions; and functions, each with its files, as those of inlined and
// template functions are.
void write_functions(const Profile& profile, const Columns& columns,
                     const std::vector<SortColumn>& sort, Output& output);

// Which functions were inlined where, what they count there, and what functions count with them.

// Receives what a Profile passes on while it reads.
class InlinedCalls final : public events::Handler {
  public:
    InlinedCalls(std::vector<Replacement> file_names, std::vector<Replacement> function_names);

    // A function with the file that it is in, or a call of one in a function.
    struct Place {
        std::string_view file, function;
        std::uint32_t line;  // of the call; 0 if unknown
    };
    struct Row {
        Place function, call;
        Counts counts;
    };
    // Those above the threshold, the most important first: what was inlined, at which call, and
    // what it counts itself there.
    std::vector<Row> calls(const Profile& profile, const std::vector<SortColumn>& sort) const;
    // Functions that were not inlined, with all that was inlined into them, if anything was. `call`
    // means nothing.
    std::vector<Row> callers(const Profile& profile, const std::vector<SortColumn>& sort) const;

  private:
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // file, function, line

    void start(const events::Header& header) override;
    void site(const events::Site& site) override;
    void location(const events::Location& location) override;
    void line(std::uint32_t line, Counts counts) override;
    void line_sites(std::uint32_t site, std::uint64_t count) override;

    std::uint32_t function_of_location();
    std::uint32_t place(std::string_view file, std::string_view function, std::uint32_t line);
    Place text_of(std::uint64_t place) const;

    std::vector<Replacement> file_names_, function_names_;
    Strings names_;
    std::vector<Key> places_;
    std::map<Key, std::uint32_t> place_indices_;
    CountTable calls_;    // key: place of the callee << 32 | place of the call
    CountTable callers_;  // key: place of the function; what is inlined counts for the outermost
    std::set<std::uint32_t> has_inlined_;  // places of those into which something was
    std::vector<std::uint64_t> sum_;       // scratch

    // Of the file being read.
    std::vector<std::uint32_t> sites_;             // places of calls; the first stands for none
    std::vector<std::uint32_t> outermost_;         // by site: the function that was not inlined
    std::string file_, function_;                  // of the location
    std::optional<std::uint32_t> function_place_;  // its place, if it has been asked for
    std::vector<std::uint64_t> rows_;              // counts of the location's lines
    std::size_t next_row_ = 0;                     // whose site may follow
};

// Nothing if no function above the threshold was inlined.
void write_inlined(const InlinedCalls& calls, const Profile& profile, const Columns& columns,
                   const std::vector<SortColumn>& sort, Output& output);

}  // namespace assay::annotate
