// Where profilers, and the other parts of an installation, are.
#pragma once

#include "framework/support/error.h"

#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

namespace assay::collector {

// The folder of this executable.
std::string executable_folder();

// The path of the profiler in the file that is called `name`; a name with a slash is a path
// already.
std::optional<std::string> find_plugin_file(const std::string& name);

// Says where it was looked for.
Error no_plugin_error(const std::string& name);

// Whether the profiler at this path is one of those that come with assay.
bool is_own_plugin(const std::string& path);

// All profilers that find_plugin_file would find: name of the file and path, sorted by name.
struct FoundPlugin {
    std::string name, path;
};
std::vector<FoundPlugin> find_all_plugins();

// The native driver: in the build tree or installed. Throws Error.
std::string find_native_driver();

// Files that the collector needs open, in a process that it shares with profilers: one that closes
// all descriptors, as daemons do, or one too often, would leave it waiting for ever.

class OwnFiles {
  public:
    // What is open under this descriptor has to stay so.
    void add(int descriptor);
    // Whether they all are what they were.
    bool are_open() const;

  private:
    struct File {
        int descriptor;
        dev_t device;
        ino_t inode;
    };
    std::vector<File> files_;
};

}  // namespace assay::collector
