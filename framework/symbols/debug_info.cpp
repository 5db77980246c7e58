#include "framework/symbols/debug_info.h"

#include "framework/symbols/debug_image.h"

#include <exception>

namespace assay::symbols {

DebugInfo::DwarfHandle DebugInfo::open_dwarf(const ElfFile& file, const ImageCache& cache,
                                             std::unique_ptr<DebugImage>& image) const {
    if (with_locations_) {
        DwarfHandle whole(dwarf_begin_elf(file.elf(), DWARF_C_READ, nullptr));
        if (whole != nullptr) return whole;
    }
    image = DebugImage::make(file, cache);
    Elf* elf = image != nullptr ? image->elf() : file.elf();
    DwarfHandle dwarf(dwarf_begin_elf(elf, DWARF_C_READ, nullptr));
    // libdw sorts the ranges at the first request and keeps them. This call does it in advance.
    Dwarf_Aranges* aranges = nullptr;
    if (dwarf != nullptr) dwarf_getaranges(dwarf.get(), &aranges, nullptr);
    return dwarf;
}

DebugInfo::DebugInfo(const std::string& object_path, const std::string& debug_root,
                     const ImageCache& cache, bool with_locations)
    : with_locations_(with_locations) {
    open_all(object_path, debug_root, cache);
    for (ElfFile* file : {object_.get(), separate_.get(), alternate_.get()}) {
        if (file != nullptr) file->close_descriptor();
    }
}

void DebugInfo::open_all(const std::string& object_path, const std::string& debug_root,
                         const ImageCache& cache) {
    object_ = ElfFile::open(object_path);
    if (object_ == nullptr) return;
    if (!has_dwarf(*object_)) separate_ = find_debug_file(*object_, debug_root);
    const ElfFile& file = separate_ != nullptr ? *separate_ : *object_;
    if (!has_dwarf(file)) return;
    dwarf_ = open_dwarf(file, cache, image_);
    if (dwarf_ == nullptr) return;
    alternate_ = find_alternate_file(file, debug_root);
    if (alternate_ != nullptr) alternate_dwarf_ = open_dwarf(*alternate_, cache, alternate_image_);
    if (alternate_dwarf_ != nullptr) dwarf_setalt(dwarf_.get(), alternate_dwarf_.get());
}

std::size_t DebugInfo::decompressed_bytes() const {
    std::size_t bytes = 0;
    for (const DebugImage* image : {image_.get(), alternate_image_.get()}) {
        if (image != nullptr) bytes += image->size();
    }
    return bytes;
}

namespace {

constexpr std::size_t kMostBytes = std::size_t{256} << 20;

}  // namespace

bool DebugInfoPool::knows(const std::string& object_path) {
    const std::lock_guard lock(mutex_);
    return known_.contains(object_path);
}

void DebugInfoPool::open(const std::string& object_path) {
    {
        const std::lock_guard lock(mutex_);
        if (bytes_ >= kMostBytes || known_.contains(object_path)) return;
    }
    try {
        give_back(object_path, std::make_unique<DebugInfo>(object_path, debug_root_, cache_));
    } catch (const std::exception&) {
        // take() opens the object again and throws the same error.
    }
}

std::unique_ptr<DebugInfo> DebugInfoPool::take(const std::string& object_path) {
    {
        const std::lock_guard lock(mutex_);
        known_.insert(object_path);
        if (auto entry = opened_.extract(object_path)) {
            bytes_ -= entry.mapped()->decompressed_bytes();
            return std::move(entry.mapped());
        }
    }
    return std::make_unique<DebugInfo>(object_path, debug_root_, cache_);
}

void DebugInfoPool::forget(const std::string& object_path) {
    const std::lock_guard lock(mutex_);
    known_.erase(object_path);
    if (const auto entry = opened_.extract(object_path))
        bytes_ -= entry.mapped()->decompressed_bytes();
}

void DebugInfoPool::give_back(const std::string& object_path, std::unique_ptr<DebugInfo> info) {
    const std::lock_guard lock(mutex_);
    known_.insert(object_path);
    if (bytes_ >= kMostBytes) return;
    bytes_ += info->decompressed_bytes();
    opened_[object_path] = std::move(info);
}

}  // namespace assay::symbols
