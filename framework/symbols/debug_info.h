// The opened debug information of an object: its separate debug file, if it has one, and DWARF.
#pragma once

#include "framework/symbols/debug_image.h"
#include "framework/symbols/elf_file.h"

#include <elfutils/libdw.h>

#include <memory>
#include <string>

namespace assay::symbols {

class DebugInfo {
  public:
    // Opening decompresses all debug sections, which can take longer than anything else here. It
    // opens all files anew, so it may run on any thread.
    DebugInfo(const std::string& object_path, const std::string& debug_root,
              const ImageCache& cache);

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
    static DwarfHandle open_dwarf(const ElfFile& file, const ImageCache& cache,
                                  std::unique_ptr<DebugImage>& image);

    // In this order: a handle refers to the ones before it.
    std::unique_ptr<ElfFile> object_, separate_, alternate_;
    std::unique_ptr<DebugImage> image_, alternate_image_;
    DwarfHandle alternate_dwarf_, dwarf_;
};

}  // namespace assay::symbols
