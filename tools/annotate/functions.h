// Selects functions, and writes tables of them: by file, by name, and by the calls that were
// inlined.
#pragma once

#include "tools/expressions/expressions.h"
#include "tools/output/output.h"
#include "tools/profile/display_names.h"
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
// Indices of all functions, the most important first.
std::vector<std::size_t> functions_in_order(const Profile& profile,
                                            const std::vector<SortColumn>& sort);

// Writes files with their functions, then functions with their files. Inlined functions and
// templates are in several files.
void write_functions(const Profile& profile, const Columns& columns,
                     const std::vector<SortColumn>& sort, const DisplayNames& names,
                     Output& output);

// The calls that were inlined. It receives the events of the Profile being read.
class InlinedCalls final : public events::Handler {
  public:
    InlinedCalls(std::vector<Replacement> file_names, std::vector<Replacement> function_names);

    // A function and its file, or a call in a function.
    struct Place {
        std::string_view file, function;
        std::uint32_t line;  // of the call; 0 if unknown
    };
    struct Row {
        Place function, call;
        Counts counts;
    };
    // Inlined functions at their calls, with their own counts there. Only rows above the threshold,
    // the most important first.
    std::vector<Row> inlined(const Profile& profile, const std::vector<SortColumn>& sort) const;
    // Functions that were not inlined but have inlined code. Their counts include that code. `call`
    // is unused.
    std::vector<Row> callers(const Profile& profile, const std::vector<SortColumn>& sort) const;

    // Adds the names of all functions.
    void add_names(DisplayNames& names) const;

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
    CountTable callers_;  // key: place of the function that was not inlined; the counts include
                          // inlined code
    std::set<std::uint32_t> has_inlined_;  // places of functions with inlined code
    std::vector<std::uint64_t> sum_;       // scratch

    // State while a file is read.
    std::vector<std::uint32_t> sites_;             // places of calls; [0] stands for no call
    std::vector<std::uint32_t> outermost_;         // by site: the function that was not inlined
    std::string file_, function_;                  // of the current location
    std::optional<std::uint32_t> function_place_;  // its place, once known
    std::vector<std::uint64_t> rows_;              // counts of the location's lines
    std::size_t next_row_ = 0;                     // the row that a line_sites() may name next
};

// Writes nothing if no function above the threshold was inlined.
void write_inlined(const InlinedCalls& calls, const Profile& profile, const Columns& columns,
                   const std::vector<SortColumn>& sort, const DisplayNames& names, Output& output);

}  // namespace assay::annotate
