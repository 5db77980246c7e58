#include "framework/collector/profilers/columns.h"

#include "framework/collector/profilers/profiler_handle.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

namespace assay::collector {
namespace {

using Renamed = std::map<std::string, std::string>;

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Replaces event names in a formula. Names may contain a minus, which is also an operator. The
// longest name that fits wins.
std::string rename_events(const std::string& formula, const Renamed& renamed) {
    std::string out;
    for (std::size_t i = 0; i < formula.size();) {
        const Renamed::value_type* best = nullptr;
        const bool at_word = i == 0 || !is_word(formula[i - 1]);
        for (const auto& entry : renamed) {
            const std::size_t end = i + entry.first.size();
            if (at_word && formula.compare(i, entry.first.size(), entry.first) == 0 &&
                (end == formula.size() || !is_word(formula[end])) &&
                (!best || entry.first.size() > best->first.size()))
                best = &entry;
        }
        out += best ? best->second : std::string(1, formula[i]);
        i += best ? best->first.size() : 1;
    }
    return out;
}

}  // namespace

Columns::Columns(const std::vector<std::unique_ptr<ProfilerHandle>>& profilers) {
    for (const auto& profiler : profilers) {
        first_.push_back(events_.size());
        Renamed renamed;
        std::vector<events::Event> own;
        for (const ProfilerEvent& event : profiler->events()) {
            const bool taken =
                std::any_of(events_.begin(), events_.end(),
                            [&](const events::Event& e) { return e.name == event.name; });
            const std::string name = taken ? profiler->name() + "." + event.name : event.name;
            renamed[event.name] = name;
            own.push_back({name, event.description, event.unit, profiler->name()});
        }
        events_.insert(events_.end(), own.begin(), own.end());
        std::vector<events::Derived>& formulas = derived_.emplace_back();
        for (const ProfilerDerived& figure : profiler->derived())
            formulas.push_back({figure.name, rename_events(figure.formula, renamed), figure.unit});
    }
    if (events_.size() > events::kMaxEvents)
        throw Error(
            fmt::format("the profilers have {} events together, but a file holds at most {}",
                        events_.size(), events::kMaxEvents));
}

namespace {

static_assert(VP_SERIES_MAX == events::kMostSeries);
static_assert(VP_SERIES_COLUMNS_MAX == events::kMostSeriesColumns);
static_assert(VP_SERIES_POINTS_MAX == events::kMostSeriesPoints);

// The size up to the last member of version 1.
constexpr std::size_t kSmallest = offsetof(vp_series_t, point_count) + sizeof(std::uint64_t);
constexpr std::size_t kLongestSeriesName = 256;
constexpr std::uint64_t kMostPoints = std::uint64_t{1} << 32;

class Copy {
  public:
    explicit Copy(const vp_series_t& given) : given_(given) {}

    GivenSeries take() {
        if (take_texts() && take_axes()) take_points();
        return {std::move(series_), std::move(problem_)};
    }

  private:
    bool fail(std::string problem) {
        problem_ = std::move(problem);
        return false;
    }

    // Takes the first line.
    bool take_text(const char* from, std::size_t most, const char* what, std::string& to) {
        std::string_view text = from ? from : "";
        text = text.substr(0, text.find('\n'));
        to = text;
        return text.size() <= most || fail(fmt::format("a series whose {} has {} bytes, more than "
                                                       "{}",
                                                       what, text.size(), most));
    }

    bool take_texts() {
        if (!take_text(given_.name, kLongestSeriesName, "name", series_.name) ||
            !take_text(given_.description, events::kMostSeriesText, "description",
                       series_.description) ||
            !take_text(given_.phase, kLongestSeriesName, "phase", series_.phase))
            return false;
        if (series_.name.empty()) return fail("a series without a name");
        series_.thread = given_.thread;
        series_.log_x = (given_.flags & VP_SERIES_LOG_X) != 0;
        series_.adds = (given_.flags & VP_SERIES_ADDS) != 0;
        return true;
    }

    bool take_axis(const vp_axis_t& from, events::Axis& to) {
        if (!take_text(from.name, kLongestSeriesName, "axis", to.name) ||
            !take_text(from.unit, kLongestSeriesName, "unit", to.unit))
            return false;
        return !to.name.empty() ||
               fail(fmt::format("the series {} with an axis without a name", series_.name));
    }

    bool take_axes() {
        const std::uint32_t count = given_.column_count;
        if (count == 0 || count > VP_SERIES_COLUMNS_MAX || !given_.columns)
            return fail(fmt::format("the series {} with {} columns, not 1 to {}", series_.name,
                                    given_.columns ? count : 0, unsigned{VP_SERIES_COLUMNS_MAX}));
        if (!take_axis(given_.x, series_.x)) return false;
        series_.columns.resize(count);
        for (std::uint32_t i = 0; i < count; ++i)
            if (!take_axis(given_.columns[i], series_.columns[i])) return false;
        return true;
    }

    bool take_points() {
        const std::uint64_t count = given_.point_count;
        const std::size_t width = series_.width();
        if (count > kMostPoints || (count != 0 && !given_.numbers))
            return fail(fmt::format("the series {} with {} points{}", series_.name, count,
                                    given_.numbers ? ", more than 2^32" : ", but no numbers"));
        series_.each = events::neighbours_of_one(count);
        std::uint64_t last_x = 0;
        for (std::uint64_t point = 0; point < count; ++point) {
            const std::uint64_t* const row = given_.numbers + point * width;
            if (point != 0 && row[0] <= last_x)
                return fail(
                    fmt::format("the series {}, whose x is {} at point {} and {} before: "
                                "it has to grow",
                                series_.name, row[0], point, last_x));
            last_x = row[0];
            if (point % series_.each == 0) {
                series_.numbers.insert(series_.numbers.end(), row, row + width);
                continue;
            }
            std::uint64_t* const kept = &series_.numbers[series_.numbers.size() - width];
            for (std::size_t i = 1; i < width; ++i) kept[i] = std::max(kept[i], row[i]);
        }
        return true;
    }

    const vp_series_t& given_;
    events::Series series_;
    std::string problem_;
};

}  // namespace

GivenSeries copy_series(const vp_series_t* given) {
    if (!given) return {{}, "a NULL pointer instead of a series"};
    if (given->size < kSmallest)
        return {{},
                fmt::format("a series of size {}, but one of version {} has {} bytes: set it to "
                            "sizeof(vp_series_t)",
                            given->size, VP_ABI_VERSION, kSmallest)};
    return Copy(*given).take();
}

}  // namespace assay::collector
