// Limits of a page. Smaller parts are added up, or left out with a note.
#pragma once

#include <algorithm>
#include <cstddef>

namespace assay::report {

struct Limits {
    // A page of this size loads at once and can be sent by mail.
    static constexpr std::size_t kMostPageBytes = 5'000'000;

    std::size_t functions = 20'000;
    std::size_t frames = 50'000;  // of the flame graph
    double calls = 1e-4;          // smallest share of functions and calls in the view of calls
    std::size_t source_lines = 200'000;
    std::size_t source_bytes = std::size_t{16} << 20;
    // For Python with two modules, these cover 98 % of the executed instructions and take 0.8 MB of
    // a page.
    std::size_t instructions = 60'000;
    std::size_t groups = 10'000, group_lines = 100'000, group_functions = 200'000;
    std::size_t value_lists = 2'000;

    // Limits for about this part of the contents.
    Limits scaled(double part) const {
        const auto of = [&](std::size_t limit) {
            return std::max(std::size_t{100},
                            static_cast<std::size_t>(static_cast<double>(limit) * part));
        };
        return {of(functions),       of(frames),       calls / part, of(source_lines),
                of(source_bytes),    of(instructions), of(groups),   of(group_lines),
                of(group_functions), of(value_lists)};
    }
};

}  // namespace assay::report
