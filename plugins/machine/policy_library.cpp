#include "plugins/machine/policy_library.h"

#include <assay/cache_policy.h>

#include <dlfcn.h>
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace machine {
namespace {

[[noreturn]] void unusable(const std::string& path, const std::string& why) {
    throw std::runtime_error(path + ": " + why);
}

// The library stays loaded, because its objects live as long as the run. `version1`: bytes of the
// table in version 1; later members are null then.
template <typename Table>
Table table_of(const std::string& path, const char* symbol, std::size_t version1) {
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
    const auto* const given = static_cast<const Table*>(dlsym(library, symbol));
    if (!given) unusable(path, std::string("it does not export ") + symbol);
    if (given->version == 0 || given->version > CP_VERSION)
        unusable(path, "it was built for version " + std::to_string(given->version) +
                           " of assay/cache_policy.h; this assay knows version " +
                           std::to_string(CP_VERSION));
    const std::size_t needed = given->version == 1 ? version1 : sizeof(Table);
    if (given->size < needed)
        unusable(path, std::string(symbol) + ".size is " + std::to_string(given->size) +
                           ": set it to the table's size, " + std::to_string(needed));
    Table table{};
    std::memcpy(&table, given, needed);
    return table;
}

// Makes the library's object. `make` gets a description without its parameters and error.
std::string reason;  // that create_for gave
void* create_for(void* (*make)(const cp_cache_t*), cp_cache_t cache, const PolicyPlace& place,
                 const Parameters& parameters) {
    std::vector<cp_parameter_t> given;
    for (const auto& [name, value] : parameters) given.push_back({name.c_str(), value.c_str()});
    cache.size = sizeof cache;
    cache.level = place.level;
    cache.name = place.name.c_str();
    cache.line_bytes = place.line_bytes;
    cache.parameters = given.data();
    cache.parameter_count = given.size();
    cache.error = [](const char* message) { reason = message; };
    reason.clear();
    return make(&cache);
}

void refuse_parameters(const std::string& path, const Parameters& parameters) {
    if (!parameters.empty())
        unusable(path, "it takes no parameters, but the machine gives " + parameters[0].first);
}

cp_access_t said(std::uint64_t line, const Referrer& by, bool prefetch, bool dirty) {
    cp_access_t given{};
    given.size = sizeof given;
    given.prefetch = prefetch ? 1 : 0;
    given.line = line;
    given.pc = by.pc;
    given.kind = static_cast<std::uint32_t>(by.kind);
    given.core = by.core;
    given.thread = referring_thread;
    given.dirty = dirty ? 1 : 0;
    return given;
}
cp_access_t said(const Policy::Access& access) {
    return said(access.line, access.by, access.prefetch, access.dirty);
}

class OwnPolicy final : public Policy {
  public:
    OwnPolicy(const Replacement& replacement, std::uint64_t sets, std::uint32_t ways,
              const PolicyPlace& place)
        : path_(replacement.policy),
          table_(table_of<cp_replacement_t>(path_, CP_REPLACEMENT_SYMBOL,
                                            offsetof(cp_replacement_t, create_for))),
          place_(place),
          ways_(ways) {
        if (!(table_.create || table_.create_for) || !table_.destroy || !table_.hit ||
            !table_.victim || !table_.fill)
            unusable(path_, "its " CP_REPLACEMENT_SYMBOL " lacks a function that is required");
        if (table_.create_for) {
            cp_cache_t cache{};
            cache.sets = sets;
            cache.ways = ways;
            cache.seed = replacement.seed;
            self_ = create_for(table_.create_for, cache, place, replacement.parameters);
        } else {
            refuse_parameters(path_, replacement.parameters);
            self_ = table_.create(sets, ways, replacement.seed);
        }
        if (!self_)
            unusable(path_, !reason.empty()
                                ? reason
                                : "its create returned nothing for " + std::to_string(sets) +
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
        if (way == CP_BYPASS) {
            if (place_.may_bypass) return kBypass;
            unusable(path_, "its victim bypassed " + place_.name +
                                ", which must get each line: see CP_BYPASS");
        }
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
    const cp_replacement_t table_;
    const PolicyPlace place_;
    std::uint32_t ways_;
    void* self_ = nullptr;
};

class OwnPrefetcher final : public Prefetcher {
  public:
    OwnPrefetcher(const Prefetch& prefetch, const PolicyPlace& place)
        : table_(table_of<cp_prefetcher_t>(prefetch.kind, CP_PREFETCHER_SYMBOL,
                                           offsetof(cp_prefetcher_t, create_for))) {
        const std::string& path = prefetch.kind;
        if (!(table_.create || table_.create_for) || !table_.destroy ||
            !(table_.reference || table_.wish))
            unusable(path, "its " CP_PREFETCHER_SYMBOL " lacks a function that is required");
        if (table_.create_for) {
            cp_cache_t cache{};
            cache.degree = prefetch.degree;
            cache.distance = prefetch.distance;
            self_ = create_for(table_.create_for, cache, place, prefetch.parameters);
        } else {
            refuse_parameters(path, prefetch.parameters);
            self_ = table_.create(place.line_bytes, prefetch.degree, prefetch.distance);
        }
        if (!self_) unusable(path, !reason.empty() ? reason : "its create returned nothing");
    }
    ~OwnPrefetcher() override { table_.destroy(self_); }

    void reference(const Reference& reference, Lines& wanted) override {
        cp_access_t given = said(reference.line, reference.by, false, false);
        given.address = reference.address;
        given.hit = reference.hit ? 1 : 0;
        given.first = reference.first ? 1 : 0;
        if (table_.wish) {
            cp_wish_t wishes[kMostLines] = {};
            const std::uint32_t count = table_.wish(self_, &given, wishes, kMostLines);
            for (std::uint32_t i = 0; i < count && i < kMostLines; ++i)
                wanted.add(wishes[i].line, wishes[i].level);
            return;
        }
        std::uint64_t lines[kMostLines];
        const std::uint32_t count = table_.reference(self_, &given, lines, kMostLines);
        for (std::uint32_t i = 0; i < count && i < kMostLines; ++i) wanted.add(lines[i]);
    }
    bool watches() const override { return table_.fill || table_.leave; }
    void fill(std::uint64_t line, const Referrer& by, bool prefetch, bool dirty) override {
        if (!table_.fill) return;
        const cp_access_t given = said(line, by, prefetch, dirty);
        table_.fill(self_, &given);
    }
    void leave(std::uint64_t line, bool dirty, bool unused) override {
        if (table_.leave) table_.leave(self_, line, dirty ? 1 : 0, unused ? 1 : 0);
    }

  private:
    const cp_prefetcher_t table_;
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

std::unique_ptr<Policy> make_policy(const Replacement& replacement, std::uint64_t sets,
                                    std::uint32_t ways, const PolicyPlace& place) {
    if (auto policy = built_in_policy(replacement, sets, ways)) return policy;
    return std::make_unique<OwnPolicy>(replacement, sets, ways, place);
}

std::unique_ptr<Prefetcher> make_prefetcher(const Prefetch& prefetch, const PolicyPlace& place) {
    if (auto prefetcher = built_in_prefetcher(prefetch, place.line_bytes)) return prefetcher;
    return std::make_unique<OwnPrefetcher>(prefetch, place);
}

}  // namespace machine
