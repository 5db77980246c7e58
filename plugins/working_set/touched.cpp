#include "plugins/working_set/touched.h"

#include "plugins/common/sites.h"

#include <assay/text.hpp>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

namespace working_set {

Touched::Touched(std::uint32_t line_bytes)
    : line_shift_(static_cast<unsigned>(std::countr_zero(line_bytes))) {}

void Touched::learn(std::span<const trace_site_t> sites) {
    // A larger reference counts with the first bytes only, at most a line, as in the filter of the
    // capture.
    const auto most = static_cast<std::uint16_t>(1U << line_shift_);
    for (const trace_site_t& site : sites.subspan(last_byte_.size())) {
        last_byte_.push_back(sites::is_data(site)
                                 ? std::clamp<std::uint16_t>(site.bytes, 1, most) - 1U
                             : site.kind == TRACE_SITE_INTERVAL ? kInterval
                                                                : kOther);
    }
}

void Touched::process(std::uint32_t thread, std::span<const trace_record_t> records,
                      std::span<const std::uint32_t> contexts) {
    Own& own = threads_[thread];
    for (std::size_t i = 0; i < records.size(); ++i) {
        const trace_record_t& record = records[i];
        const std::uint32_t last = last_byte_[record.site];
        if (last == kInterval) {
            end_interval(own);
        } else if (last != kOther) {
            const std::uint32_t context = contexts.empty() ? 0 : contexts[i];
            touch(own, record.value, context, record.site);
            if ((record.value + last) >> line_shift_ != record.value >> line_shift_) [[unlikely]]
                touch(own, record.value + last, context, record.site);
        }
    }
}

void Touched::touch(Own& own, std::uint64_t address, std::uint32_t context, std::uint32_t site) {
    const std::uint64_t number = address >> kPageShift;
    const std::uint64_t in_page = address % (std::uint64_t{1} << kPageShift);
    const std::uint64_t bit = std::uint64_t{1} << (in_page >> line_shift_);
    Page& page = own.pages[number];
    const bool is_new_page = page.interval != own.interval;
    if (is_new_page) page = {0, own.interval};
    if (page.lines & bit) [[likely]]
        return;
    page.lines |= bit;
    std::uint64_t& ever = ever_[number];
    ++own.now.lines;
    count(kLines, context, site);
    if (is_new_page) {
        ++own.now.pages;
        count(kPages, context, site);
        if (ever == 0) count(kNewPages, context, site);
    }
    if (!(ever & bit)) count(kNewLines, context, site);
    ever |= bit;
}

void Touched::count(Event event, std::uint32_t context, std::uint32_t site) {
    const std::uint32_t row = rows_.of(context, site);
    if (row >= counts_.size()) counts_.resize(row + row / 2 + 64);
    ++counts_[row][event];
    ++totals_[event];
}

void Touched::end_interval(Own& own) {
    const Size size = std::exchange(own.now, {});
    if (own.sizes.size() < kMostIntervals)
        own.sizes.push_back(size);
    else
        ++own.left_out;
    // After 2^32 intervals the number wraps around. 0 is skipped, because it marks untouched pages.
    if (++own.interval == 0) own.interval = 1;
}

std::map<std::uint32_t, Touched::Thread> Touched::threads() const {
    return {threads_.begin(), threads_.end()};
}

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
            out += std::to_string(number + 1) + "," + std::to_string(begin) + "," +
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
