// Rows of a profile: their keys, their order, and the rows of a place.
#pragma once

#include "tools/profile/profile.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace assay {

inline auto key(const Profile::Line& line) {
    return std::tie(line.place, line.line, line.site);
}
inline auto key(const Profile::Instruction& at) {
    return std::tie(at.place, at.line, at.site, at.object, at.address);
}
inline auto key(const Profile::Values& values) {
    return std::tie(values.place, values.line, values.object, values.address, values.list.name);
}
inline auto key(const SourceLine& line) {
    return std::tie(line.line);
}
inline auto key(const SourceInstruction& at) {
    return std::tie(at.line, at.object, at.address);
}

template <typename Row>
bool comes_before(const Row& a, const Row& b) {
    return key(a) < key(b);
}

// Sorts in place, because rows may take most of the memory. The order of equal keys does not
// matter, because their rows are added up.
template <typename Row>
void sort_rows(std::vector<Row>& rows) {
    if (!std::is_sorted(rows.begin(), rows.end(), comes_before<Row>))
        std::sort(rows.begin(), rows.end(), comes_before<Row>);
}

// True if sorted rows have equal keys.
template <typename Row>
bool has_equal(const std::vector<Row>& rows) {
    const auto same = [](const Row& a, const Row& b) { return key(a) == key(b); };
    return std::adjacent_find(rows.begin(), rows.end(), same) != rows.end();
}

// Index of the first row of each place, and the end of the last place. Rows are sorted by place.
template <typename Row>
std::vector<std::size_t> beginnings(const std::vector<Row>& rows, std::size_t places) {
    std::vector<std::size_t> result;
    result.reserve(places + 1);
    for (std::size_t row = 0; row < rows.size(); ++row)
        while (result.size() <= rows[row].place) result.push_back(row);
    result.resize(places + 1, rows.size());
    return result;
}

template <typename Row>
std::span<const Row> rows_of(const std::vector<Row>& rows, const std::vector<std::size_t>& begins,
                             std::uint32_t place) {
    return std::span(rows).subspan(begins[place], begins[place + 1] - begins[place]);
}

// Sorts rows, and adds up rows with equal keys.
template <typename Row>
std::vector<Row> sums_of(std::vector<Row> rows) {
    std::sort(rows.begin(), rows.end(), comes_before<Row>);
    std::vector<Row> sums;
    for (Row& row : rows) {
        if (!sums.empty() && key(sums.back()) == key(row))
            add_counts(sums.back().counts, row.counts);
        else
            sums.push_back(std::move(row));
    }
    return sums;
}

}  // namespace assay
