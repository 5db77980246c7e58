// Finds profilers and the other parts of an installation.
#pragma once

#include "framework/support/error.h"

#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

namespace assay::collector {

// The folder of this executable.
std::string executable_folder();

// The path of the file of the profiler `name`. A name with a slash is a path already.
std::optional<std::string> find_plugin_file(const std::string& name);

// An error that lists the searched folders.
Error no_plugin_error(const std::string& name);

// True if the profiler at this path comes with assay.
bool is_own_plugin(const std::string& path);

// All profilers that find_plugin_file() can find, by file name and path, sorted by name.
struct FoundPlugin {
    std::string name, path;
};
std::vector<FoundPlugin> find_all_plugins();

// The paths of the drivers, in the build tree or installed. Throw Error.
std::string find_native_driver();
std::string find_qemu_driver();

// Files that the collector needs open in a process that it shares with profilers. A profiler may
// close all descriptors, as daemons do, or one descriptor twice. The collector would then wait for
// ever.

class OwnFiles {
  public:
    // Adds the file that is open under this descriptor.
    void add(int descriptor);
    // True if each descriptor still has its file.
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
