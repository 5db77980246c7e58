#include "tools/annotate/json.h"

#include "framework/events/formula.h"
#include "tools/output/formats.h"
#include "tools/table/table.h"

namespace assay::annotate {

namespace {

class Document {
  public:
    Document(const Options& options, const Content& content, const Columns& columns, Sink& sink)
        : options_(options),
          content_(content),
          profile_(content.profile),
          columns_(columns),
          json_(sink) {}

    void write(const std::vector<SortColumn>& sort) {
        json_.begin_object();
        json_.text("format", "assay-annotate");
        json_.number("version", 1);
        json_.boolean("difference", columns_.header.difference);
        json_.texts("files", options_.profiles);
        json_.texts("commands", profile_.commands());
        json_.texts("incomplete", profile_.incomplete());
        json_.texts("madeDifferently", profile_.heads().differences());
        json_.named_texts("descriptions", profile_.heads().descriptions());
        write_event_list(columns_.header, columns_.shown, json_);
        write_derived();
        write_row("totals", columns_.totals);
        write_functions(sort);
        write_inlined(sort);
        if (content_.calls) content_.calls->write_json(json_);
        if (content_.tree) content_.tree->write_json(json_);
        if (content_.groups) content_.groups->write_json(json_);
        write_sources();
        json_.end_object();
    }

  private:
    void write_derived() {
        json_.begin_array("derived");
        for (const events::Derived& derived : columns_.header.derived) {
            if (columns_.header.difference) break;
            json_.begin_object();
            json_.text("name", derived.name);
            json_.text("unit", derived.unit);
            json_.text("formula", derived.formula);
            const events::Formula formula(derived.formula, columns_.header.events);
            json_.real("value", formula.value(columns_.totals));
            json_.end_object();
        }
        json_.end_array();
    }

    void write_row(std::string_view key, Counts counts) {
        write_counts(key, columns_.header, columns_.shown, counts, json_);
    }

    // Writes functions above the threshold; a threshold of 0 writes all.
    void write_functions(const std::vector<SortColumn>& sort) {
        json_.begin_array("functions");
        for (const std::size_t function : functions_in_order(profile_, sort)) {
            const Counts counts = profile_.by_source().counts(function);
            if (!is_above_threshold(counts, columns_.totals, sort, columns_.header)) continue;
            json_.begin_object();
            json_.text("file", profile_.by_source().file_text(function));
            json_.text("function", profile_.by_source().name_text(function));
            write_row("counts", counts);
            json_.end_object();
        }
        json_.end_array();
    }

    void write_inlined(const std::vector<SortColumn>& sort) {
        write_rows("withInlined", content_.inlined.callers(profile_, sort),
                   [](const InlinedCalls::Place&) {});
        write_rows("inlined", content_.inlined.inlined(profile_, sort),
                   [this](const InlinedCalls::Place& call) {
                       json_.text("callerFile", call.file);
                       json_.text("caller", call.function);
                       json_.number("callLine", call.line);
                   });
    }

    template <typename WriteCall>
    void write_rows(std::string_view key, const std::vector<InlinedCalls::Row>& rows,
                    const WriteCall& write_call) {
        json_.objects(key, rows, [&](const InlinedCalls::Row& row) {
            json_.text("file", row.function.file);
            json_.text("function", row.function.function);
            write_call(row.call);
            write_row("counts", row.counts);
        });
    }

    void write_sources() {
        json_.objects("sources", content_.choice.found, [&](const SourceChoice::Source& source) {
            const std::string_view name = profile_.by_source().files()[source.file];
            json_.text("file", name);
            json_.text("path", source.path.string());
            json_.boolean("newer", !warning_if_newer(name, source.path, options_.profiles).empty());
            write_lines(source, profile_.source_lines(source.file),
                        profile_.source_instructions(source.file));
        });
        write_names("sourcesNotFound", content_.choice.not_found);
        write_names("sourcesLeftOut", content_.choice.left_out);
    }

    void write_names(std::string_view key, const std::vector<std::uint32_t>& files) {
        std::vector<std::string> names;
        names.reserve(files.size());
        for (const std::uint32_t file : files)
            names.emplace_back(profile_.by_source().files()[file]);
        json_.texts(key, names);
    }

    // Writes only lines with counts. Readers take the text of other lines from the source.
    void write_lines(const SourceChoice::Source& source, const std::vector<SourceLine>& lines,
                     const std::vector<SourceInstruction>& instructions) {
        const std::string content = read_source_or_warn(source.path).value_or("");
        const std::vector<std::string_view> text = split_lines(content);
        auto instruction = instructions.begin();
        json_.objects("lines", lines, [&](const SourceLine& line) {
            json_.number("line", line.line);
            json_.key("text");
            if (line.line >= 1 && line.line <= text.size())
                json_.text(text[line.line - 1]);
            else
                json_.null();
            write_row("counts", line.counts);
            if (options_.instructions) {
                json_.begin_array("instructions");
                for (; instruction != instructions.end() && instruction->line <= line.line;
                     ++instruction)
                    if (instruction->line == line.line) write_instruction(*instruction);
                json_.end_array();
            }
        });
    }

    void write_instruction(const SourceInstruction& at) {
        json_.begin_object();
        json_.text("object", profile_.objects()[at.object].path);
        json_.address("address", at.address);
        const Assembly& assembly = content_.assembly;
        const auto text = assembly.text.find({at.object, at.address});
        json_.key("text");
        if (text == assembly.text.end())
            json_.null();
        else
            json_.text(text->second);
        write_row("counts", at.counts);
        json_.end_object();
    }

    const Options& options_;
    const Content& content_;
    const Profile& profile_;
    const Columns& columns_;
    JsonWriter json_;
};

}  // namespace

void write_json(const Options& options, const Content& content, const Columns& columns,
                const std::vector<SortColumn>& sort, Sink& sink) {
    Document(options, content, columns, sink).write(sort);
    sink.write("\n");
}

}  // namespace assay::annotate
