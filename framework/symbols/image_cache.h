// Keeps decompressed debug information in files for later runs, because decompressing that of libc
// takes longer than profiling a small program.
//
// Errors are ignored: a file that cannot be read or written counts as missing. Several processes
// may use a folder at once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace assay::symbols {

class ImageCache {
  public:
    // The files in `folder` take at most `most_bytes` together; the least recently used files are
    // removed. With an empty name, nothing is kept.
    explicit ImageCache(std::string folder, std::size_t most_bytes = std::size_t{1} << 30);

    // The user's folder: $XDG_CACHE_HOME/assay, or else ~/.cache/assay (XDG Base Directory
    // Specification). Empty if XDG_CACHE_HOME, or the home, does not exist or belongs to another
    // user.
    static std::string folder_of_user();

    struct Unmap {
        std::size_t size = 0;
        void operator()(char* bytes) const;
    };
    using Image = std::unique_ptr<char, Unmap>;
    // Maps the file privately, so changes do not reach the file. Null if no file has this name and
    // size.
    Image find(const std::string& name, std::size_t size) const;
    // `name` is the name of the file. An existing file stays as it is.
    void keep(const std::string& name, std::span<const char> image) const;

  private:
    void make_room(std::size_t bytes) const;

    std::string folder_;
    std::size_t most_bytes_;
};

}  // namespace assay::symbols
