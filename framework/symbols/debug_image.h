// Decompresses the debug sections of a file into a small ELF file in memory. libdw can decompress
// them itself, but takes four times as long: it uses zlib, decompresses one section after the
// other, and includes sections that assay never reads. It supports zstd only since elfutils 0.189.
#pragma once

#include "framework/symbols/elf_file.h"
#include "framework/symbols/image_cache.h"

#include <cstddef>
#include <memory>
#include <string>

namespace assay::symbols {

// Finds the file that holds the debug information of an object, if that is not the object itself.

bool has_dwarf(const ElfFile& file);

// The separate debug file of `object`, or null. Searches by build id below DEBUG_ROOT/.build-id.
// Then searches for the name in .gnu_debuglink in the folder of the object, in .debug/ there, and
// below DEBUG_ROOT/<folder of the object>. gdb searches the same places. A file of another build is
// rejected: the build ids must agree, or the checksums if there is no build id.
std::unique_ptr<ElfFile> find_debug_file(const ElfFile& object, const std::string& debug_root);

// The file that .gnu_debugaltlink of `file` names, or null. dwz writes such files; they hold
// entries that several debug files share.
std::unique_ptr<ElfFile> find_alternate_file(const ElfFile& file, const std::string& debug_root);

class DebugImage {
  public:
    // Null if no section is compressed, or if libdw must read the file itself. libdw must do so if
    // sections are damaged, if their compression is neither zlib nor zstd, or if functions are in
    // .dwo files. Large images are taken from `cache`, and kept there.
    static std::unique_ptr<DebugImage> make(const ElfFile& file,
                                            const ImageCache& cache = ImageCache(""));
    ~DebugImage();
    DebugImage(const DebugImage&) = delete;
    DebugImage& operator=(const DebugImage&) = delete;

    Elf* elf() const { return elf_; }
    std::size_t size() const { return size_; }

  private:
    DebugImage() = default;

    ImageCache::Image bytes_;
    std::size_t size_ = 0;
    Elf* elf_ = nullptr;
};

}  // namespace assay::symbols
