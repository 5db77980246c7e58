#include "plugins/used_bytes/settings.h"

#include <assay/profiler.hpp>

namespace used_bytes {
namespace {

bool apply_separation(Separation& separation, std::string_view value) {
    separation = {};
    for (bool more = true; more;) {
        const std::size_t comma = value.find(',');
        const std::string_view word = value.substr(0, comma);
        more = comma != std::string_view::npos;
        if (more) value.remove_prefix(comma + 1);
        if (word == "section")
            separation.sections = true;
        else if (word == "arena")
            separation.arenas = true;
        else if (word == "thread")
            separation.threads = true;
        else
            return false;
    }
    return true;
}

}  // namespace

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
    } else if (name == "separate") {
        if (!apply_separation(settings.separation, value))
            throw assay::BadOption(name, value,
                                   "use section, arena and thread, separated by commas");
    } else if (name == "instructions") {
        settings.instructions = value == "yes";
    } else {
        settings.report = value;
    }
}

}  // namespace used_bytes
