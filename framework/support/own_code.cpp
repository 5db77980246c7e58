#include "framework/support/own_code.h"

#include "framework/support/plain_names.h"

#include <algorithm>
#include <array>
#include <filesystem>

namespace assay {
namespace {

// Folders of the system's headers, and of sources that packages install.
constexpr std::array<std::string_view, 4> kSystemSources{"/usr/include/", "/usr/lib/", "/usr/src/",
                                                         "/rustc/"};
// Parts of paths of compilers' headers that lie elsewhere: GCC's, LLVM's.
constexpr std::array<std::string_view, 3> kCompilerParts{"/include/c++/", "/lib/gcc/", "/c++/v1/"};
constexpr std::array<std::string_view, 4> kSystemLibraries{"/lib/", "/lib64/", "/usr/lib/",
                                                           "/usr/lib64/"};

bool is_known(std::string_view name) {
    return !name.empty() && name != "???";
}

bool starts_with_one_of(std::string_view path, const auto& folders) {
    return std::any_of(folders.begin(), folders.end(),
                       [&](std::string_view folder) { return path.starts_with(folder); });
}

// Debug information writes paths such as /usr/lib/gcc/x86_64-linux-gnu/12/../../../include.
std::string normal(std::string_view path) {
    return std::filesystem::path(path).lexically_normal().string();
}

bool is_system_source(const std::string& path) {
    constexpr std::string_view kInInterpreter = "<frozen ";
    return starts_with_one_of(path, kSystemSources) || path.starts_with(kInInterpreter) ||
           std::any_of(kCompilerParts.begin(), kCompilerParts.end(),
                       [&](std::string_view part) { return path.find(part) != std::string::npos; });
}

// Code of an interpreter belongs to the interpreted program. The program `python` is one that was
// built from its sources, and perhaps not installed.
bool is_interpreter(std::string_view name) {
    constexpr std::array<std::string_view, 3> kBegins{"python3", "libpython3", "python_names.so"};
    return starts_with_one_of(name, kBegins);
}

// A program can lie below /usr/lib, such as cc1. The vDSO has no path.
bool is_system_library(std::string_view path) {
    if (path.starts_with("[vdso")) return true;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (is_interpreter(name)) return true;
    return starts_with_one_of(path, kSystemLibraries) && name.find(".so") != std::string_view::npos;
}

// What crt1.o, crtbegin.o and the linker put into a program, and instances of templates.
bool is_library_function(std::string_view function) {
    constexpr std::array<std::string_view, 9> kStart{"_start",
                                                     "_init",
                                                     "_fini",
                                                     "_dl_relocate_static_pie",
                                                     "deregister_tm_clones",
                                                     "register_tm_clones",
                                                     "__do_global_dtors_aux",
                                                     "frame_dummy",
                                                     "__libc_csu_init"};
    constexpr std::array<std::string_view, 5> kNamespaces{
        "std::", "__gnu_cxx::", "__cxxabiv1::", "operator new", "operator delete"};
    if (function.ends_with("@plt")) return true;
    if (std::find(kStart.begin(), kStart.end(), function) != kStart.end()) return true;
    return starts_with_one_of(plain_function(function), kNamespaces);
}

bool is_below(std::string_view path, std::string_view folder) {
    if (!path.starts_with(folder)) return false;
    return path.size() == folder.size() || folder.ends_with('/') || path[folder.size()] == '/';
}

}  // namespace

OwnCode::OwnCode(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
        std::error_code error;
        const std::string whole = std::filesystem::absolute(path, error).string();
        paths_.push_back(normal(path));
        if (!error) paths_.push_back(normal(whole));
    }
    // A folder can end in a slash.
    for (std::string& path : paths_)
        if (path.size() > 1 && path.ends_with('/')) path.pop_back();
}

bool OwnCode::has(std::string_view function, std::string_view file, std::string_view binary) const {
    const std::string source = is_known(file) ? normal(file) : "";
    const bool is_system =
        source.empty() ? is_library_function(function) : is_system_source(source);
    if (paths_.empty()) return !is_system && !is_system_library(binary);
    return std::any_of(paths_.begin(), paths_.end(), [&](const std::string& path) {
        return is_below(source, path) || (!is_system && is_below(binary, path));
    });
}

}  // namespace assay
