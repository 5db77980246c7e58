#include "framework/collector/profilers/plugin_search.h"

#include "framework/collector/install_paths.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace fs = std::filesystem;

namespace assay::collector {
namespace {

constexpr const char* kEnding = ".so";

bool is_file(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored);
}

// The build tree has a folder for each profiler. Other folders contain the libraries side by side.
struct Folder {
    fs::path path;
    bool nested;

    fs::path library(const std::string& name) const {
        return (nested ? path / name : path) / (name + kEnding);
    }
};

// The folders of assay's own profilers: in the build tree, and installed.
std::vector<Folder> own_folders() {
    const fs::path here = executable_folder();
    return {{here / "plugins", true}, {(here / kPluginsFromExecutable).lexically_normal(), false}};
}

std::vector<Folder> plugin_folders() {
    std::vector<Folder> folders;
    if (const char* given = std::getenv("ASSAY_PLUGIN_PATH"))
        for (const std::string& folder : split(given, ':'))
            if (!folder.empty()) folders.push_back({folder, false});
    for (const Folder& folder : own_folders()) folders.push_back(folder);
    return folders;
}

}  // namespace

std::string executable_folder() {
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    if (error)
        throw Error(fmt::format(
            "cannot read /proc/self/exe: {}: assay needs /proc (mount -t proc proc /proc)",
            error.message()));
    return self.parent_path();
}

std::optional<std::string> find_plugin_file(const std::string& name) {
    if (name.find('/') != std::string::npos) return name;
    for (const Folder& folder : plugin_folders())
        if (const fs::path path = folder.library(name); is_file(path)) return fs::absolute(path);
    return {};
}

Error no_plugin_error(const std::string& name) {
    std::vector<std::string> names, places;
    for (const FoundPlugin& found : find_all_plugins()) names.push_back(found.name);
    for (const Folder& folder : plugin_folders()) places.push_back(folder.path);
    const std::string meant = nearest(name, names);
    return Error(fmt::format(
        "no profiler named {} in {}{}", name, join(places, ", "),
        meant.empty() ? " (see: assay plugins)" : fmt::format("; did you mean {}?", meant)));
}

bool is_own_plugin(const std::string& path) {
    const std::string name = fs::path(path).stem();
    const std::vector<std::string> own = split(kOwnPlugins, ' ');
    const std::vector<Folder> folders = own_folders();
    return std::find(own.begin(), own.end(), name) != own.end() &&
           std::any_of(folders.begin(), folders.end(), [&](const Folder& folder) {
               std::error_code missing;
               return fs::equivalent(folder.library(name), path, missing);
           });
}

std::vector<FoundPlugin> find_all_plugins() {
    std::vector<FoundPlugin> found;
    for (const Folder& folder : plugin_folders()) {
        std::error_code missing;
        for (const auto& entry : fs::directory_iterator(folder.path, missing)) {
            const std::string name = entry.path().stem();
            const fs::path library = folder.library(name);
            const bool known = std::any_of(found.begin(), found.end(),
                                           [&](const FoundPlugin& f) { return f.name == name; });
            if (!known && is_file(library)) found.push_back({name, library});
        }
    }
    std::sort(found.begin(), found.end(),
              [](const FoundPlugin& a, const FoundPlugin& b) { return a.name < b.name; });
    return found;
}

namespace {

// `folder`: in the build tree.
std::string find_driver(const char* folder, const char* name) {
    const fs::path here = executable_folder();
    const fs::path built = here / "framework/driver" / folder / name;
    const fs::path installed = (here / kDriversFromExecutable / name).lexically_normal();
    for (const fs::path& path : {built, installed})
        if (access(path.c_str(), R_OK) == 0) return path;
    throw Error(fmt::format("cannot find the driver {}; install assay again", installed.string()));
}

}  // namespace

std::string find_native_driver() {
    return find_driver("native", "assay-driver-native");
}

std::string find_qemu_driver() {
    return find_driver("qemu", "assay-driver-qemu.so");
}

}  // namespace assay::collector

namespace assay::collector {

void OwnFiles::add(int descriptor) {
    struct stat status {};
    if (fstat(descriptor, &status) == 0)
        files_.push_back({descriptor, status.st_dev, status.st_ino});
}

// Compares the files, because another file can have been opened under the number.
bool OwnFiles::are_open() const {
    return std::all_of(files_.begin(), files_.end(), [](const File& file) {
        struct stat status {};
        return fstat(file.descriptor, &status) == 0 && status.st_dev == file.device &&
               status.st_ino == file.inode;
    });
}

}  // namespace assay::collector
