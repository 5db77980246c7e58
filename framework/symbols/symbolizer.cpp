#include "framework/symbols/symbolizer.h"

#include "framework/symbols/debug_file.h"
#include "framework/symbols/dwarf_resolver.h"
#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_store.h"
#include "framework/symbols/symbol_table.h"

#include <unordered_map>

namespace assay::symbols {

struct Symbolizer::Impl {
    // Null if the object cannot be read.
    const ElfFile* open(const std::string& path);

    std::string debug_root;
    std::unordered_map<std::string, std::unique_ptr<ElfFile>> objects;
    FrameStore frames;
};

const ElfFile* Symbolizer::Impl::open(const std::string& path) {
    auto [entry, is_new] = objects.try_emplace(path);
    if (is_new) entry->second = ElfFile::open(path);
    return entry->second.get();
}

Symbolizer::Symbolizer(std::string debug_root) : impl_(std::make_unique<Impl>()) {
    impl_->debug_root = std::move(debug_root);
}

Symbolizer::~Symbolizer() = default;

std::vector<Location> Symbolizer::resolve(const std::string& object_path,
                                          std::span<const std::uint64_t> addresses) {
    std::vector<Location> locations(addresses.size(), impl_->frames.unknown());
    const ElfFile* object = impl_->open(object_path);
    if (object == nullptr) return locations;

    std::unique_ptr<ElfFile> separate;
    if (!has_dwarf(*object)) separate = find_debug_file(*object, impl_->debug_root);
    std::vector<std::string_view> functions =
        symbol_names(*object, separate.get(), addresses, impl_->frames.names());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        bool repeated = i > 0 && functions[i].data() == functions[i - 1].data();
        locations[i] = repeated ? locations[i - 1] : impl_->frames.without_source(functions[i]);
    }

    const ElfFile* debug_file = separate != nullptr ? separate.get() : object;
    if (has_dwarf(*debug_file)) {
        resolve_with_dwarf({*object, *debug_file, impl_->debug_root}, addresses, functions,
                           impl_->frames, locations);
    }
    return locations;
}

std::uint64_t Symbolizer::address_of_offset(const std::string& object_path,
                                            std::uint64_t file_offset) {
    const ElfFile* object = impl_->open(object_path);
    return object != nullptr ? object->address_of_offset(file_offset) : 0;
}

std::string Symbolizer::build_id(const std::string& object_path) {
    const ElfFile* object = impl_->open(object_path);
    return object != nullptr ? object->build_id() : std::string();
}

}  // namespace assay::symbols
