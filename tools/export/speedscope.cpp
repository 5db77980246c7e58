// speedscope's file format (https://www.speedscope.app/file-format-schema.json), with one sampled
// profile per event. Each context or line is a sample with its count as the weight.
#include "tools/export/export.h"
#include "tools/export/stacks.h"
#include "tools/output/formats.h"

#include <fmt/core.h>

namespace assay::exporting {

namespace {

// Order of the frames: two substitutes, then one per function name in contexts, one per function,
// one per inlining site (the calling function), and one per line.
class SpeedscopeDocument {
  public:
    SpeedscopeDocument(const Selection& selection, Sink& sink)
        : profile_(selection.profile),
          stacks_(selection.profile),
          events_(selection.events),
          json_(sink),
          counts_(profile_.events().size()) {
        number_frames();
    }

    void write() {
        json_.begin_object();
        json_.text("$schema", "https://www.speedscope.app/file-format-schema.json");
        json_.text("exporter", "assay");
        json_.text("name", profile_.commands().front());
        json_.begin_object("shared");
        json_.begin_array("frames");
        write_frames();
        json_.end_array();
        json_.end_object();
        json_.begin_array("profiles");
        for (const std::size_t event : events_) write_profile(event);
        json_.end_array();
        json_.end_object();
    }

  private:
    enum : std::size_t { kOutsideFrame, kLeftOutFrame, kFixedFrames };

    void number_frames() {
        frames_of_names_.assign(profile_.strings().size(), 0);
        std::size_t next = kFixedFrames;
        for (const Profile::Context& context : profile_.contexts().subspan(1)) {
            std::size_t& frame = frames_of_names_[context.function];
            if (frame != 0) continue;
            frame = next++;
            names_.push_back(context.function);
        }
        first_function_ = next;
        first_site_ = first_function_ + profile_.functions().size();
        first_line_ = first_site_ + profile_.sites().size() - 1;
    }

    void write_frame(std::string_view name, std::string_view file = {}, std::uint32_t line = 0) {
        json_.begin_object();
        json_.text("name", name);
        if (!file.empty() && file != kUnknown) json_.text("file", file);
        if (line != 0) json_.number("line", line);
        json_.end_object();
    }

    void write_frames() {
        write_frame(kOutside);
        write_frame(kLeftOut);
        for (const Strings::Id name : names_)
            write_frame(profile_.text(name), file_of(profile_, name));
        for (const Profile::Function& function : profile_.functions())
            write_frame(profile_.text(function.name), profile_.text(function.file));
        for (const Profile::Site& site : profile_.sites().subspan(1))
            write_frame(profile_.text(site.function), profile_.text(site.file));
        for (const Profile::Line& line : profile_.lines()) {
            const std::string_view file = profile_.text(profile_.places()[line.place].file);
            const std::string position = source_position(file, line.line);
            write_frame(position.empty() ? kUnknown : position, file, line.line);
        }
    }

    void write_profile(std::size_t event) {
        json_.begin_object();
        json_.text("type", "sampled");
        json_.text("name", profile_.events()[event].name);
        json_.text("unit", unit_of(profile_.events()[event], "none"));
        json_.number("startValue", 0);
        json_.number("endValue", profile_.totals()[event]);
        json_.begin_array("samples");
        for_each_sample(event, [&](std::span<const std::uint64_t> frames, std::uint64_t) {
            json_.numbers(frames);
        });
        json_.end_array();
        json_.begin_array("weights");
        for_each_sample(event, [&](std::span<const std::uint64_t>, std::uint64_t weight) {
            json_.number(weight);
        });
        json_.end_array();
        json_.end_object();
    }

    template <typename Function>
    void for_each_sample(std::size_t event, const Function& function) {
        if (is_counted_by_context(profile_, event))
            for_each_context(event, function);
        else
            for_each_line(event, function);
    }

    template <typename Function>
    void for_each_context(std::size_t event, const Function& function) {
        std::vector<std::uint64_t> frames;
        for (std::uint32_t context = 1; context < profile_.contexts().size(); ++context) {
            profile_.counts().read(profile_.contexts()[context].row, counts_);
            if (counts_[event] == 0) continue;
            frames.clear();
            for (const std::uint32_t caller : stacks_.to(context))
                frames.push_back(caller == 0
                                     ? std::size_t{kLeftOutFrame}
                                     : frames_of_names_[profile_.contexts()[caller].function]);
            function(frames, counts_[event]);
        }
        const std::uint64_t frame = kOutsideFrame;
        if (const std::uint64_t rest = outside(profile_, event)) function({&frame, 1}, rest);
    }

    template <typename Function>
    void for_each_line(std::size_t event, const Function& function) {
        std::size_t index = 0, line_index = 0;
        std::vector<std::uint64_t> frames;
        for (const Profile::Line& line : profile_.lines_by_site()) {
            while (profile_.lines()[line_index].place != line.place ||
                   profile_.lines()[line_index].line != line.line)
                ++line_index;
            while (profile_.functions()[index].end_place <= line.place) ++index;
            profile_.counts().read(line.row, counts_);
            if (counts_[event] == 0) continue;
            frames.clear();
            for (const std::uint32_t site : profile_.sites_to(line.site))
                frames.push_back(first_site_ + site - 1);
            frames.push_back(first_function_ + index);
            frames.push_back(first_line_ + line_index);
            function(frames, counts_[event]);
        }
    }

    const Profile& profile_;
    const Stacks stacks_;
    const std::vector<std::size_t>& events_;
    JsonWriter json_;
    std::vector<std::uint64_t> counts_;  // scratch
    std::vector<std::size_t> frames_of_names_;
    std::vector<Strings::Id> names_;
    std::size_t first_function_ = 0, first_site_ = 0, first_line_ = 0;
};

}  // namespace

void write_speedscope(const Selection& selection, Sink& sink) {
    SpeedscopeDocument(selection, sink).write();
    sink.write("\n");
}

}  // namespace assay::exporting
