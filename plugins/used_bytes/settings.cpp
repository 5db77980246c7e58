#include "plugins/used_bytes/settings.h"

#include "plugins/common/profiler.h"

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

bool apply(Settings& settings, std::string_view name, std::string_view value, std::string& why) {
    if (name == "cache" || name == "LL") {
        if (const auto geometry = cache::parse_geometry(value, why)) {
            settings.geometry = *geometry;
            return true;
        }
    } else if (name == "section") {
        settings.section = parse_section(value);
        if (!settings.section->name.empty()) return true;
        why = "name a phase of the program";
    } else if (name == "separate") {
        if (apply_separation(settings.separation, value)) return true;
        why = "use section, arena and thread, separated by commas";
    } else if (name == "instructions") {
        settings.instructions = value == "yes";
        return true;
    } else if (name == "usage-report") {
        settings.report = value;
        return true;
    }
    return plugins::unusable(name, value, why);
}

}  // namespace used_bytes
