// The profiler's options.
#pragma once

#include "plugins/common/geometry.h"
#include "plugins/used_bytes/accounts.h"

#include "assay/vprofiler.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace used_bytes {

struct Settings {
    cache::Geometry geometry{2097152, 8, 64};
    std::optional<SectionChoice> section;
    bool instructions = false;
    std::string report;  // file name; "" for none
};

inline constexpr std::array<vp_option_t, 5> kOptionTable{{
    {"cache", "SIZE,WAYS,LINE", "2097152,8,64",
     "The cache that is simulated: bytes, associativity, bytes of a line.", VP_OPTION_TEXT, 0},
    {"LL", "SIZE,WAYS,LINE", nullptr, "The same as --cache.", VP_OPTION_TEXT, 0},
    {"instructions", "yes|no", "no", "Fetches instructions through the cache, too.",
     VP_OPTION_YES_NO, 0},
    {"section", "NAME[#N]", nullptr,
     "Counts only what is fetched in phases of that name, or in the Nth of them.", VP_OPTION_TEXT,
     0},
    {"usage-report", "FILE", nullptr,
     "Writes a text about sections, arenas, threads, and lines that are fetched more than once.",
     VP_OPTION_OUTPUT_FILE, 0},
}};

// Takes one option over. Throws std::invalid_argument with the reason if its value is unusable.
void apply(Settings& settings, std::string_view name, std::string_view value);

}  // namespace used_bytes
