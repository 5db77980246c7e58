#include "tools/merge/merged_file.h"

#include "framework/events/writer.h"
#include "framework/support/text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace assay {

namespace {

events::Header header_of(const WholeProfile& profile) {
    events::Header header;
    header.descriptions = profile.descriptions();
    header.command = join(profile.commands(), "; ");
    header.events = profile.events();
    header.derived = profile.derived();
    header.objects = profile.objects();
    header.incomplete = join(profile.incomplete(), "; ");
    header.series = profile.series();
    return header;
}

// Writes rows of a profile whose counts are packed.
class MergedFile {
  public:
    MergedFile(const WholeProfile& profile, const GroupProfile& groups, events::Writer& writer)
        : profile_(profile), groups_(groups), writer_(writer), counts_(profile.events().size()) {}

    void write() {
        const std::span<const WholeProfile::Site> sites = profile_.sites();
        for (std::uint32_t i = 1; i < sites.size(); ++i)
            writer_.site({i, sites[i].parent, sites[i].line, profile_.text(sites[i].file),
                          profile_.text(sites[i].function)});
        write_groups();
        for (const auto& [function, name] : profile_.linkage_names())
            writer_.linkage(function, name);
        for (std::uint32_t place = 0; place < profile_.places().size(); ++place) write_place(place);
        const std::span<const WholeProfile::Context> contexts = profile_.contexts();
        for (std::uint32_t i = 1; i < contexts.size(); ++i)
            writer_.stack(
                {i, contexts[i].parent, contexts[i].kind, contexts[i].object, contexts[i].address,
                 contexts[i].line, profile_.text(contexts[i].function)},
                read(contexts[i].row));
    }

  private:
    // File, function and line.
    using Line = std::tuple<std::string_view, std::string_view, std::uint32_t>;
    struct Part {
        std::uint32_t group;  // its number in the file
        std::vector<std::uint64_t> counts;
    };

    void write_groups() {
        if (groups_.groups().empty()) return;
        const std::map<std::string, std::uint32_t> contexts = contexts_by_calls();
        for (std::uint32_t i = 0; i < groups_.groups().size(); ++i) {
            const GroupProfile::Group& group = groups_.groups()[i];
            events::Group written{i + 1,
                                  group.parent == GroupProfile::kNone ? 0 : group.parent + 1,
                                  group.kind,
                                  group.name,
                                  {}};
            for (const auto& [key, value] : group.attributes) {
                if (key == "binary") continue;
                if (key == "stack") {
                    const auto context = contexts.find(join(group.callers, "\n"));
                    if (context != contexts.end())
                        written.attributes.emplace_back(key, std::to_string(context->second));
                    continue;
                }
                written.attributes.emplace_back(key, value);
            }
            if (const auto binary = index_of(group.binary))
                written.attributes.emplace_back("binary", std::to_string(*binary));
            writer_.group(written);
            for (GroupProfile::Line& line : groups_.lines(i))
                parts_[{groups_.text(line.file), groups_.text(line.function), line.line}].push_back(
                    {i + 1, std::move(line.counts)});
        }
    }

    std::optional<std::size_t> index_of(std::string_view binary) const {
        const std::vector<events::Object>& objects = profile_.objects();
        for (std::size_t i = 0; i < objects.size(); ++i)
            if (!binary.empty() && objects[i].path == binary) return i;
        return std::nullopt;
    }

    // The first context of which those are the functions, as GroupProfile::Group::callers.
    std::map<std::string, std::uint32_t> contexts_by_calls() const {
        std::map<std::string, std::uint32_t> found;
        const std::span<const WholeProfile::Context> contexts = profile_.contexts();
        for (std::uint32_t i = 1; i < contexts.size(); ++i) {
            std::vector<std::string> callers;
            for (std::uint32_t at = i; at != 0 && callers.size() < GroupProfile::kMostCallers;
                 at = contexts[at].parent)
                callers.emplace_back(profile_.text(contexts[at].function));
            found.try_emplace(join(callers, "\n"), i);
        }
        return found;
    }

    void write_parts(const WholeProfile::Place& at, std::uint32_t line) {
        const auto found = parts_.find({profile_.text(at.file), profile_.text(at.function), line});
        if (found == parts_.end()) return;
        for (const Part& part : found->second) writer_.counts_of(part.group, part.counts);
    }

    // An instruction and its values stand behind the line that they belong to. Of a file made by
    // hand, that may have no counts.
    void write_place(std::uint32_t place) {
        const WholeProfile::Place& at = profile_.places()[place];
        writer_.location(profile_.text(at.file), profile_.text(at.function));
        const auto lines = profile_.lines_by_site(place);
        const auto instructions = profile_.instructions(place);
        const auto values = profile_.values(place);
        auto line = lines.begin();
        auto instruction = instructions.begin();
        auto value = values.begin();
        while (line != lines.end() || instruction != instructions.end() || value != values.end()) {
            constexpr std::uint32_t kNone = ~std::uint32_t{0};
            const std::uint32_t number =
                std::min({line == lines.end() ? kNone : line->line,
                          instruction == instructions.end() ? kNone : instruction->line,
                          value == values.end() ? kNone : value->line});
            if (line == lines.end() || line->line != number) {
                std::fill(counts_.begin(), counts_.end(), 0);
                writer_.line(number, counts_);
            }
            for (; line != lines.end() && line->line == number; ++line)
                writer_.line(number, read(line->row), line->site);
            for (; instruction != instructions.end() && instruction->line == number; ++instruction)
                writer_.instruction(instruction->object, instruction->address,
                                    read(instruction->row), instruction->site);
            for (; value != values.end() && value->line == number; ++value)
                writer_.values(value->object, value->address, value->list);
            write_parts(at, number);
        }
    }

    Counts read(CountStore::Row row) {
        profile_.counts().read(row, counts_);
        return counts_;
    }

    const WholeProfile& profile_;
    const GroupProfile& groups_;
    std::map<Line, std::vector<Part>> parts_;
    events::Writer& writer_;
    std::vector<std::uint64_t> counts_;
};

}  // namespace

void write_events_file(const WholeProfile& profile, const GroupProfile& groups,
                       const std::string& path) {
    events::Writer writer(path, header_of(profile));
    MergedFile(profile, groups, writer).write();
    writer.finish();
}

}  // namespace assay
