#include "plugins/cache/summary.h"

#include <assay/text.hpp>

#include <algorithm>

namespace cache {
namespace {

using assay::percent;
using assay::right;
using assay::with_commas;

std::string padded(std::uint64_t number, std::size_t width) {
    return right(with_commas(number), width);
}

struct Widths {
    std::size_t all, reads, writes;
};

std::string counts(const char* label, std::uint64_t reads, std::uint64_t writes,
                   const Widths& widths) {
    return std::string(label) + padded(reads + writes, widths.all) + "  (" +
           padded(reads, widths.reads) + " rd   + " + padded(writes, widths.writes) + " wr)\n";
}

std::string rates(const char* label, std::uint64_t reads, std::uint64_t read_whole,
                  std::uint64_t writes, std::uint64_t write_whole, const Widths& widths) {
    return std::string(label) +
           right(percent(reads + writes, read_whole + write_whole, 1), widths.all) + " (" +
           right(percent(reads, read_whole, 1), widths.reads) + "     + " +
           right(percent(writes, write_whole, 1), widths.writes) + "  )\n";
}

}  // namespace

std::string summarise(const std::uint64_t* t, bool simulated, bool with_ll) {
    const Widths widths{std::max(with_commas(t[kIr]).size(), with_commas(t[kDr] + t[kDw]).size()),
                        with_commas(t[kDr]).size(), with_commas(t[kDw]).size()};
    std::string out = "I   refs:      " + padded(t[kIr], widths.all) + "\n";
    if (!simulated) return out;
    out += "I1  misses:    " + padded(t[kI1mr], widths.all) + "\n";
    if (with_ll) out += "LLi misses:    " + padded(t[kILmr], widths.all) + "\n";
    out += "I1  miss rate: " + right(percent(t[kI1mr], t[kIr], 2), widths.all) + "\n";
    if (with_ll) out += "LLi miss rate: " + right(percent(t[kILmr], t[kIr], 2), widths.all) + "\n";
    out += "\n";
    out += counts("D   refs:      ", t[kDr], t[kDw], widths);
    out += counts("D1  misses:    ", t[kD1mr], t[kD1mw], widths);
    if (with_ll) out += counts("LLd misses:    ", t[kDLmr], t[kDLmw], widths);
    out += rates("D1  miss rate: ", t[kD1mr], t[kDr], t[kD1mw], t[kDw], widths);
    if (!with_ll) return out;
    out += rates("LLd miss rate: ", t[kDLmr], t[kDr], t[kDLmw], t[kDw], widths) + "\n";
    out += counts("LL refs:       ", t[kI1mr] + t[kD1mr], t[kD1mw], widths);
    out += counts("LL misses:     ", t[kILmr] + t[kDLmr], t[kDLmw], widths);
    out += rates("LL miss rate:  ", t[kILmr] + t[kDLmr], t[kIr] + t[kDr], t[kDLmw], t[kDw], widths);
    return out;
}

}  // namespace cache
