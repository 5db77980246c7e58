#include "framework/collector/hosted/find_profiler.h"

#include "framework/collector/hosted/hosted_profiler.h"
#include "framework/collector/profilers/plugin_search.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <optional>

namespace assay::collector {
namespace {

// The names of all of assay's own are those of their files.
std::optional<std::string> find_by_own_name(const std::string& name, CrashGuard& guard) {
    std::optional<std::string> found;
    for (const FoundPlugin& plugin : find_all_plugins()) {
        if (is_own_plugin(plugin.path)) continue;
        try {
            if (load_profiler(plugin.path, "", guard)->name() != name) continue;
        } catch (const Error&) {
            continue;  // it is not the one that is asked for, and says what is wrong when it is
        }
        if (found)
            throw Error(fmt::format("two profilers are named {}: {} and {}; name the file", name,
                                    *found, plugin.path));
        found = plugin.path;
    }
    return found;
}

}  // namespace

std::string find_profiler(const std::string& name, CrashGuard& guard) {
    if (const std::optional<std::string> path = find_plugin_file(name)) return *path;
    if (const std::optional<std::string> path = find_by_own_name(name, guard)) return *path;
    throw no_plugin_error(name);
}

}  // namespace assay::collector
