#include "framework/symbols/object_symbols.h"

#include "framework/symbols/dwarf_resolver.h"
#include "framework/symbols/symbol_table.h"
#include "framework/symbols/unwind_functions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::symbols {

void KnownLocations::add(std::span<const Address> addresses, std::span<const Location> locations) {
    std::vector<Address> all_addresses;
    std::vector<Location> all_locations;
    all_addresses.reserve(addresses_.size() + addresses.size());
    all_locations.reserve(addresses_.size() + addresses.size());
    std::size_t old = 0, added = 0;
    while (old < addresses_.size() || added < addresses.size()) {
        const bool take_old = added == addresses.size() ||
                              (old < addresses_.size() && addresses_[old] < addresses[added]);
        all_addresses.push_back(take_old ? addresses_[old] : addresses[added]);
        all_locations.push_back(take_old ? locations_[old++] : locations[added++]);
    }
    addresses_ = std::move(all_addresses);
    locations_ = std::move(all_locations);
}

std::vector<std::uint32_t> KnownLocations::find(std::span<const Address> addresses,
                                                std::span<Location> locations) const {
    std::vector<std::uint32_t> others;
    auto at = addresses_.begin();
    for (std::uint32_t i = 0; i < addresses.size(); ++i) {
        if (at != addresses_.end() && *at < addresses[i]) ++at;  // mostly that is it
        if (at != addresses_.end() && *at < addresses[i])
            at = std::lower_bound(at, addresses_.end(), addresses[i]);
        if (at != addresses_.end() && *at == addresses[i])
            locations[i] = locations_[static_cast<std::size_t>(at - addresses_.begin())];
        else
            others.push_back(i);
    }
    return others;
}

std::vector<Address> KnownLocations::without(std::span<const Address> addresses) const {
    std::vector<Address> others;
    std::set_difference(addresses.begin(), addresses.end(), addresses_.begin(), addresses_.end(),
                        std::back_inserter(others));
    others.erase(std::unique(others.begin(), others.end()), others.end());
    return others;
}

namespace {

// Those at `indices`.
std::vector<Address> selected(std::span<const Address> addresses,
                              std::span<const std::uint32_t> indices) {
    std::vector<Address> result;
    result.reserve(indices.size());
    for (const std::uint32_t index : indices) result.push_back(addresses[index]);
    return result;
}

// Locations of which some are known: those of the others are what `resolve` makes of them.
template <typename Resolve>
std::vector<Location> complete(const KnownLocations& known, std::span<const Address> addresses,
                               Resolve resolve) {
    std::vector<Location> locations(addresses.size());
    const std::vector<std::uint32_t> others = known.find(addresses, locations);
    if (others.empty()) return locations;
    const std::vector<Location> found = resolve(selected(addresses, others));
    for (std::size_t i = 0; i < others.size(); ++i) locations[others[i]] = found[i];
    return locations;
}

std::string address_name(const std::string& binary, Address address) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), address, 16).ptr;
    return binary + "+0x" + std::string(digits.begin(), end);
}

}  // namespace

void ObjectSymbols::open() {
    const std::lock_guard lock(mutex_);
    pool_.open(path_);
}

void ObjectSymbols::learn(std::span<const Address> addresses) {
    const std::lock_guard lock(mutex_);
    const std::vector<Address> added = learned_.without(addresses);
    if (added.empty() || !is_readable()) return;
    std::unique_ptr<DebugInfo> debug = pool_.take(path_);
    learned_.add(added, locate(*debug, added));
    pool_.give_back(path_, std::move(debug));
}

void ObjectSymbols::prepare(std::span<const Address> addresses) {
    const std::lock_guard lock(mutex_);
    const std::vector<Address> added = prepared_.without(addresses);
    if (added.empty() || !is_readable()) return;
    std::unique_ptr<DebugInfo> debug = pool_.take(path_);
    without_dwarf_ = debug->dwarf() == nullptr;
    if (!without_dwarf_) prepared_.add(added, locate(*debug, added));
    pool_.give_back(path_, std::move(debug));
}

std::vector<Location> ObjectSymbols::resolve(std::span<const Address> addresses,
                                             std::vector<Address>& asked) {
    const std::lock_guard lock(mutex_);
    if (learned_.empty()) {
        asked.assign(addresses.begin(), addresses.end());
        return resolve_unlearned(addresses);
    }
    return complete(learned_, addresses, [&](std::vector<Address> others) {
        asked = std::move(others);
        return resolve_unlearned(asked);
    });
}

std::set<std::string> ObjectSymbols::take_missing_files() {
    const std::lock_guard lock(mutex_);
    return std::exchange(missing_files_, {});
}

std::vector<Location> ObjectSymbols::resolve_unlearned(std::span<const Address> addresses) {
    if (prepared_.empty()) return look_up(addresses);
    return complete(prepared_, addresses,
                    [&](const std::vector<Address>& others) { return look_up(others); });
}

std::vector<Location> ObjectSymbols::look_up(std::span<const Address> addresses) {
    if (!is_readable()) return std::vector<Location>(addresses.size(), frames_.unknown());
    return locate(*pool_.take(path_), addresses);
}

std::vector<Location> ObjectSymbols::locate(const DebugInfo& debug,
                                            std::span<const Address> addresses) {
    std::vector<Location> locations(addresses.size(), frames_.unknown());
    const std::vector<FunctionName> functions =
        symbol_names(*file_, debug.separate_file(), addresses, frames_.names());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        const bool repeated = i > 0 && functions[i].is(functions[i - 1]);
        locations[i] = repeated ? locations[i - 1] : frames_.without_source(functions[i]);
    }
    if (debug.dwarf() != nullptr) {
        missing_files_.merge(resolve_with_dwarf(debug.dwarf(), file_->code_start(), addresses,
                                                functions, frames_, locations));
    }
    name_by_address(addresses, locations);
    return locations;
}

void ObjectSymbols::name_by_address(std::span<const Address> addresses,
                                    std::vector<Location>& locations) {
    std::vector<std::uint32_t> indices;
    for (std::uint32_t i = 0; i < locations.size(); ++i)
        if (locations[i].frames.back().function == kUnknown) indices.push_back(i);
    if (indices.empty()) return;
    const auto starts = unwind_functions(*file_, selected(addresses, indices));
    const std::string binary = std::filesystem::path(path_).filename().string();
    Location before, named;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (!starts[i]) continue;
        Location& location = locations[indices[i]];
        const bool repeated =
            i > 0 && starts[i] == starts[i - 1] && location.frames.data() == before.frames.data();
        if (!repeated) {
            before = location;
            std::vector<Frame> frames(location.frames.begin(), location.frames.end());
            frames.back().function = frames_.names().keep(address_name(binary, *starts[i]));
            named = frames_.keep(frames);
        }
        location = named;
    }
}

}  // namespace assay::symbols
