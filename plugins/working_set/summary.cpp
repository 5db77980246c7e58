#include "plugins/working_set/summary.h"

#include <assay/text.hpp>

#include <algorithm>
#include <cstdio>

namespace working_set {
namespace {

using assay::right;
using assay::with_commas;

std::string row(const char* label, std::uint64_t lines, std::uint64_t pages,
                std::uint32_t line_bytes) {
    char text[64];
    std::snprintf(text, sizeof text, "%-22s", label);
    return text + right(with_commas(lines), 14) + right(with_commas(lines * line_bytes), 18) +
           right(with_commas(pages), 12) + "\n";
}

}  // namespace

std::string summarise(const Touched& touched, std::uint32_t line_bytes,
                      std::uint64_t interval_size) {
    std::uint64_t intervals = 0, left_out = 0;
    Size sum, largest;
    for (const auto& [number, thread] : touched.threads()) {
        left_out += thread.left_out;
        intervals += thread.sizes.size();
        for (const Size& size : thread.sizes) {
            sum.lines += size.lines;
            sum.pages += size.pages;
            largest.lines = std::max(largest.lines, size.lines);
            largest.pages = std::max(largest.pages, size.pages);
        }
    }
    std::string out = "intervals of " + with_commas(interval_size) +
                      " instructions: " + with_commas(intervals + left_out) + "\n\n";
    out +=
        std::string(22, ' ') + right("lines", 14) + right("bytes", 18) + right("pages", 12) + "\n";
    if (intervals != 0) {
        out += row("average working set", sum.lines / intervals, sum.pages / intervals, line_bytes);
        out += row("largest", largest.lines, largest.pages, line_bytes);
    }
    out +=
        row("the whole run", touched.totals()[kNewLines], touched.totals()[kNewPages], line_bytes);
    return out;
}

std::string csv(const Touched& touched, std::uint64_t interval_size) {
    std::string out = "thread,instructions,lines,pages\n";
    for (const auto& [number, thread] : touched.threads()) {
        std::uint64_t begin = 0;
        for (const Size& size : thread.sizes) {
            out += std::to_string(number) + "," + std::to_string(begin) + "," +
                   std::to_string(size.lines) + "," + std::to_string(size.pages) + "\n";
            begin += interval_size;
        }
    }
    return out;
}

assay::Series series(std::uint32_t number, const Touched::Thread& thread,
                     std::uint64_t interval_size) {
    assay::Series sizes("working set", {"executed before", "instructions"},
                        {{"lines", "lines"}, {"pages", "pages"}},
                        "lines and pages touched in each interval of " +
                            with_commas(interval_size) + " instructions");
    sizes.of_thread(number);
    std::uint64_t begin = 0;
    for (const Size& size : thread.sizes) {
        sizes.point({begin, size.lines, size.pages});
        begin += interval_size;
    }
    return sizes;
}

}  // namespace working_set
