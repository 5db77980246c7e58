// assay/series.hpp - a series for the events file: Profiler::series().
//
//     assay::Series curve("miss curve", {"cache size", "bytes"}, {{"misses", "misses"}});
//     curve.on_log_scale().adds_up();
//     for (...) curve.point({bytes, misses});
//     series(curve);
//
// vp_series_t in assay/vprofiler.h describes the meaning.
#ifndef ASSAY_SERIES_HPP
#define ASSAY_SERIES_HPP

#include <assay/vprofiler.h>

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace assay {

struct Axis {
    std::string name, unit;
};

class Series {
  public:
    Series(std::string name, Axis x, std::vector<Axis> columns, std::string description = {})
        : name_(std::move(name)),
          description_(std::move(description)),
          x_(std::move(x)),
          columns_(std::move(columns)) {}

    // Shows x on a logarithmic scale.
    Series& on_log_scale() {
        flags_ |= VP_SERIES_LOG_X;
        return *this;
    }
    // Adds up the numbers of several processes at the same x.
    Series& adds_up() {
        flags_ |= VP_SERIES_ADDS;
        return *this;
    }
    // Restricts the series to a thread (Trace::thread()) or to a phase.
    Series& of_thread(std::uint32_t thread) {
        thread_ = thread + 1;
        return *this;
    }
    Series& of_phase(std::string phase) {
        phase_ = std::move(phase);
        return *this;
    }

    // Adds a point: x, which must grow from point to point, and a number for each column. Throws
    // std::invalid_argument for another count of numbers.
    void point(std::initializer_list<std::uint64_t> numbers) {
        if (numbers.size() != 1 + columns_.size())
            throw std::invalid_argument("the series " + name_ + " has " +
                                        std::to_string(columns_.size()) +
                                        " columns: a point has x and as many numbers");
        numbers_.insert(numbers_.end(), numbers);
    }

    // Calls take(const vp_series_t*). The struct is valid during the call.
    template <typename Take>
    auto give(const Take& take) const {
        std::vector<vp_axis_t> columns;
        for (const Axis& column : columns_) columns.push_back(in_c(column));
        const vp_series_t given{sizeof given,
                                flags_,
                                name_.c_str(),
                                description_.empty() ? nullptr : description_.c_str(),
                                phase_.empty() ? nullptr : phase_.c_str(),
                                thread_,
                                static_cast<std::uint32_t>(columns.size()),
                                in_c(x_),
                                columns.data(),
                                numbers_.data(),
                                numbers_.size() / (1 + columns.size())};
        return take(&given);
    }

  private:
    static vp_axis_t in_c(const Axis& axis) { return {axis.name.c_str(), axis.unit.c_str()}; }

    std::string name_, description_, phase_;
    Axis x_;
    std::vector<Axis> columns_;
    std::vector<std::uint64_t> numbers_;  // by point
    std::uint32_t flags_ = 0, thread_ = 0;
};

}  // namespace assay

#endif
