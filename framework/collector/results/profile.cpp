#include "framework/collector/results/profile.h"

#include "framework/collector/results/generated_names.h"
#include "framework/collector/results/grouped_counts.h"
#include "framework/collector/results/object_groups.h"
#include "framework/collector/results/profile_sites.h"
#include "framework/collector/results/profile_stacks.h"
#include "framework/support/log.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::collector {
namespace {

constexpr std::string_view kUnknown = "???";
constexpr std::string_view kAnonymous = "[anonymous]";  // code that no file holds

// One row of the database.
struct Entry {
    std::uint64_t address;  // link-time address in the object
    std::uint32_t object;   // index in the header
    std::uint32_t row;
};

// Entries that follow one another by address and stem from one source line, inlined at one site.
struct Part {
    std::string_view file = kUnknown, function = kUnknown;
    std::uint32_t line = 0;
    std::uint32_t site = 0;
    std::span<const Entry> entries;

    auto position() const { return std::tie(file, function, line, site); }
};

bool same_source(std::span<const symbols::Frame> a, std::span<const symbols::Frame> b) {
    const auto same = [](const symbols::Frame& one, const symbols::Frame& other) {
        return one.line == other.line && one.function == other.function && one.file == other.file;
    };
    return a.data() == b.data() || std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

class ProfileBuilder {
  public:
    explicit ProfileBuilder(const Profile& profile)
        : profile_(profile),
          header_(profile.header),
          counts_(profile.columns.size()),
          objects_(profile),
          types_(profile),
          threads_(profile) {}

    void write(const std::string& path) {
        collect();
        const auto stack_lines = [this] {
            return StackLines(
                profile_, [this](std::uint64_t pc) { return place_of(pc); }, places_of_rows(),
                objects_.contexts());
        };
        std::optional<StackLines> lines;
        if (profile_.share_counts) {
            find_source_positions(places_of_contexts());
            profile_.share_counts(alike());
            lines.emplace(stack_lines());
        } else {
            lines.emplace(stack_lines());
            find_source_positions(lines->places());
        }
        StackLines& stacks = *lines;
        stacks.resolve(
            [this](const ObjectPlace& place) {
                const std::span<const symbols::Frame> frames = frames_of(place);
                linkage_names_.add(frames);
                return frames;
            },
            jumps_between_functions());
        sites_.sort();
        for (Part& part : parts_) part.site = sites_.number(part.site);
        // Those of one line stay in the order of their addresses.
        std::stable_sort(parts_.begin(), parts_.end(),
                         [](const Part& a, const Part& b) { return a.position() < b.position(); });
        const ObjectGroups::Surroundings surroundings{
            .binary = [this](std::string_view file) { return index_of_file(file); },
            .stack = [&](std::uint32_t context) { return stacks.line_of(context); },
            .caller =
                [this](std::uint32_t context) {
                    return frames_of(place_of(profile_.contexts[context].call)).front();
                }};
        std::vector<events::Group> groups = objects_.groups(surroundings);
        for (events::Group& group : threads_.groups(static_cast<std::uint32_t>(groups.size() + 1)))
            groups.push_back(std::move(group));
        find_types(static_cast<std::uint32_t>(groups.size() + 1));
        events::Writer writer(path, header_);
        sites_.write(writer);
        for (const events::Group& group : groups) writer.group(group);
        for (const events::Group& group : types_.groups()) writer.group(group);
        linkage_names_.write(writer);
        for (auto begin = parts_.cbegin(); begin != parts_.cend();) {
            const auto end = std::find_if(begin, parts_.cend(), [&](const Part& part) {
                return part.position() != begin->position();
            });
            write_line(writer, {begin, end});
            begin = end;
        }
        stacks.write(writer);
        writer.finish();
    }

  private:
    using Counts = std::vector<std::uint64_t>;

    // The entries with counts, and the objects that have any, in the order of mapping.
    void collect() {
        entries_.reserve(profile_.samples->rows());
        std::uint32_t mapping = kNoMapping;
        std::uint64_t link_address_of_0 = 0;
        std::optional<std::uint32_t> object;
        profile_.samples->visit_sorted([&](const SampleDatabase::Row& row) {
            if (!has_counts(row.number) &&
                profile_.hotlists->named(row.number, profile_.list_names).empty())
                return;
            if (row.key.mapping == kNoMapping) {
                entries_.push_back({row.key.pc, anonymous_object(row.key.pc), row.number});
                return;
            }
            if (!object || row.key.mapping != mapping) {
                mapping = row.key.mapping;
                link_address_of_0 = bias(mapping);
                object = object_index(mapping);
                objects_of_mappings_[mapping] = {*object, link_address_of_0};
                note_load(*object, 0 - link_address_of_0);
            }
            entries_.push_back({row.key.pc + link_address_of_0, *object, row.number});
        });
        // By mapping so far: several can be of one file.
        const auto before = [](const Entry& a, const Entry& b) {
            return std::tie(a.object, a.address) < std::tie(b.object, b.address);
        };
        if (!std::is_sorted(entries_.begin(), entries_.end(), before))
            std::sort(entries_.begin(), entries_.end(), before);
    }

    bool has_counts(std::uint32_t row) const {
        const auto counts = profile_.samples->counts(row);
        return std::any_of(profile_.columns.begin(), profile_.columns.end(),
                           [&](std::size_t column) { return counts[column] != 0; });
    }

    // What is added to an address of the process to get the object's link-time address.
    std::uint64_t bias(std::uint32_t index) {
        const Mapping& mapping = profile_.addresses->mappings()[index];
        return profile_.symbolizer->address_of_offset(*mapping.path, mapping.offset) -
               mapping.start;
    }

    std::uint32_t object_index(std::uint32_t mapping) {
        const std::string& path = *profile_.addresses->mappings()[mapping].path;
        return object_index(path, [&] { return profile_.symbolizer->build_id(path); });
    }

    // Where an object is loaded, unless it has been elsewhere before.
    void note_load(std::uint32_t object, std::uint64_t load) {
        const auto [first, is_new] = loads_.try_emplace(object, load);
        if (is_new)
            header_.objects[object].load = load;
        else if (first->second != load)
            header_.objects[object].load.reset();
    }

    template <typename BuildId>
    std::uint32_t object_index(std::string_view path, const BuildId& build_id) {
        std::vector<events::Object>& objects = header_.objects;
        const auto known = std::find_if(objects.begin(), objects.end(),
                                        [&](const events::Object& o) { return o.path == path; });
        const auto index = static_cast<std::uint32_t>(known - objects.begin());
        if (known == objects.end()) objects.push_back({std::string(path), build_id()});
        return index;
    }

    std::uint32_t index_of_file(std::string_view path) {
        return object_index(path, [&] { return profile_.symbolizer->build_id(std::string(path)); });
    }

    // Of code that no file holds: the file that names it.
    std::uint32_t anonymous_object(std::uint64_t pc) {
        const auto named = profile_.generated->find(pc);
        const std::uint32_t index =
            object_index(named ? named->source : kAnonymous, [] { return std::string(); });
        if (named) generated_.insert(index);
        return index;
    }

    ObjectPlace place_of(std::uint64_t pc) {
        const std::uint32_t mapping = profile_.addresses->find(pc);
        if (mapping == kNoMapping) return {anonymous_object(pc), pc};
        return {object_index(mapping), pc + bias(mapping)};
    }

    // By row of the database; empty if no context refers to any.
    std::vector<ObjectPlace> places_of_rows() const {
        if (profile_.context_counts->empty()) return {};
        std::vector<ObjectPlace> places(profile_.samples->rows());
        for (const Entry& entry : entries_) places[entry.row] = {entry.object, entry.address};
        return places;
    }

    // Sorted. Which contexts have counts may not be known yet.
    std::vector<ObjectPlace> places_of_contexts() {
        std::vector<std::uint64_t> pcs;
        pcs.reserve(2 * profile_.contexts.size());
        for (const trace_context_t& context : profile_.contexts.subspan(1)) {
            pcs.push_back(context.call);
            pcs.push_back(context.function);
        }
        std::sort(pcs.begin(), pcs.end());
        pcs.erase(std::unique(pcs.begin(), pcs.end()), pcs.end());
        std::vector<ObjectPlace> places;
        places.reserve(pcs.size());
        for (const std::uint64_t pc : pcs) places.push_back(place_of(pc));
        std::sort(places.begin(), places.end());
        return places;
    }

    // From where to where, of code that has counts.
    StackLines::Jumps jumps_between_functions() const {
        AddressMap::Finder mappings(*profile_.addresses);
        StackLines::Jumps found;
        const auto function = [&](std::uint64_t pc) -> std::string_view {
            const std::uint32_t mapping = mappings.find(pc);
            const auto known = mapping == kNoMapping ? objects_of_mappings_.end()
                                                     : objects_of_mappings_.find(mapping);
            if (known == objects_of_mappings_.end()) return {};
            const ObjectPlace place{known->second.object, pc + known->second.bias};
            const std::vector<std::uint64_t>& addresses = requests_[place.object].addresses;
            const auto at = std::lower_bound(addresses.begin(), addresses.end(), place.address);
            if (at == addresses.end() || *at != place.address) return {};
            const auto number = static_cast<std::size_t>(at - addresses.begin());
            return locations_[place.object][number].frames.back().function;
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

    // By row: one that has the same frames, up to the line that the instruction itself is of.
    std::vector<std::uint32_t> alike() const {
        std::vector<std::uint32_t> rows(profile_.samples->rows());
        std::iota(rows.begin(), rows.end(), 0);
        std::map<std::vector<std::pair<std::string_view, std::uint32_t>>, std::uint32_t> known;
        std::vector<std::pair<std::string_view, std::uint32_t>> calls;
        std::span<const symbols::Frame> last;
        std::uint32_t last_row = 0;
        for (const Entry& entry : entries_) {
            const auto frames = frames_of({entry.object, entry.address});
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

    // Of the entries and of other places, which are sorted.
    void find_source_positions(const std::vector<ObjectPlace>& others) {
        std::vector<std::size_t> sizes(header_.objects.size());
        for (const Entry& entry : entries_) ++sizes[entry.object];
        for (const ObjectPlace& place : others) ++sizes[place.object];
        requests_.resize(header_.objects.size());
        for (std::size_t object = 0; object < requests_.size(); ++object) {
            requests_[object].object_path = header_.objects[object].path;
            requests_[object].addresses.reserve(sizes[object]);
        }
        const auto ask_for = [this](std::uint32_t object, std::uint64_t address) {
            std::vector<std::uint64_t>& addresses = requests_[object].addresses;
            if (addresses.empty() || addresses.back() != address) addresses.push_back(address);
        };
        auto other = others.begin();
        for (const Entry& entry : entries_) {
            for (; other != others.end() && *other < ObjectPlace{entry.object, entry.address};
                 ++other)
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

    void tell_missing_files(const std::string& object) {
        const std::set<std::string> missing = profile_.symbolizer->take_missing_files(object);
        if (missing.empty()) return;
        const std::string others =
            missing.size() == 1 ? "" : fmt::format(" and {} others", missing.size() - 1);
        log::remark(fmt::format(
            "{}: debug information is missing, since {}{} cannot be read; functions that "
            "were inlined there count for their callers. Packages (.dwp) and "
            "-gsplit-dwarf=single cannot be read",
            object, *missing.begin(), others));
    }

    // The groups are numbered from `first` on.
    void find_types(std::uint32_t first) {
        std::vector<std::uint64_t> addresses;
        std::vector<std::uint32_t> rows;
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            addresses.push_back(entries_[i].address);
            rows.push_back(entries_[i].row);
            const std::uint32_t object = entries_[i].object;
            if (i + 1 < entries_.size() && entries_[i + 1].object == object) continue;
            if (!generated_.contains(object))
                types_.add(header_.objects[object].path, addresses, rows);
            addresses.clear();
            rows.clear();
        }
        types_.finish(first);
        if (const std::string coverage = types_.coverage(); !coverage.empty())
            header_.descriptions.emplace_back("Types", coverage);
    }

    void name_generated(std::uint32_t object) {
        for (std::size_t i = 0; i < locations_[object].size(); ++i) {
            const auto named = profile_.generated->find(requests_[object].addresses[i]);
            if (!named) continue;
            generated_frames_.push_back(named->frame);
            locations_[object][i].frames = {&generated_frames_.back(), 1};
        }
    }

    std::span<const symbols::Frame> frames_of(const ObjectPlace& place) const {
        const std::vector<std::uint64_t>& addresses = requests_[place.object].addresses;
        const auto at = std::lower_bound(addresses.begin(), addresses.end(), place.address);
        return locations_[place.object][static_cast<std::size_t>(at - addresses.begin())].frames;
    }

    // `entries` are of one object.
    void divide(std::span<const Entry> entries) {
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

    // The counts of all entries of one line and site, then those of each instruction.
    void write_line(events::Writer& writer, std::span<const Part> parts) {
        std::fill(counts_.begin(), counts_.end(), 0);
        for (const Part& part : parts)
            for (const Entry& entry : part.entries) add_counts(entry);
        writer.location(parts[0].file, parts[0].function);
        writer.line(parts[0].line, counts_, parts[0].site);
        rows_.clear();
        for (const Part& part : parts)
            for (const Entry& entry : part.entries) rows_.push_back(entry.row);
        objects_.write_line(writer, rows_);
        threads_.write_line(writer, rows_);
        types_.write_line(writer, rows_);
        if (!profile_.dump_instructions && profile_.hotlists->empty()) return;
        for (const Part& part : parts) write_instructions(writer, part.entries, part.site);
    }

    void write_instructions(events::Writer& writer, std::span<const Entry> entries,
                            std::uint32_t site) {
        for (auto begin = entries.begin(); begin != entries.end();) {
            // The same instruction can have been mapped more than once.
            const auto end = std::find_if(begin, entries.end(), [&](const Entry& entry) {
                return entry.address != begin->address || entry.object != begin->object;
            });
            write_instruction(writer, {begin, end}, site);
            begin = end;
        }
    }

    void write_instruction(events::Writer& writer, std::span<const Entry> entries,
                           std::uint32_t site) {
        std::fill(counts_.begin(), counts_.end(), 0);
        std::vector<events::Hotlist> lists;
        for (const Entry& entry : entries) {
            add_counts(entry);
            for (events::Hotlist& list : profile_.hotlists->named(entry.row, profile_.list_names))
                add_list(lists, std::move(list));
        }
        if (profile_.dump_instructions)
            writer.instruction(entries[0].object, entries[0].address, counts_, site);
        for (const events::Hotlist& list : lists)
            writer.values(entries[0].object, entries[0].address, list);
    }

    static void add_list(std::vector<events::Hotlist>& lists, events::Hotlist&& added) {
        const auto known =
            std::find_if(lists.begin(), lists.end(),
                         [&](const events::Hotlist& list) { return list.name == added.name; });
        if (known == lists.end())
            lists.push_back(std::move(added));
        else
            merge(*known, added, events::kMaxHotValues);
    }

    void add_counts(const Entry& entry) {
        const auto row = profile_.samples->counts(entry.row);
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += row[profile_.columns[i]];
    }

    const Profile& profile_;
    events::Header header_;
    std::vector<Entry> entries_;  // by object, then by address
    std::vector<Part> parts_;
    Sites sites_;
    LinkageNames linkage_names_;
    // By object: addresses that were resolved, and where they are.
    std::vector<symbols::Request> requests_;
    std::vector<std::vector<symbols::Location>> locations_;
    struct PlaceOfMapping {
        std::uint32_t object;
        std::uint64_t bias;
    };
    std::unordered_map<std::uint32_t, PlaceOfMapping> objects_of_mappings_;  // that have counts
    std::map<std::uint32_t, std::uint64_t> loads_;                           // by object, the first
    std::set<std::uint32_t> generated_;  // objects that name code which no file holds
    std::deque<symbols::Frame> generated_frames_;
    Counts counts_;
    ObjectGroups objects_;
    TypeGroups types_;
    ThreadGroups threads_;
    std::vector<std::uint32_t> rows_;  // of the line that is being written
};

}  // namespace

void write_profile(const std::string& path, const Profile& profile) {
    ProfileBuilder(profile).write(path);
}

}  // namespace assay::collector
