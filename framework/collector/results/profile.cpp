#include "framework/collector/results/profile.h"

#include "framework/collector/results/counted_code.h"
#include "framework/collector/results/groups.h"
#include "framework/collector/results/stack_lines.h"
#include "framework/events/writer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace assay::collector {

class ProfileWriter::File {
  public:
    explicit File(const Profile& profile)
        : profile_(profile),
          header_(profile.header),
          code_(profile),
          objects_(object_lines(profile)),
          threads_(profile, profile.counts->threads.counts),
          types_(profile),
          sums_(profile.columns.size()) {}

    std::vector<std::uint32_t> alike() {
        has_sources_ = true;
        code_.find_sources(code_.places_of_contexts());
        return code_.alike();
    }

    std::vector<bool> first_of_functions() const { return code_.first_of_functions(); }

    void write(const std::string& path) {
        if (!stacks_) arrange();
        events::Writer writer(path, header_);
        code_.write_sites(writer);
        for (const events::Group& group : groups_) writer.group(group);
        code_.write_linkage_names(writer);
        for (const auto& [function, object] : binaries_) writer.binary(function, object);
        for (auto begin = parts_.begin(); begin != parts_.end();) {
            const auto end = std::find_if(begin, parts_.end(), [&](const CountedCode::Part& part) {
                return part.position() != begin->position();
            });
            write_line(writer, {begin, end});
            begin = end;
        }
        stacks_->write(writer);
        writer.finish();
    }

  private:
    using Entries = std::span<const CountedCode::Entry>;

    // Finds the sources, contexts and groups that the file names.
    void arrange() {
        const std::vector<std::uint32_t> allocated = allocation_contexts(profile_, objects_);
        stacks_.emplace(profile_, code_, allocated);
        if (!std::exchange(has_sources_, true)) code_.find_sources(stacks_->places());
        stacks_->resolve(code_);
        parts_ = code_.sort_parts();
        const std::uint32_t first_thread = objects_.number_from(1);
        const std::uint32_t first_type = threads_.number_from(first_thread);
        for (const std::uint32_t object : objects_.groups())
            groups_.push_back(object_group(profile_, objects_, object, code_, *stacks_));
        if (profile_.objects) add_heap();
        for (const std::uint32_t thread : threads_.groups())
            groups_.push_back(thread_group(profile_, threads_, thread));
        if (profile_.types) find_types(first_type);
        header_.objects = code_.objects();
        // A function that is in several objects is in the first one, which is mostly the program.
        for (const CountedCode::Part& part : parts_) {
            const std::uint32_t object = part.entries.front().object;
            const auto [known, is_new] = binaries_.try_emplace(part.function, object);
            if (!is_new) known->second = std::min(known->second, object);
        }
    }

    // Called when the groups are those of the objects. The curve comes before those of profilers,
    // which can fill the file.
    void add_heap() {
        auto heap = heap_series(profile_, objects_, groups_);
        if (!heap) return;
        header_.series.insert(header_.series.begin(), std::move(*heap));
        header_.series.resize(std::min(header_.series.size(), events::kMostSeries));
    }

    void find_types(std::uint32_t first) {
        std::vector<std::uint64_t> addresses;
        std::vector<std::uint32_t> rows;
        const std::vector<CountedCode::Entry>& entries = code_.entries();
        for (std::size_t i = 0; i < entries.size(); ++i) {
            addresses.push_back(entries[i].address);
            rows.push_back(entries[i].row);
            const std::uint32_t object = entries[i].object;
            if (i + 1 < entries.size() && entries[i + 1].object == object) continue;
            if (!code_.is_generated(object))
                types_.find(code_.objects()[object].path, addresses, rows);
            addresses.clear();
            rows.clear();
        }
        type_lines_.emplace(types_.lines());
        type_lines_->number_from(first);
        for (const std::uint32_t type : type_lines_->groups())
            groups_.push_back(types_.group(*type_lines_, type));
        if (const std::string coverage = types_.coverage(); !coverage.empty())
            header_.descriptions.emplace_back("Types", coverage);
    }

    // Writes the counts of all entries of one line and site, then the counts of groups and
    // instructions.
    void write_line(events::Writer& writer, std::span<const CountedCode::Part> parts) {
        std::fill(sums_.begin(), sums_.end(), 0);
        rows_.clear();
        for (const CountedCode::Part& part : parts)
            for (const CountedCode::Entry& entry : part.entries) {
                add_counts(entry);
                rows_.push_back(entry.row);
            }
        writer.location(parts[0].file, parts[0].function);
        writer.line(parts[0].line, sums_, parts[0].site);
        objects_.write_line(writer, rows_);
        threads_.write_line(writer, rows_);
        if (type_lines_) type_lines_->write_line(writer, rows_);
        if (!profile_.dump_instructions && profile_.counts->hotlists.empty()) return;
        for (const CountedCode::Part& part : parts)
            write_instructions(writer, part.entries, part.site);
    }

    void write_instructions(events::Writer& writer, Entries entries, std::uint32_t site) {
        for (auto begin = entries.begin(); begin != entries.end();) {
            // The same instruction can have been mapped more than once.
            const auto end =
                std::find_if(begin, entries.end(), [&](const CountedCode::Entry& entry) {
                    return entry.address != begin->address || entry.object != begin->object;
                });
            write_instruction(writer, {begin, end}, site);
            begin = end;
        }
    }

    void write_instruction(events::Writer& writer, Entries entries, std::uint32_t site) {
        std::fill(sums_.begin(), sums_.end(), 0);
        std::vector<events::Hotlist> lists;
        for (const CountedCode::Entry& entry : entries) {
            add_counts(entry);
            for (events::Hotlist& list :
                 profile_.counts->hotlists.named(entry.row, profile_.list_names))
                add_list(lists, std::move(list));
        }
        if (profile_.dump_instructions)
            writer.instruction(entries[0].object, entries[0].address, sums_, site);
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

    void add_counts(const CountedCode::Entry& entry) {
        const auto row = profile_.counts->samples.counts(entry.row);
        for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += row[profile_.columns[i]];
    }

    const Profile& profile_;
    events::Header header_;
    CountedCode code_;
    bool has_sources_ = false;
    std::optional<StackLines> stacks_;  // from arrange() on
    GroupLines objects_, threads_;
    ReferencedTypes types_;
    std::optional<GroupLines> type_lines_;  // with --types
    std::vector<events::Group> groups_;
    std::span<const CountedCode::Part> parts_;
    std::map<std::string_view, std::uint32_t> binaries_;  // object of each function
    // Buffers for the line or the instruction that is being written.
    std::vector<std::uint64_t> sums_;
    std::vector<std::uint32_t> rows_;
};

ProfileWriter::ProfileWriter(const Profile& profile) : file_(std::make_unique<File>(profile)) {}
ProfileWriter::~ProfileWriter() = default;

std::vector<std::uint32_t> ProfileWriter::alike() {
    return file_->alike();
}

std::vector<bool> ProfileWriter::first_of_functions() const {
    return file_->first_of_functions();
}

void ProfileWriter::write(const std::string& path) {
    file_->write(path);
}

}  // namespace assay::collector
