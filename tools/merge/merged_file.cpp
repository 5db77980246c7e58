#include "tools/merge/merged_file.h"

#include "framework/events/writer.h"
#include "framework/support/text.h"

#include <algorithm>
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
    return header;
}

// Writes rows of a profile whose counts are packed.
class MergedFile {
  public:
    MergedFile(const WholeProfile& profile, events::Writer& writer)
        : profile_(profile), writer_(writer), counts_(profile.events().size()) {}

    void write() {
        const std::span<const WholeProfile::Site> sites = profile_.sites();
        for (std::uint32_t i = 1; i < sites.size(); ++i)
            writer_.site({i, sites[i].parent, sites[i].line, profile_.text(sites[i].file),
                          profile_.text(sites[i].function)});
        for (std::uint32_t place = 0; place < profile_.places().size(); ++place) write_place(place);
        const std::span<const WholeProfile::Context> contexts = profile_.contexts();
        for (std::uint32_t i = 1; i < contexts.size(); ++i)
            writer_.stack(
                {i, contexts[i].parent, contexts[i].kind, contexts[i].object, contexts[i].address,
                 contexts[i].line, profile_.text(contexts[i].function)},
                read(contexts[i].row));
    }

  private:
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
        }
    }

    Counts read(CountStore::Row row) {
        profile_.counts().read(row, counts_);
        return counts_;
    }

    const WholeProfile& profile_;
    events::Writer& writer_;
    std::vector<std::uint64_t> counts_;
};

}  // namespace

void write_events_file(const WholeProfile& profile, const std::string& path) {
    events::Writer writer(path, header_of(profile));
    MergedFile(profile, writer).write();
    writer.finish();
}

}  // namespace assay
