// Where profilers, and the other parts of an installation, are.
#pragma once

#include <string>
#include <vector>

namespace assay::collector {

// The folder of this executable.
std::string executable_folder();

// The path of the profiler called `name`; a name with a slash is a path already. Throws Error that
// says where it was looked for.
std::string find_plugin(const std::string& name);

// Whether the profiler at this path is one of those that come with assay.
bool is_own_plugin(const std::string& path);

// All profilers that find_plugin would find by name: name and path, sorted by name.
struct FoundPlugin {
    std::string name, path;
};
std::vector<FoundPlugin> find_all_plugins();

// The native driver: in the build tree or installed. Throws Error.
std::string find_native_driver();

}  // namespace assay::collector
