#include "plugins/branch/summary.h"

#include <assay/text.hpp>

namespace branch {
namespace {

using assay::right;
using assay::with_commas;

std::string percent(std::uint64_t part, std::uint64_t whole) {
    return assay::percent(part, whole, 1);
}

struct Widths {
    std::size_t all, conditional, indirect;
};

std::string counts(const char* label, std::uint64_t conditional, std::uint64_t indirect,
                   const Widths& widths) {
    return label + right(with_commas(conditional + indirect), widths.all) + "  (" +
           right(with_commas(conditional), widths.conditional) + " cond + " +
           right(with_commas(indirect), widths.indirect) + " ind)\n";
}

}  // namespace

std::string summarise(const std::uint64_t* t, bool returns) {
    const Widths widths{with_commas(t[kBc] + t[kBi]).size(), with_commas(t[kBc]).size(),
                        with_commas(t[kBi]).size()};
    std::string out = counts("Branches:     ", t[kBc], t[kBi], widths);
    out += counts("Mispredicts:  ", t[kBcm], t[kBim], widths);
    // The numbers end in one column, the per cent signs stand behind.
    out += "Mispred rate: " + right(percent(t[kBcm] + t[kBim], t[kBc] + t[kBi]), widths.all + 1) +
           " (" + right(percent(t[kBcm], t[kBc]), widths.conditional + 1) + "     + " +
           right(percent(t[kBim], t[kBi]), widths.indirect + 1) + "   )\n";
    if (!returns) return out;
    const std::size_t width = with_commas(t[kBr]).size();
    out += "\nReturns:      " + right(with_commas(t[kBr]), width) + "\n";
    out += "Mispredicts:  " + right(with_commas(t[kBrm]), width) + "\n";
    out += "Mispred rate: " + right(percent(t[kBrm], t[kBr]), width + 1) + "\n";
    return out;
}

}  // namespace branch
