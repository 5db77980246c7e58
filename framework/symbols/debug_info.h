// The opened debug information of an object: its separate debug file, if it has one, and DWARF;
// and what was opened early, until someone needs it.
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
    // Opening decompresses all debug sections, which can take longer than anything else here. It
    // opens all files anew, so it may run on any thread.
    // Where variables lie is left out, unless `with_locations`: that takes longer to decompress.
    DebugInfo(const std::string& object_path, const std::string& debug_root,
              const ImageCache& cache, bool with_locations = false);

    // Null if it cannot be read.
    const ElfFile* object_file() const { return object_.get(); }
    // Null if the object holds its debug information itself, or has none.
    const ElfFile* separate_file() const { return separate_.get(); }
    // Null if there is none.
    Dwarf* dwarf() const { return dwarf_.get(); }
    // What it takes in memory, beside files that are mapped.
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

// Opened debug information that waits for the one who needs it. Any thread may call it, but for one
// object only one at a time.
class DebugInfoPool {
  public:
    DebugInfoPool(std::string debug_root, ImageCache cache)
        : debug_root_(std::move(debug_root)), cache_(std::move(cache)) {}

    // Whether the object was opened or taken before.
    bool knows(const std::string& object_path);
    // Opens an object before it is taken, unless that was done before, or is not worth it: most
    // programs load libraries of which they execute little, and all that waits is in memory.
    void open(const std::string& object_path);
    // Opens the object if that was not done before. Throws what DebugInfo throws.
    std::unique_ptr<DebugInfo> take(const std::string& object_path);
    // As if the object had never been opened.
    void forget(const std::string& object_path);
    // Keeps what was taken for the next who takes it, if it is worth it.
    void give_back(const std::string& object_path, std::unique_ptr<DebugInfo> info);

  private:
    const std::string debug_root_;
    const ImageCache cache_;

    std::mutex mutex_;
    std::set<std::string> known_;  // were opened, or taken
    std::map<std::string, std::unique_ptr<DebugInfo>> opened_;
    std::size_t bytes_ = 0;  // that were decompressed for them
};

}  // namespace assay::symbols
