#include "framework/collector/profile.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "framework/symbols/symbolizer.h"

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
    std::uint32_t object;   // index in the header
    std::uint64_t address;  // link-time address in the object
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
        std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
            return std::tie(a.file, a.function, a.line, a.object, a.address) <
                   std::tie(b.file, b.function, b.line, b.object, b.address);
        });
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

    // The entries with counts, and the objects that have any, in the order of mapping.
    void collect() {
        const SampleDatabase& samples = *profile_.samples;
        for (std::uint32_t row = 0; row < samples.rows(); ++row) {
            const auto counts = samples.counts(row);
            const bool any = std::any_of(profile_.columns.begin(), profile_.columns.end(),
                                         [&](std::size_t column) { return counts[column] != 0; });
            if (any) entries_.push_back({samples.key(row).mapping, 0, row});
        }
        // Mappings first, objects then: several mappings can be of one file.
        std::sort(entries_.begin(), entries_.end(), [&](const Entry& a, const Entry& b) {
            return std::pair(a.object, samples.key(a.row).pc) <
                   std::pair(b.object, samples.key(b.row).pc);
        });
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
            entry.address = samples.key(entry.row).pc + link_address_of_0;
        }
    }

    // What is added to an address of the process to get the object's link-time address.
    std::uint64_t bias(std::uint32_t index) {
        const Mapping& mapping = profile_.addresses->mappings()[index];
        return symbolizer_.address_of_offset(*mapping.path, mapping.offset) - mapping.start;
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
            objects.push_back({path, anonymous ? std::string() : symbolizer_.build_id(path)});
        return index;
    }

    void find_source_positions() {
        std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
            return std::tie(a.object, a.address) < std::tie(b.object, b.address);
        });
        std::vector<std::uint64_t> addresses;
        for (auto begin = entries_.begin(); begin != entries_.end();) {
            const auto end = std::find_if(begin, entries_.end(), [&](const Entry& entry) {
                return entry.object != begin->object;
            });
            const std::string& path = header_.objects[begin->object].path;
            if (path != kAnonymous) {
                addresses.clear();
                std::transform(begin, end, std::back_inserter(addresses),
                               [](const Entry& entry) { return entry.address; });
                const auto locations = symbolizer_.resolve(path, addresses);
                for (std::size_t i = 0; i < locations.size(); ++i) {
                    const symbols::Frame& frame = locations[i].frames[0];
                    Entry& entry = begin[static_cast<std::ptrdiff_t>(i)];
                    std::tie(entry.file, entry.function, entry.line) =
                        std::tie(frame.file, frame.function, frame.line);
                }
            }
            begin = end;
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
    symbols::Symbolizer symbolizer_;
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
