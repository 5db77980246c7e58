// The opened debug information of an object: its DWARF, and its separate debug file if it has one.
// Also a pool of debug information that was opened in advance.
#pragma once

#include "framework/symbols/debug_image.h"
#include "framework/symbols/elf_file.h"

#include <elfutils/libdw.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace assay::symbols {

class DebugInfo {
  public:
    // Decompresses all debug sections, which is often the slowest step of resolving. May run on any
    // thread, because it opens its own files. Locations of variables take longer to decompress and
    // are read only if `with_locations` is set.
    DebugInfo(const std::string& object_path, const std::string& debug_root,
              const ImageCache& cache, bool with_locations = false);

    // Null if the file cannot be read.
    const ElfFile* object_file() const { return object_.get(); }
    // Null if the object has no separate debug file.
    const ElfFile* separate_file() const { return separate_.get(); }
    // Null without DWARF.
    Dwarf* dwarf() const { return dwarf_.get(); }
    // The memory that it takes, without mapped files.
    std::size_t decompressed_bytes() const;

  private:
    struct EndDwarf {
        void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
    };
    using DwarfHandle = std::unique_ptr<Dwarf, EndDwarf>;
    void open_all(const std::string& object_path, const std::string& debug_root,
                  const ImageCache& cache);
    DwarfHandle open_dwarf(const ElfFile& file, const ImageCache& cache,
                           std::unique_ptr<DebugImage>& image) const;
    const bool with_locations_;

    // In this order: a handle refers to the ones before it.
    std::unique_ptr<ElfFile> object_, separate_, alternate_;
    std::unique_ptr<DebugImage> image_, alternate_image_;
    DwarfHandle alternate_dwarf_, dwarf_;
};

// Debug information that was opened before it is needed. Any thread may call it, but two threads
// must not use the same object at a time.
class DebugInfoPool {
  public:
    DebugInfoPool(std::string debug_root, ImageCache cache)
        : debug_root_(std::move(debug_root)), cache_(std::move(cache)) {}

    // True if the object was opened or taken before.
    bool knows(const std::string& object_path);
    // Opens an object in advance. Does nothing if the object was opened or taken before, or if the
    // pool already holds much memory: most programs execute little of many libraries.
    void open(const std::string& object_path);
    // Removes the object from the pool, or opens it. Throws the exceptions of DebugInfo.
    std::unique_ptr<DebugInfo> take(const std::string& object_path);
    void forget(const std::string& object_path);
    // Keeps `info` for the next take(), unless the pool already holds much memory.
    void give_back(const std::string& object_path, std::unique_ptr<DebugInfo> info);

  private:
    const std::string debug_root_;
    const ImageCache cache_;

    std::mutex mutex_;
    std::set<std::string> known_;  // opened or taken
    std::map<std::string, std::unique_ptr<DebugInfo>> opened_;
    std::size_t bytes_ = 0;  // decompressed for opened_
};

}  // namespace assay::symbols
