#include "framework/collector/profile.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>

namespace assay::collector {
namespace {

constexpr std::string_view kUnknown = "???";
constexpr std::string_view kAnonymous = "[anonymous]";  // code that no file holds

// One row of the database, with its place in the program.
struct Entry {
    std::uint32_t object;   // index in the header; at first the mapping's
    std::uint64_t address;  // link-time address in the object; at first in the process
    std::uint32_t row;
    std::string_view file = kUnknown, function = kUnknown;
    std::uint32_t line = 0;
};

class ProfileBuilder {
  public:
    explicit ProfileBuilder(const Profile& profile)
        : profile_(profile), header_(profile.header), counts_(profile.columns.size()) {}

    void write(const std::string& path) {
        collect();
        find_source_positions();
        sort_by_position();
        events::Writer writer(path, header_);
        for (auto begin = entries_.cbegin(); begin != entries_.cend();) {
            const auto end = std::find_if(begin, entries_.cend(), [&](const Entry& entry) {
                return std::tie(entry.file, entry.function, entry.line) !=
                       std::tie(begin->file, begin->function, begin->line);
            });
            write_line(writer, {begin, end});
            begin = end;
        }
        writer.finish();
    }

  private:
    using Counts = std::vector<std::uint64_t>;

    void sort_by_address() {
        const auto before = [](const Entry& a, const Entry& b) {
            return std::tie(a.object, a.address) < std::tie(b.object, b.address);
        };
        // They mostly are from the time when they were sorted by mapping.
        if (!std::is_sorted(entries_.begin(), entries_.end(), before))
            std::sort(entries_.begin(), entries_.end(), before);
    }

    // By file, function and line, then by address as they are. Neighbours mostly share their
    // line, and are moved together: names take long to compare.
    void sort_by_position() {
        const auto position = [](const std::span<const Entry> entries) {
            return std::tie(entries[0].file, entries[0].function, entries[0].line);
        };
        std::vector<std::span<const Entry>> parts;
        for (const Entry& entry : entries_) {
            const std::span only(&entry, 1);
            if (!parts.empty() && position(parts.back()) == position(only))
                parts.back() = {parts.back().data(), parts.back().size() + 1};
            else
                parts.push_back(only);
        }
        std::stable_sort(parts.begin(), parts.end(),
                         [&](const auto& a, const auto& b) { return position(a) < position(b); });
        std::vector<Entry> sorted;
        sorted.reserve(entries_.size());
        for (const auto& part : parts) sorted.insert(sorted.end(), part.begin(), part.end());
        entries_ = std::move(sorted);
    }

    // The entries with counts, and the objects that have any, in the order of mapping.
    void collect() {
        const SampleDatabase& samples = *profile_.samples;
        for (std::uint32_t row = 0; row < samples.rows(); ++row) {
            const auto counts = samples.counts(row);
            const bool any = std::any_of(profile_.columns.begin(), profile_.columns.end(),
                                         [&](std::size_t column) { return counts[column] != 0; });
            if (any) entries_.push_back({samples.key(row).mapping, samples.key(row).pc, row});
        }
        // Mappings first, objects then: several mappings can be of one file.
        sort_by_address();
        std::uint32_t mapping = kNoMapping;
        std::uint64_t link_address_of_0 = 0;
        std::optional<std::uint32_t> object;
        for (Entry& entry : entries_) {
            if (!object || entry.object != mapping) {
                mapping = entry.object;
                link_address_of_0 = mapping == kNoMapping ? 0 : bias(mapping);
                object = object_index(mapping);
            }
            entry.object = *object;
            entry.address += link_address_of_0;
        }
    }

    // What is added to an address of the process to get the object's link-time address.
    std::uint64_t bias(std::uint32_t index) {
        const Mapping& mapping = profile_.addresses->mappings()[index];
        return profile_.symbolizer->address_of_offset(*mapping.path, mapping.offset) -
               mapping.start;
    }

    std::uint32_t object_index(std::uint32_t mapping) {
        const bool anonymous = mapping == kNoMapping;
        const std::string path =
            anonymous ? std::string(kAnonymous) : *profile_.addresses->mappings()[mapping].path;
        std::vector<events::Object>& objects = header_.objects;
        const auto known = std::find_if(objects.begin(), objects.end(),
                                        [&](const events::Object& o) { return o.path == path; });
        const auto index = static_cast<std::uint32_t>(known - objects.begin());
        if (known == objects.end())
            objects.push_back(
                {path, anonymous ? std::string() : profile_.symbolizer->build_id(path)});
        return index;
    }

    void find_source_positions() {
        sort_by_address();
        std::vector<symbols::Request> requests;
        std::vector<Entry*> firsts;  // of the requests' entries
        for (Entry& entry : entries_) {
            const std::string& path = header_.objects[entry.object].path;
            if (path == kAnonymous) continue;
            if (requests.empty() || requests.back().object_path != path) {
                requests.push_back({path, {}});
                firsts.push_back(&entry);
            }
            requests.back().addresses.push_back(entry.address);
        }
        const auto locations = profile_.symbolizer->resolve(requests);
        for (std::size_t object = 0; object < requests.size(); ++object) {
            for (std::size_t i = 0; i < locations[object].size(); ++i) {
                const symbols::Frame& frame = locations[object][i].frames[0];
                Entry& entry = firsts[object][i];
                std::tie(entry.file, entry.function, entry.line) =
                    std::tie(frame.file, frame.function, frame.line);
            }
        }
    }

    // The counts of all entries of one line, then those of each instruction.
    void write_line(events::Writer& writer, std::span<const Entry> entries) {
        std::fill(counts_.begin(), counts_.end(), 0);
        for (const Entry& entry : entries) add_counts(entry);
        writer.location(entries[0].file, entries[0].function);
        writer.line(entries[0].line, counts_);
        if (!profile_.dump_instructions) return;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            // The same instruction can have been mapped more than once.
            const bool first = i == 0 || entries[i].address != entries[i - 1].address ||
                               entries[i].object != entries[i - 1].object;
            if (first) std::fill(counts_.begin(), counts_.end(), 0);
            add_counts(entries[i]);
            const bool last = i + 1 == entries.size() ||
                              entries[i].address != entries[i + 1].address ||
                              entries[i].object != entries[i + 1].object;
            if (last) writer.instruction(entries[i].object, entries[i].address, counts_);
        }
    }

    void add_counts(const Entry& entry) {
        const auto row = profile_.samples->counts(entry.row);
        for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += row[profile_.columns[i]];
    }

    const Profile& profile_;
    events::Header header_;
    std::vector<Entry> entries_;
    Counts counts_;
};

}  // namespace

void write_profile(const std::string& path, const Profile& profile) {
    ProfileBuilder(profile).write(path);
}

void check_writable(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : ".";
    int reason = 0;
    if (fs::is_directory(status)) {
        reason = EISDIR;
    } else if (fs::exists(status) && !fs::is_regular_file(status)) {
        if (access(path.c_str(), W_OK) != 0) reason = errno;  // a device or a pipe
    } else if (!fs::is_directory(folder, error)) {
        reason = fs::exists(folder, error) ? ENOTDIR : ENOENT;
    } else if (access(folder.c_str(), W_OK | X_OK) != 0) {
        reason = errno;
    }
    if (reason != 0) throw Error(fmt::format("cannot write {}: {}", path, system_reason(reason)));
}

}  // namespace assay::collector
