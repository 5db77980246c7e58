// The checks of assay/cache_policy.h: a policy and a prefetcher get random references.
#include "tools/check_plugin/policy_checks.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <assay/cache_policy.h>
#include <assay/vprofiler.h>

#include <dlfcn.h>
#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace assay::check {
namespace {

constexpr int kReferences = 20'000;

template <typename Table>
std::optional<Table> table_in(void* library, const char* symbol, std::size_t version1,
                              Report& report) {
    const auto* const given = static_cast<const Table*>(dlsym(library, symbol));
    if (!given) return std::nullopt;
    if (given->version == 0 || given->version > CP_VERSION) {
        report.broken(symbol, fmt::format("version is {}: set it to CP_VERSION", given->version));
        return std::nullopt;
    }
    const std::size_t needed = given->version == 1 ? version1 : sizeof(Table);
    if (given->size < needed) {
        report.broken(
            symbol, fmt::format("size is {}: set it to the table's size, {}", given->size, needed));
        return std::nullopt;
    }
    Table table{};
    std::memcpy(&table, given, needed);
    return table;
}

std::string creation_failed;  // what cp_cache_t::error was told

cp_cache_t described(std::uint64_t sets, std::uint32_t ways) {
    cp_cache_t cache{};
    cache.size = sizeof cache;
    cache.level = 1;
    cache.name = "D1";
    cache.sets = sets;
    cache.ways = ways;
    cache.line_bytes = 64;
    cache.seed = cache.degree = cache.distance = 1;
    cache.error = [](const char* message) { creation_failed = message; };
    return cache;
}

template <typename Table, typename Old>
void* created(const Table& table, const cp_cache_t& cache, Report& report, const Old& old) {
    const char* const function = table.create_for ? "create_for" : "create";
    creation_failed.clear();
    report.calling(function);
    void* const made = table.create_for ? table.create_for(&cache) : old();
    if (!made) report.refused(function, creation_failed);
    return made;
}

// A cache that asks two objects of the policy, which must agree.
class PolicyTrial {
  public:
    PolicyTrial(const cp_replacement_t& table, std::uint64_t sets, std::uint32_t ways,
                Report& report)
        : table_(table), sets_(sets), ways_(ways), report_(report), lines_(sets * ways) {
        for (void*& object : objects_)
            object = created(table, described(sets, ways), report,
                             [&] { return table.create(sets, ways, 1); });
    }
    ~PolicyTrial() {
        report_.calling("destroy");
        for (void* const object : objects_)
            if (object) table_.destroy(object);
    }
    PolicyTrial(const PolicyTrial&) = delete;
    PolicyTrial& operator=(const PolicyTrial&) = delete;

    bool is_made() const { return objects_[0] && objects_[1]; }

    // False after a broken rule.
    bool refer(std::uint64_t line, const cp_access_t& access) {
        const std::uint64_t set = line % sets_;
        const auto first = lines_.begin() + static_cast<std::ptrdiff_t>(set * ways_);
        const auto end = first + ways_;
        const auto found = std::find(first, end, line + 1);
        if (found != end) {
            each("hit", [&](void* object) {
                table_.hit(object, set, static_cast<std::uint32_t>(found - first), &access);
            });
            return true;
        }
        auto free = std::find(first, end, 0);
        if (free == end) {
            const std::optional<std::uint32_t> way = victim(set, access);
            if (!way) return false;
            if (*way == CP_BYPASS) return true;
            free = first + *way;
            leave(set, *way);
        }
        *free = line + 1;
        each("fill", [&](void* object) {
            table_.fill(object, set, static_cast<std::uint32_t>(free - first), &access);
        });
        return true;
    }
    // As another core's write, or an inclusive cache does.
    void invalidate(std::uint64_t place) {
        if (lines_[place] == 0) return;
        lines_[place] = 0;
        leave(place / ways_, static_cast<std::uint32_t>(place % ways_));
    }

  private:
    template <typename Call>
    void each(const char* function, const Call& call) {
        report_.calling(function);
        for (void* const object : objects_) call(object);
    }
    void leave(std::uint64_t set, std::uint32_t way) {
        if (table_.leave) each("leave", [&](void* object) { table_.leave(object, set, way); });
    }
    std::optional<std::uint32_t> victim(std::uint64_t set, const cp_access_t& access) {
        std::array<std::uint32_t, 2> ways{};
        report_.calling("victim");
        for (std::size_t i = 0; i < 2; ++i) ways[i] = table_.victim(objects_[i], set, &access);
        if (ways[0] != ways[1]) {
            report_.broken("victim",
                           "two objects decide differently after the same calls: it must depend on "
                           "its arguments and its object only, or runs differ");
            return std::nullopt;
        }
        if (ways[0] >= ways_ && !(ways[0] == CP_BYPASS && table_.version > 1)) {
            report_.broken("victim", fmt::format("returns way {} of {}: ways are numbered from 0",
                                                 ways[0], ways_));
            return std::nullopt;
        }
        return ways[0];
    }

    const cp_replacement_t& table_;
    const std::uint64_t sets_;
    const std::uint32_t ways_;
    Report& report_;
    std::array<void*, 2> objects_{};
    std::vector<std::uint64_t> lines_;  // plus 1, set by set; 0: free
};

cp_access_t random_access(std::uint64_t line, std::mt19937_64& random) {
    cp_access_t access{};
    access.size = sizeof access;
    access.prefetch = random() % 8 == 0;
    access.line = line;
    access.pc = 0x401000 + random() % 64 * 4;
    access.kind = random() % 3;
    access.core = 0;
    access.thread = static_cast<std::uint32_t>(line % 3);
    return access;
}

void check_replacement(const cp_replacement_t& table, Report& report) {
    if (!(table.create || table.create_for) || !table.destroy || !table.hit || !table.victim ||
        !table.fill)
        return report.broken(CP_REPLACEMENT_SYMBOL, "lacks a function that is required");
    struct Shape {
        std::uint64_t sets;
        std::uint32_t ways;
    };
    for (const auto& [sets, ways] : {Shape{1, 1}, {1, 4}, {64, 8}, {3, 16}, {16, 64}}) {
        PolicyTrial trial(table, sets, ways, report);
        if (!trial.is_made()) return;
        std::mt19937_64 random(sets * ways);
        for (int i = 0; i < kReferences; ++i) {
            const std::uint64_t line = random() % (3 * sets * ways);
            if (!trial.refer(line, random_access(line, random))) return;
            if (random() % 64 == 0) trial.invalidate(random() % (sets * ways));
        }
    }
}

void check_prefetcher(const cp_prefetcher_t& table, Report& report) {
    if (!(table.create || table.create_for) || !table.destroy || !(table.reference || table.wish))
        return report.broken(CP_PREFETCHER_SYMBOL, "lacks a function that is required");
    const char* const function = table.wish ? "wish" : "reference";
    std::array<void*, 2> objects{};
    for (void*& object : objects) {
        object = created(table, described(0, 0), report, [&] { return table.create(64, 1, 1); });
        if (!object) return;
    }
    constexpr std::uint32_t kRoom = 8;
    constexpr std::uint64_t kUntouched = 0x5a5a5a5a5a5a5a5a;
    std::mt19937_64 random(1);
    std::uint64_t address = 0x10000;
    bool is_right = true;
    for (int i = 0; i < kReferences && is_right; ++i) {
        // Strides, and now and then another place.
        address += i % 1000 < 900 ? 64 * (1 + static_cast<std::uint64_t>(i / 1000) % 5)
                                  : random() % 100'000;
        cp_access_t access = random_access(address / 64, random);
        access.prefetch = 0;
        access.address = address;
        access.hit = random() % 2;
        access.first = access.hit && random() % 4 == 0;
        std::array<std::array<cp_wish_t, kRoom + 1>, 2> wishes{};
        std::array<std::uint32_t, 2> counts{};
        for (std::size_t which = 0; which < 2; ++which) {
            std::array<std::uint64_t, kRoom + 1> lines;
            lines.fill(kUntouched);
            wishes[which][kRoom].line = kUntouched;
            report.calling(function);
            counts[which] = table.wish
                                ? table.wish(objects[which], &access, wishes[which].data(), kRoom)
                                : table.reference(objects[which], &access, lines.data(), kRoom);
            if (!table.wish)
                for (std::uint32_t n = 0; n <= kRoom; ++n) wishes[which][n].line = lines[n];
            is_right = counts[which] <= kRoom && wishes[which][kRoom].line == kUntouched;
            if (!is_right) {
                report.broken(function, fmt::format("returns {} lines where there is room for {}",
                                                    counts[which], kRoom));
                break;
            }
            if (table.fill) {
                report.calling("fill");
                table.fill(objects[which], &access);
            }
            if (table.leave) {
                report.calling("leave");
                table.leave(objects[which], access.line, 0, 0);
            }
        }
        if (is_right && (counts[0] != counts[1] ||
                         !std::equal(wishes[0].begin(), wishes[0].begin() + counts[0],
                                     wishes[1].begin(), [](const cp_wish_t& a, const cp_wish_t& b) {
                                         return a.line == b.line && a.level == b.level;
                                     }))) {
            report.broken(
                function,
                "two objects ask for different lines after the same calls: it must depend "
                "on its arguments and its object only, or runs differ");
            is_right = false;
        }
    }
    report.calling("destroy");
    for (void* const object : objects) table.destroy(object);
}

}  // namespace

bool is_policy_library(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto has = [&](std::string_view symbol) {
        return bytes.find(std::string(symbol) + '\0') != std::string::npos;
    };
    // The profiler cache has all of these texts.
    return !has(VP_DISPATCH_SYMBOL) && (has(CP_REPLACEMENT_SYMBOL) || has(CP_PREFETCHER_SYMBOL));
}

void check_policies(const std::string& path, Report& report) {
    report.calling("loading");
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return report.broken("loading", dlerror());
    if (const auto table = table_in<cp_replacement_t>(
            library, CP_REPLACEMENT_SYMBOL, offsetof(cp_replacement_t, create_for), report))
        check_replacement(*table, report);
    if (const auto table = table_in<cp_prefetcher_t>(library, CP_PREFETCHER_SYMBOL,
                                                     offsetof(cp_prefetcher_t, create_for), report))
        check_prefetcher(*table, report);
}

}  // namespace assay::check
