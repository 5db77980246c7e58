#include "framework/collector/results/counted_code.h"

#include "framework/support/log.h"

#include <fmt/core.h>
#include <algorithm>
#include <numeric>
#include <optional>

namespace assay::collector {

std::uint32_t Sites::add(std::span<const symbols::Frame> frames) {
    std::uint32_t site = 0;
    for (std::size_t i = frames.size(); i-- > 1;) {
        const symbols::Frame& frame = frames[i];
        const auto [known, is_new] =
            indices_.try_emplace({site, frame.line, frame.function, frame.file},
                                 static_cast<std::uint32_t>(sites_.size()));
        if (is_new)
            sites_.push_back(
                {site, sites_[site].depth + 1, frame.line, frame.file, frame.function});
        site = known->second;
    }
    return site;
}

void Sites::sort() {
    order_.resize(sites_.size());
    numbers_.resize(sites_.size());
    std::iota(order_.begin(), order_.end(), 0);
    // A parent is less deep than the sites inside it, so it comes first.
    const auto position = [this](std::uint32_t index) {
        const Site& site = sites_[index];
        return std::tuple(site.depth, site.file, site.function, numbers_[site.parent], site.line);
    };
    const auto before = [&](std::uint32_t a, std::uint32_t b) { return position(a) < position(b); };
    std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
        return sites_[a].depth < sites_[b].depth;
    });
    for (auto begin = order_.begin(); begin != order_.end();) {
        const auto end = std::find_if(begin, order_.end(), [&](std::uint32_t index) {
            return sites_[index].depth != sites_[*begin].depth;
        });
        std::sort(begin, end, before);
        for (; begin != end; ++begin)
            numbers_[*begin] = static_cast<std::uint32_t>(begin - order_.begin());
    }
}

void Sites::write(events::Writer& writer) const {
    for (std::uint32_t i = 1; i < order_.size(); ++i) {
        const Site& site = sites_[order_[i]];
        writer.site({i, numbers_[site.parent], site.line, site.file, site.function});
    }
}

void LinkageNames::add(std::span<const symbols::Frame> frames) {
    if (last_.size() < frames.size()) last_.resize(frames.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const std::string_view name = frames[frames.size() - 1 - i].linkage;
        // Consecutive instructions mostly have the same names.
        if (name.empty() || last_[i] == name.data()) continue;
        last_[i] = name.data();
        if (!known_.insert(name.data()).second) continue;
        const auto [known, is_new] =
            names_.try_emplace(frames[frames.size() - 1 - i].function, name);
        if (!is_new && name < known->second) known->second = name;
    }
}

void LinkageNames::write(events::Writer& writer) const {
    for (const auto& [function, name] : names_) writer.linkage(function, name);
}

namespace {

constexpr std::string_view kAnonymous = "[anonymous]";  // code that no file holds

bool same_source(std::span<const symbols::Frame> a, std::span<const symbols::Frame> b) {
    const auto same = [](const symbols::Frame& one, const symbols::Frame& other) {
        return one.line == other.line && one.function == other.function && one.file == other.file;
    };
    return a.data() == b.data() || std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

}  // namespace

// The objects are numbered in the order of mapping.
CountedCode::CountedCode(const Profile& profile) : profile_(profile) {
    const auto has_counts = [&](std::uint32_t row) {
        const auto counts = profile_.counts->samples.counts(row);
        return std::any_of(profile_.columns.begin(), profile_.columns.end(),
                           [&](std::size_t column) { return counts[column] != 0; });
    };
    entries_.reserve(profile_.counts->samples.rows());
    std::uint32_t mapping = kNoMapping;
    std::uint64_t link_address_of_0 = 0;
    std::optional<std::uint32_t> object;
    profile_.counts->samples.visit_sorted([&](const SampleDatabase::Row& row) {
        if (!has_counts(row.number) &&
            profile_.counts->hotlists.named(row.number, profile_.list_names).empty())
            return;
        if (row.key.mapping == kNoMapping) {
            entries_.push_back({row.key.pc, anonymous_object(row.key.pc), row.number});
            return;
        }
        if (!object || row.key.mapping != mapping) {
            mapping = row.key.mapping;
            link_address_of_0 = bias(mapping);
            object = object_of_mapping(mapping);
            objects_of_mappings_[mapping] = {*object, link_address_of_0};
            note_load(*object, 0 - link_address_of_0);
        }
        entries_.push_back({row.key.pc + link_address_of_0, *object, row.number});
    });
    // The entries are in the order of mappings so far, but several mappings can belong to one file.
    const auto before = [](const Entry& a, const Entry& b) {
        return std::tie(a.object, a.address) < std::tie(b.object, b.address);
    };
    if (!std::is_sorted(entries_.begin(), entries_.end(), before))
        std::sort(entries_.begin(), entries_.end(), before);
}

// Returns the number to add to an address of the process to get the link-time address in its
// object.
std::uint64_t CountedCode::bias(std::uint32_t index) const {
    const Mapping& mapping = profile_.addresses->mappings()[index];
    return profile_.symbolizer->address_of_offset(*mapping.path, mapping.offset) - mapping.start;
}

std::uint32_t CountedCode::object_of_mapping(std::uint32_t mapping) {
    return object_of_file(*profile_.addresses->mappings()[mapping].path);
}

// Sets the load address of the object, or clears it if the object was loaded at several addresses.
void CountedCode::note_load(std::uint32_t object, std::uint64_t load) {
    const auto [first, is_new] = loads_.try_emplace(object, load);
    if (is_new)
        objects_[object].load = load;
    else if (first->second != load)
        objects_[object].load.reset();
}

std::uint32_t CountedCode::object_named(std::string_view path, bool is_binary) {
    const auto known = std::find_if(objects_.begin(), objects_.end(),
                                    [&](const events::Object& o) { return o.path == path; });
    const auto index = static_cast<std::uint32_t>(known - objects_.begin());
    if (known != objects_.end()) return index;
    std::string name(path);
    objects_.push_back({name, is_binary ? profile_.symbolizer->build_id(name) : ""});
    return index;
}

// Returns the object for code that is in no file: the file that names this code, or kAnonymous.
std::uint32_t CountedCode::anonymous_object(std::uint64_t pc) {
    const auto named = profile_.generated->find(pc);
    const std::uint32_t index = object_named(named ? named->source : kAnonymous, false);
    if (named) generated_.insert(index);
    return index;
}

ObjectPlace CountedCode::place_of(std::uint64_t pc) {
    const std::uint32_t mapping = profile_.addresses->find(pc);
    if (mapping == kNoMapping) return {anonymous_object(pc), pc};
    return {object_of_mapping(mapping), pc + bias(mapping)};
}

std::vector<ObjectPlace> CountedCode::places_of_rows() const {
    if (profile_.counts->contexts.counts.empty()) return {};
    std::vector<ObjectPlace> places(profile_.counts->samples.rows());
    for (const Entry& entry : entries_) places[entry.row] = {entry.object, entry.address};
    return places;
}

std::vector<ObjectPlace> CountedCode::places_of_contexts() {
    std::vector<std::uint64_t> pcs;
    pcs.reserve(2 * profile_.contexts.size());
    for (const trace_context_t& context : profile_.contexts.subspan(1)) {
        pcs.push_back(context.call);
        pcs.push_back(context.function);
    }
    for (const ContextCalls& calls : profile_.calls)
        if (profile_.is_recursive(calls)) pcs.push_back(calls.site);
    std::sort(pcs.begin(), pcs.end());
    pcs.erase(std::unique(pcs.begin(), pcs.end()), pcs.end());
    std::vector<ObjectPlace> places;
    places.reserve(pcs.size());
    for (const std::uint64_t pc : pcs) places.push_back(place_of(pc));
    std::sort(places.begin(), places.end());
    return places;
}

void CountedCode::find_sources(const std::vector<ObjectPlace>& others) {
    std::vector<std::size_t> sizes(objects_.size());
    for (const Entry& entry : entries_) ++sizes[entry.object];
    for (const ObjectPlace& place : others) ++sizes[place.object];
    requests_.resize(objects_.size());
    for (std::size_t object = 0; object < requests_.size(); ++object) {
        requests_[object].object_path = objects_[object].path;
        requests_[object].addresses.reserve(sizes[object]);
    }
    const auto ask_for = [this](std::uint32_t object, std::uint64_t address) {
        std::vector<std::uint64_t>& addresses = requests_[object].addresses;
        if (addresses.empty() || addresses.back() != address) addresses.push_back(address);
    };
    auto other = others.begin();
    for (const Entry& entry : entries_) {
        for (; other != others.end() && *other < ObjectPlace{entry.object, entry.address}; ++other)
            ask_for(other->object, other->address);
        ask_for(entry.object, entry.address);
    }
    for (; other != others.end(); ++other) ask_for(other->object, other->address);
    locations_ = profile_.symbolizer->resolve(requests_);
    for (const symbols::Request& request : requests_) tell_missing_files(request.object_path);
    for (const std::uint32_t object : generated_) name_generated(object);
    for (auto begin = entries_.cbegin(); begin != entries_.cend();) {
        const auto end = std::find_if(begin, entries_.cend(), [&](const Entry& entry) {
            return entry.object != begin->object;
        });
        divide({begin, end});
        begin = end;
    }
}

void CountedCode::tell_missing_files(const std::string& object) const {
    const std::set<std::string> missing = profile_.symbolizer->take_missing_files(object);
    if (missing.empty()) return;
    const std::string others =
        missing.size() == 1 ? "" : fmt::format(" and {} others", missing.size() - 1);
    log::remark(
        fmt::format("{}: debug information is missing, because {}{} cannot be read: functions that "
                    "were inlined there count for their callers. assay does not read packages "
                    "(.dwp) and -gsplit-dwarf=single",
                    object, *missing.begin(), others));
}

void CountedCode::name_generated(std::uint32_t object) {
    for (std::size_t i = 0; i < locations_[object].size(); ++i) {
        const auto named = profile_.generated->find(requests_[object].addresses[i]);
        if (!named) continue;
        generated_frames_.push_back(named->frame);
        locations_[object][i].frames = {&generated_frames_.back(), 1};
    }
}

// All `entries` belong to one object.
void CountedCode::divide(std::span<const Entry> entries) {
    const std::vector<std::uint64_t>& addresses = requests_[entries[0].object].addresses;
    std::span<const symbols::Frame> last;
    std::size_t at = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        while (addresses[at] != entries[i].address) ++at;
        const std::span<const symbols::Frame> frames = locations_[entries[0].object][at].frames;
        if (frames.data() != last.data()) linkage_names_.add(frames);
        if (same_source(frames, last)) {
            Part& part = parts_.back();
            part.entries = {part.entries.data(), part.entries.size() + 1};
        } else {
            parts_.push_back({frames[0].file, frames[0].function, frames[0].line,
                              sites_.add(frames), entries.subspan(i, 1)});
        }
        last = frames;
    }
}

std::span<const symbols::Frame> CountedCode::known_frames(const ObjectPlace& place) const {
    const std::vector<std::uint64_t>& addresses = requests_[place.object].addresses;
    const auto at = std::lower_bound(addresses.begin(), addresses.end(), place.address);
    return locations_[place.object][static_cast<std::size_t>(at - addresses.begin())].frames;
}

std::span<const symbols::Frame> CountedCode::frames_of(const ObjectPlace& place) {
    const std::span<const symbols::Frame> frames = known_frames(place);
    linkage_names_.add(frames);
    return frames;
}

std::vector<std::uint32_t> CountedCode::alike() const {
    std::vector<std::uint32_t> rows(profile_.counts->samples.rows());
    std::iota(rows.begin(), rows.end(), 0);
    std::map<std::vector<std::pair<std::string_view, std::uint32_t>>, std::uint32_t> known;
    std::vector<std::pair<std::string_view, std::uint32_t>> calls;
    std::span<const symbols::Frame> last;
    std::uint32_t last_row = 0;
    for (const Entry& entry : entries_) {
        const auto frames = known_frames({entry.object, entry.address});
        if (last.data() != frames.data()) {
            calls.clear();
            for (std::size_t i = 0; i < frames.size(); ++i)
                calls.emplace_back(frames[i].function, i == 0 ? 0 : frames[i].line);
            last_row = known.try_emplace(calls, entry.row).first->second;
            last = frames;
        }
        rows[entry.row] = last_row;
    }
    return rows;
}

std::optional<ObjectPlace> CountedCode::known_place(AddressMap::Finder& mappings,
                                                    std::uint64_t pc) const {
    const std::uint32_t mapping = mappings.find(pc);
    const auto known =
        mapping == kNoMapping ? objects_of_mappings_.end() : objects_of_mappings_.find(mapping);
    if (known == objects_of_mappings_.end()) return std::nullopt;
    const ObjectPlace place{known->second.object, pc + known->second.bias};
    const std::vector<std::uint64_t>& addresses = requests_[place.object].addresses;
    if (!std::binary_search(addresses.begin(), addresses.end(), place.address)) return std::nullopt;
    return place;
}

std::vector<bool> CountedCode::first_of_functions() const {
    std::map<ObjectPlace, std::pair<std::string_view, std::uint32_t>> firsts;  // function, row
    std::set<std::pair<std::uint32_t, std::string_view>> known;
    std::string_view last;
    for (const Entry& entry : entries_) {
        const ObjectPlace place = {entry.object, entry.address};
        const std::string_view function = known_frames(place).back().function;
        if (function.data() == last.data()) continue;
        last = function;
        if (known.emplace(entry.object, function).second)
            firsts.emplace(place, std::pair(function, entry.row));
    }
    AddressMap::Finder mappings(*profile_.addresses);
    for (const Profile::Jump& jump : profile_.jumps) {
        const auto to = known_place(mappings, jump.target);
        const auto first = to ? firsts.find(*to) : firsts.end();
        if (first == firsts.end()) continue;
        const auto from = known_place(mappings, jump.pc);
        if (from && known_frames(*from).back().function == first->second.first) firsts.erase(first);
    }
    std::vector<bool> rows(profile_.counts->samples.rows());
    for (const auto& [place, first] : firsts) rows[first.second] = true;
    return rows;
}

CountedCode::Jumps CountedCode::jumps_between_functions() const {
    AddressMap::Finder mappings(*profile_.addresses);
    Jumps found;
    const auto function = [&](std::uint64_t pc) -> std::string_view {
        const auto place = known_place(mappings, pc);
        if (!place) return {};
        return known_frames(*place).back().function;
    };
    for (const Profile::Jump& jump : profile_.jumps) {
        const std::string_view from = function(jump.pc);
        if (from.empty()) continue;
        const std::string_view to = jump.target == 0 ? "" : function(jump.target);
        if (from.data() == to.data()) continue;
        if (jump.target == 0 || (!to.empty() && from != to)) found.emplace(from, to);
    }
    return found;
}

const std::vector<CountedCode::Part>& CountedCode::sort_parts() {
    sites_.sort();
    for (Part& part : parts_) part.site = sites_.number(part.site);
    std::stable_sort(parts_.begin(), parts_.end(),
                     [](const Part& a, const Part& b) { return a.position() < b.position(); });
    return parts_;
}

}  // namespace assay::collector
