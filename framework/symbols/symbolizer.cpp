#include "framework/symbols/symbolizer.h"

#include "framework/symbols/debug_info.h"
#include "framework/symbols/dwarf_resolver.h"
#include "framework/symbols/elf_file.h"
#include "framework/symbols/frame_store.h"
#include "framework/symbols/symbol_table.h"

#include <future>
#include <unordered_map>

namespace assay::symbols {

struct Symbolizer::Impl {
    // Null if the object cannot be read.
    const ElfFile* open(const std::string& path);
    DebugInfo debug_info(const std::string& path);

    std::string debug_root;
    std::unordered_map<std::string, std::unique_ptr<ElfFile>> objects;
    std::unordered_map<std::string, std::future<DebugInfo>> prepared;
    FrameStore frames;
};

const ElfFile* Symbolizer::Impl::open(const std::string& path) {
    auto [entry, is_new] = objects.try_emplace(path);
    if (is_new) entry->second = ElfFile::open(path);
    return entry->second.get();
}

DebugInfo Symbolizer::Impl::debug_info(const std::string& path) {
    if (auto entry = prepared.extract(path)) return entry.mapped().get();
    return DebugInfo(path, debug_root);
}

Symbolizer::Symbolizer(std::string debug_root) : impl_(std::make_unique<Impl>()) {
    impl_->debug_root = std::move(debug_root);
}

Symbolizer::~Symbolizer() = default;

void Symbolizer::prepare(const std::string& object_path) {
    std::future<DebugInfo>& prepared = impl_->prepared[object_path];
    if (prepared.valid()) return;
    prepared = std::async(std::launch::async, [object_path, root = impl_->debug_root] {
        return DebugInfo(object_path, root);
    });
}

std::vector<Location> Symbolizer::resolve(const std::string& object_path,
                                          std::span<const std::uint64_t> addresses) {
    std::vector<Location> locations(addresses.size(), impl_->frames.unknown());
    const ElfFile* object = impl_->open(object_path);
    if (object == nullptr) return locations;

    const DebugInfo debug = impl_->debug_info(object_path);
    std::vector<std::string_view> functions =
        symbol_names(*object, debug.separate_file(), addresses, impl_->frames.names());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        bool repeated = i > 0 && functions[i].data() == functions[i - 1].data();
        locations[i] = repeated ? locations[i - 1] : impl_->frames.without_source(functions[i]);
    }

    if (debug.dwarf() != nullptr) {
        resolve_with_dwarf(debug.dwarf(), object->code_start(), addresses, functions, impl_->frames,
                           locations);
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
