// Counts of lines and functions including what they call, of one event. Uses calling contexts if
// the profile has them, and otherwise the calls that were inlined. It receives the events of the
// Profile being read.
#pragma once

#include "framework/events/parser.h"
#include "tools/expressions/expressions.h"
#include "tools/profile/count_store.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace assay::annotate {

class InclusiveCounts final : public events::Handler {
  public:
    // Counts the first of these events that the files have, or else their first event.
    InclusiveCounts(std::vector<std::string> events, std::vector<Replacement> file_names,
                    std::vector<Replacement> function_names);

    // After the last file.
    void finish();
    // True if any function is known to call another one.
    bool any() const { return !lines_.empty(); }
    // `own` are the counts without calls. If a function calls itself, its inner calls are part of
    // the outermost one.
    std::uint64_t of_line(std::string_view file, std::uint32_t line, std::uint64_t own) const;
    std::uint64_t of_function(std::string_view name, std::uint64_t own) const;

  private:
    using Id = Strings::Id;
    using Sums = std::unordered_map<std::uint64_t, std::uint64_t>;
    // An inlined call.
    struct Site {
        std::uint32_t parent, line;
        Id file, caller;
    };
    struct Context {
        std::uint32_t parent, line;
        Id function;
        std::uint64_t own, inclusive;
    };
    static std::uint64_t key(std::uint32_t a, std::uint32_t b) {
        return std::uint64_t{a} << 32 | b;
    }

    void start(const events::Header& header) override;
    void site(const events::Site& site) override;
    void location(const events::Location& location) override;
    void line(std::uint32_t line, Counts counts) override;
    void line_sites(std::uint32_t site, std::uint64_t count) override;
    void stack(const events::Stack& stack, Counts counts) override;
    void call(const Call& call, Counts counts) override;

    void add_contexts();
    // Of the files with code of the function, the one with the highest counts.
    std::unordered_map<Id, Id> files_of_functions() const;

    const std::vector<std::string> events_;
    const std::vector<Replacement> file_names_, function_names_;
    std::size_t index_ = 0;  // of the event
    Strings names_;
    Sums lines_;                                    // by file and line: counts of called functions
    Sums functions_;                                // by function: the same
    Sums by_context_lines_, by_context_functions_;  // the same; functions with their own counts
    Sums own_;                                      // by (function, file)

    // State while a file is read.
    std::vector<Site> sites_;
    std::vector<Context> contexts_;
    Id file_ = 0, function_ = 0;
    std::vector<std::uint64_t> rows_;  // counts of the location's lines
    std::size_t next_row_ = 0;         // the row that line_sites() may name next
};

}  // namespace assay::annotate
