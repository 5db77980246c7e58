// Lines and instructions of a place, by the sites where they were inlined, without counting
// anything twice: an instruction's counts are in its line's, too.
#pragma once

#include "tools/profile/profile.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace assay::exporting {

// Calls `of_instruction(instruction, counts)` for each instruction of a place with those of its
// counts, and behind those of a line `of_rest(line, counts)` with what no instruction accounts for,
// if there is anything. The counts are valid during the call.
template <typename OfInstruction, typename OfRest>
void for_each_part(const Profile& profile, std::uint32_t place, const OfInstruction& of_instruction,
                   const OfRest& of_rest) {
    std::vector<std::uint64_t> counts(profile.events().size()), rest(counts.size());
    auto at = profile.instructions(place).begin();
    const auto end = profile.instructions(place).end();
    for (const Profile::Line& line : profile.lines_by_site(place)) {
        profile.counts().read(line.row, rest);
        for (; at != end && std::tie(at->line, at->site) <= std::tie(line.line, line.site); ++at) {
            profile.counts().read(at->row, counts);
            for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= std::min(rest[i], counts[i]);
            of_instruction(*at, counts);
        }
        if (std::any_of(rest.begin(), rest.end(), [](std::uint64_t n) { return n != 0; }))
            of_rest(line, rest);
    }
}

}  // namespace assay::exporting
