// Decompressed debug information of earlier runs, in files of the user's: to decompress that of
// libc takes longer than to profile a small program.
//
// A file that cannot be read or written, whatever the reason, is one that is not there. Several
// processes may use a folder at once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace assay::symbols {

class ImageCache {
  public:
    // Files of one folder. They take at most `most_bytes` together; those that have not been used
    // for longest make room. An empty name: nothing is kept.
    explicit ImageCache(std::string folder, std::size_t most_bytes = std::size_t{1} << 30);

    // The user's folder: $XDG_CACHE_HOME/assay, or else ~/.cache/assay (XDG Base Directory
    // Specification). Empty if that, or the home, is not there or not the user's.
    static std::string folder_of_user();

    struct Unmap {
        std::size_t size = 0;
        void operator()(char* bytes) const;
    };
    using Image = std::unique_ptr<char, Unmap>;
    // What was kept under the name, as pages of the file that can be written to without changing
    // it; null if there is no file of that size.
    Image find(const std::string& name, std::size_t size) const;
    // A name is a file's. One that has been kept is not kept again.
    void keep(const std::string& name, std::span<const char> image) const;

  private:
    void make_room(std::size_t bytes) const;

    std::string folder_;
    std::size_t most_bytes_;
};

}  // namespace assay::symbols
