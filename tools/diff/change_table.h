// Two columns for each event: by how much it changed, and what part of what it was that is.
#pragma once

#include "framework/events/header.h"
#include "tools/diff/changes.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay::diff {

class ChangeTable {
  public:
    // Of the events `shown`.
    ChangeTable(const events::Header& header, std::vector<std::size_t> shown, bool color);

    // Makes columns wide enough. All rows, before the first one is written.
    void fit(const Change& change);
    void fit(Counts counts);

    // Lines, with `text` behind the columns.
    std::string heading(std::string_view text) const;
    std::string row(Counts counts, std::string_view text) const;
    std::string row(const Change& change, std::string_view text) const;

  private:
    void fit_count(std::size_t column, const std::string& text);
    void append(std::string& out, std::size_t column, std::string_view count,
                std::string_view relative, std::string_view color) const;

    struct Width {
        std::size_t count = 0, relative = 0;
    };
    const events::Header& header_;
    std::vector<std::size_t> shown_;
    std::vector<Width> widths_;
    bool color_;
};

}  // namespace assay::diff
