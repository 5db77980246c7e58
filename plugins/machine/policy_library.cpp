// Policies and prefetchers of the user's own: libraries behind assay/cache_policy.h.
#include "plugins/machine/machine.h"
#include "plugins/machine/prefetcher.h"
#include "plugins/machine/replacement.h"

#include <assay/cache_policy.h>

#include <dlfcn.h>
#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace machine {
namespace {

[[noreturn]] void unusable(const std::string& path, const std::string& why) {
    throw std::runtime_error(path + ": " + why);
}

// The library stays loaded, because its objects live as long as the run.
template <typename Table>
const Table& table_of(const std::string& path, const char* symbol) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
        unusable(path, "it is not a regular file");  // opening a FIFO would block
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        std::string reason = dlerror();
        if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
        unusable(path, reason);
    }
    const auto* const table = static_cast<const Table*>(dlsym(library, symbol));
    if (!table) unusable(path, std::string("it does not export ") + symbol);
    if (table->size < sizeof(Table))
        unusable(path, std::string(symbol) + ".size is " + std::to_string(table->size) +
                           ": set it to the table's size, " + std::to_string(sizeof(Table)));
    if (table->version == 0 || table->version > CP_VERSION)
        unusable(path, "it was built for version " + std::to_string(table->version) +
                           " of assay/cache_policy.h; this assay knows version " +
                           std::to_string(CP_VERSION));
    return *table;
}

cp_access_t said(const Policy::Access& access) {
    cp_access_t given{};
    given.size = sizeof given;
    given.prefetch = access.prefetch ? 1 : 0;
    given.line = access.line;
    given.pc = access.pc;
    return given;
}

class OwnPolicy final : public Policy {
  public:
    OwnPolicy(const Replacement& replacement, std::uint64_t sets, std::uint32_t ways)
        : path_(replacement.policy),
          table_(table_of<cp_replacement_t>(path_, CP_REPLACEMENT_SYMBOL)),
          ways_(ways) {
        if (!table_.create || !table_.destroy || !table_.hit || !table_.victim || !table_.fill)
            unusable(path_, "its " CP_REPLACEMENT_SYMBOL " lacks a function that is required");
        self_ = table_.create(sets, ways, replacement.seed);
        if (!self_)
            unusable(path_, "its create returned nothing for " + std::to_string(sets) +
                                " sets of " + std::to_string(ways) + " ways");
    }
    ~OwnPolicy() override { table_.destroy(self_); }

    void hit(std::uint64_t set, std::uint32_t way, const Access& access) override {
        const cp_access_t given = said(access);
        table_.hit(self_, set, way, &given);
    }
    std::uint32_t victim(std::uint64_t set, const Access& access) override {
        const cp_access_t given = said(access);
        const std::uint32_t way = table_.victim(self_, set, &given);
        if (way >= ways_)
            unusable(path_, "its victim chose way " + std::to_string(way) + " of " +
                                std::to_string(ways_) + "; ways are numbered from 0");
        return way;
    }
    void fill(std::uint64_t set, std::uint32_t way, const Access& access) override {
        const cp_access_t given = said(access);
        table_.fill(self_, set, way, &given);
    }
    void leave(std::uint64_t set, std::uint32_t way) override {
        if (table_.leave) table_.leave(self_, set, way);
    }

  private:
    std::string path_;
    const cp_replacement_t& table_;
    std::uint32_t ways_;
    void* self_ = nullptr;
};

class OwnPrefetcher final : public Prefetcher {
  public:
    OwnPrefetcher(const Prefetch& prefetch, std::uint32_t line_bytes)
        : table_(table_of<cp_prefetcher_t>(prefetch.kind, CP_PREFETCHER_SYMBOL)) {
        if (!table_.create || !table_.destroy || !table_.reference)
            unusable(prefetch.kind, "its " CP_PREFETCHER_SYMBOL " lacks a function");
        self_ = table_.create(line_bytes, prefetch.degree, prefetch.distance);
        if (!self_) unusable(prefetch.kind, "its create returned nothing");
    }
    ~OwnPrefetcher() override { table_.destroy(self_); }

    void reference(const Reference& reference, Lines& wanted) override {
        cp_access_t given{};
        given.size = sizeof given;
        given.line = reference.line;
        given.address = reference.address;
        given.pc = reference.pc;
        given.hit = reference.hit ? 1 : 0;
        given.first = reference.first ? 1 : 0;
        std::uint64_t lines[kMostLines];
        const std::uint32_t count = table_.reference(self_, &given, lines, kMostLines);
        for (std::uint32_t i = 0; i < count && i < kMostLines; ++i) wanted.add(lines[i]);
    }

  private:
    const cp_prefetcher_t& table_;
    void* self_ = nullptr;
};

}  // namespace

std::vector<std::string> libraries(const Machine& machine) {
    std::vector<std::string> found;
    const auto add = [&found](const std::string& path) {
        if (std::find(found.begin(), found.end(), path) == found.end()) found.push_back(path);
    };
    for (const Cache& cache : machine.caches) {
        if (!is_policy(cache.replacement.policy)) add(cache.replacement.policy);
        for (const Prefetch& prefetch : cache.prefetch)
            if (!is_prefetcher(prefetch.kind)) add(prefetch.kind);
    }
    for (const Tlb& tlb : machine.tlbs)
        if (!is_policy(tlb.replacement.policy)) add(tlb.replacement.policy);
    return found;
}

std::unique_ptr<Policy> load_policy(const Replacement& replacement, std::uint64_t sets,
                                    std::uint32_t ways) {
    return std::make_unique<OwnPolicy>(replacement, sets, ways);
}

std::unique_ptr<Prefetcher> load_prefetcher(const Prefetch& prefetch, std::uint32_t line_bytes) {
    return std::make_unique<OwnPrefetcher>(prefetch, line_bytes);
}

}  // namespace machine
