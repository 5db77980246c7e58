// The reports of the profiler.
#pragma once

#include "plugins/used_bytes/accounts.h"

#include <functional>
#include <string>
#include <vector>

namespace used_bytes {

struct ReportInput {
    const Accounts& accounts;
    std::string cache;  // its shape, as text
    std::uint64_t line_bytes;
    // The calls that lead to a point as lines of text, innermost first.
    std::function<std::vector<std::string>(PointNumber)> stack;
    double scale = 1;  // of bytes: trace_parser_scale
};

// Totals, and the shares of the most important sections, arenas and threads.
std::string short_report(const ReportInput& input);
// All sections, arenas and threads, and the lines that were read more than once.
std::string long_report(const ReportInput& input);

// The points whose stacks the long report shows.
std::vector<PointNumber> points_of_report(const Accounts& accounts);

}  // namespace used_bytes
