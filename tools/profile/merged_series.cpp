#include "tools/profile/merged_series.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <utility>

namespace assay {

namespace {

// As much as a series may say.
std::string names_of(const std::vector<std::string>& paths) {
    std::string names = join(paths, ", ");
    if (names.size() <= events::kMostSeriesText) return names;
    const std::string rest = fmt::format(" ... ({} files)", paths.size());
    names.resize(events::kMostSeriesText - rest.size());
    return names + rest;
}

}  // namespace

void MergedSeries::add(const std::string& path, std::span<const events::Series> series) {
    ++files_;
    // Of one file, several that look alike stay what they are.
    std::vector<bool> taken(series_.size());
    for (const events::Series& each : series) {
        bool added = false;
        for (std::size_t i = 0; i < taken.size() && !added; ++i) {
            if (taken[i] || series_[i].from != each.from) continue;
            try {
                added = events::add(series_[i], each);
            } catch (const Error& error) {
                throw Error(fmt::format("{}: with it, {}", path, error.what()));
            }
            if (!added) continue;
            taken[i] = true;
            paths_[i].push_back(path);
        }
        if (added) continue;
        if (series_.size() == events::kMostSeries) {
            ++left_out_;
            continue;
        }
        series_.push_back(each);
        paths_.push_back({path});
    }
}

void MergedSeries::finish() {
    for (std::size_t i = 0; i < series_.size(); ++i)
        if (paths_[i].size() < files_ && series_[i].from.empty())
            series_[i].from = names_of(paths_[i]);
}

}  // namespace assay
