#include "plugins/used_bytes/settings.h"

#include <assay/profiler.hpp>

namespace used_bytes {
void apply(Settings& settings, std::string_view name, std::string_view value) {
    if (name == "cache" || name == "LL") {
        std::string why;
        const auto geometry = cache::parse_geometry(value, why);
        if (!geometry) throw assay::BadOption(name, value, why);
        settings.geometry = *geometry;
    } else if (name == "section") {
        settings.section = parse_section(value);
        if (settings.section->name.empty())
            throw assay::BadOption(name, value, "name a phase of the program");
    } else if (name == "instructions") {
        settings.instructions = value == "yes";
    } else {
        settings.report = value;
    }
}

}  // namespace used_bytes
