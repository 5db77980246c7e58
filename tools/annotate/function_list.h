// The functions that cost most, one line each.
#pragma once

#include "framework/support/own_code.h"
#include "tools/annotate/inclusive.h"
#include "tools/output/output.h"
#include "tools/profile/display_names.h"
#include "tools/profile/profile.h"
#include "tools/table/brief.h"
#include "tools/table/table.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::annotate {

// Writes inclusive counts of the first sort event before the columns of a table. Writes nothing if
// the profile has no calls.
class InclusiveColumn {
  public:
    InclusiveColumn(const InclusiveCounts& counts, const Columns& columns, std::size_t event);

    std::string heading() const { return text("incl."); }
    std::string of_line(std::string_view file, std::uint32_t line, Counts own) const;
    std::string of_function(std::string_view name, Counts own) const;
    // Shares of the total, in percent.
    double own_share(std::uint64_t count) const;
    double line_share(std::string_view file, std::uint32_t line, std::uint64_t own) const;
    std::string blank() const { return text(""); }
    std::size_t width() const { return width_; }

  private:
    std::string text(std::string_view cell) const;
    std::string cell(std::uint64_t count) const;

    const InclusiveCounts& counts_;
    const Columns& columns_;
    const std::size_t event_;
    std::size_t width_ = 0;
};

class FunctionList {
  public:
    // Chooses functions above the threshold.
    FunctionList(const Profile& profile, const std::vector<SortColumn>& sort, const Extent& extent);

    // The source files in own code of all functions above the threshold, in their order. Without
    // any, the source files of the chosen functions.
    std::vector<std::uint32_t> files(const OwnCode& own) const;
    void write(const Columns& columns, const InclusiveColumn& inclusive, const DisplayNames& names,
               Output& output) const;

  private:
    const Profile& profile_;
    // Indices in the profile of the functions above the threshold, the most important first.
    std::vector<std::size_t> functions_;
    std::size_t shown_ = 0;  // how many of them are chosen
};

}  // namespace assay::annotate
