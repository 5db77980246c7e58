// The debug sections of a file in which these are compressed, decompressed as a small ELF file in
// memory. libdw could do so itself, but takes four times as long: it uses zlib, one section after
// the other, and does not leave out those that are never read here. zstd it knows from elfutils
// 0.189 on.
#pragma once

#include "framework/symbols/elf_file.h"
#include "framework/symbols/image_cache.h"

#include <cstddef>
#include <memory>
#include <string>

namespace assay::symbols {

// Finds the file that holds an object's debug information, where that is not the object itself.

bool has_dwarf(const ElfFile& file);

// The separate debug file of `object`, or null: by build id below DEBUG_ROOT/.build-id, else by
// the name in .gnu_debuglink beside the object, in .debug/ beside it, or below
// DEBUG_ROOT/<folder of the object>. That is where gdb looks, too. A file that belongs to
// another build is not taken: build ids must agree, or without them the checksum.
std::unique_ptr<ElfFile> find_debug_file(const ElfFile& object, const std::string& debug_root);

// The file named by .gnu_debugaltlink of `file` (written by dwz, with what several debug files
// share), or null.
std::unique_ptr<ElfFile> find_alternate_file(const ElfFile& file, const std::string& debug_root);

class DebugImage {
  public:
    // Null if nothing is compressed, or if libdw has to deal with it: other compression than
    // zlib's and zstd's, damaged sections, functions in .dwo files. Large images are taken from
    // `cache`, and kept there.
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
