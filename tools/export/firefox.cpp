// Firefox Profiler's processed profile format, version 48 (https://profiler.firefox.com; its
// docs-developer/processed-profile-format.md and src/types/profile.js). The profiler upgrades older
// versions when it loads them, so this version stays readable.
//
// The file has one thread per event. Each context or line with counts is a sample with its count as
// the weight. Times only keep the samples in order.
#include "tools/export/export.h"
#include "tools/export/stacks.h"
#include "tools/output/formats.h"

#include <limits>
#include <map>
#include <tuple>

namespace assay::exporting {

namespace {

constexpr std::uint64_t kFormatVersion = 48;
constexpr std::uint64_t kGeckoVersion = 27;  // version of the raw format of such profiles
constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

// The type of weights, if the profiler knows it.
std::string_view weight_type(const events::Event& event) {
    if (event.unit == "bytes") return "bytes";
    if (event.unit == "milliseconds" || event.unit == "ms") return "tracing-ms";
    return "samples";
}

// The tables of one thread. The format stores them by column, so memory holds a whole thread.
struct Thread {
    std::vector<std::string> strings;
    std::vector<std::uint64_t> function_names, function_files;  // indices of strings
    std::vector<std::uint64_t> frame_functions, frame_lines;    // kNone: unknown
    std::vector<std::uint64_t> frame_inline_depths;             // 0: not inlined
    std::vector<std::uint64_t> stack_frames, stack_prefixes;    // kNone: no prefix
    std::vector<std::uint64_t> sample_stacks, weights;
};

class ThreadBuilder {
  public:
    ThreadBuilder(const Profile& profile, std::size_t event)
        : profile_(profile), event_(event), counts_(profile.events().size()) {}

    Thread build() {
        if (is_counted_by_context(profile_, event_))
            add_contexts();
        else
            add_lines();
        return std::move(thread_);
    }

  private:
    std::uint64_t string(std::string_view text) {
        const auto [entry, is_new] =
            strings_.try_emplace(std::string(text), thread_.strings.size());
        if (is_new) thread_.strings.emplace_back(text);
        return entry->second;
    }

    std::uint64_t function(std::string_view name, std::string_view file) {
        const std::uint64_t name_index = string(name),
                            file_index = file == kUnknown ? kNone : string(file);
        const auto [entry, is_new] =
            functions_.try_emplace({name_index, file_index}, thread_.function_names.size());
        if (is_new) {
            thread_.function_names.push_back(name_index);
            thread_.function_files.push_back(file_index);
        }
        return entry->second;
    }

    std::uint64_t stack(std::uint64_t function, std::uint64_t line, std::uint64_t prefix,
                        std::uint64_t inline_depth = 0) {
        const auto [frame, is_new_frame] =
            frames_.try_emplace({function, line, inline_depth}, thread_.frame_functions.size());
        if (is_new_frame) {
            thread_.frame_functions.push_back(function);
            thread_.frame_lines.push_back(line);
            thread_.frame_inline_depths.push_back(inline_depth);
        }
        const auto [stack, is_new] =
            stacks_.try_emplace({prefix, frame->second}, thread_.stack_frames.size());
        if (is_new) {
            thread_.stack_frames.push_back(frame->second);
            thread_.stack_prefixes.push_back(prefix);
        }
        return stack->second;
    }

    void add_sample(std::uint64_t stack, std::uint64_t weight) {
        thread_.sample_stacks.push_back(stack);
        thread_.weights.push_back(weight);
    }

    void add_lines() {
        for (const Profile::Line& line : profile_.lines_by_site()) {
            profile_.counts().read(line.row, counts_);
            if (counts_[event_] == 0) continue;
            std::uint64_t caller = kNone, depth = 0;
            for (const std::uint32_t i : profile_.sites_to(line.site)) {
                const Profile::Site& site = profile_.sites()[i];
                caller = source_stack(site.function, site.file, site.line, caller, depth++);
            }
            const Profile::Place& place = profile_.places()[line.place];
            add_sample(source_stack(place.function, place.file, line.line, caller, depth),
                       counts_[event_]);
        }
    }

    std::uint64_t source_stack(Strings::Id name, Strings::Id file, std::uint32_t line,
                               std::uint64_t prefix, std::uint64_t inline_depth) {
        return stack(function(profile_.text(name), profile_.text(file)), line == 0 ? kNone : line,
                     prefix, inline_depth);
    }

    std::uint64_t context_function(std::uint32_t context) {
        const Strings::Id name = profile_.contexts()[context].function;
        return function(profile_.text(name), file_of(profile_, name));
    }

    void add_contexts() {
        // By context: the stack down to the call that leads to it.
        std::vector<std::uint64_t> callers(profile_.contexts().size(), kNone);
        std::vector<std::uint64_t> depths(profile_.contexts().size());  // inlining depths
        for (std::uint32_t i = 1; i < profile_.contexts().size(); ++i) {
            const Profile::Context& context = profile_.contexts()[i];
            if (context.parent != 0) {
                const std::uint32_t line = profile_.call_line(context);
                callers[i] = stack(context_function(context.parent), line != 0 ? line : kNone,
                                   callers[context.parent], depths[context.parent]);
                if (context.kind == events::StackKind::kInlined)
                    depths[i] = depths[context.parent] + 1;
            }
            profile_.counts().read(context.row, counts_);
            if (counts_[event_] != 0)
                add_sample(stack(context_function(i), kNone, callers[i], depths[i]),
                           counts_[event_]);
        }
        if (const std::uint64_t rest = outside(profile_, event_))
            add_sample(stack(function(kOutside, kUnknown), kNone, kNone), rest);
    }

    const Profile& profile_;
    std::size_t event_;
    Thread thread_;
    std::vector<std::uint64_t> counts_;  // scratch
    std::map<std::string, std::uint64_t> strings_;
    using Pairs = std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>;
    Pairs functions_, stacks_;
    // By function, line and depth of inlining.
    std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, std::uint64_t> frames_;
};

class FirefoxDocument {
  public:
    FirefoxDocument(const Selection& selection, Sink& sink)
        : profile_(selection.profile), events_(selection.events), json_(sink) {}

    void write() {
        json_.begin_object();
        write_meta();
        empty_list("libs");
        json_.begin_array("threads");
        for (const std::size_t event : events_) write_thread(event);
        json_.end_array();
        json_.end_object();
    }

  private:
    void empty_list(std::string_view key) {
        json_.begin_array(key);
        json_.end_array();
    }

    void write_meta() {
        json_.begin_object("meta");
        json_.number("interval", 1);
        json_.number("startTime", 0);
        json_.number("processType", 0);
        json_.number("stackwalk", 1);
        json_.text("product", profile_.commands().front());
        json_.text("importedFrom", "assay");
        json_.number("version", kGeckoVersion);
        json_.number("preprocessedProfileVersion", kFormatVersion);
        json_.key("symbolicated");
        json_.boolean(true);
        empty_list("markerSchema");
        json_.begin_array("categories");
        json_.begin_object();
        json_.text("name", "Other");
        json_.text("color", "grey");
        json_.begin_array("subcategories");
        json_.text("Other");
        json_.end_array();
        json_.end_object();
        json_.end_array();
        json_.end_object();
    }

    // Writes a column of indices or numbers; missing ones are null.
    void column(std::string_view key, const std::vector<std::uint64_t>& values) {
        json_.begin_array(key);
        for (const std::uint64_t value : values) {
            if (value == kNone)
                json_.null();
            else
                json_.number(value);
        }
        json_.end_array();
    }

    // Writes a column with the same value in each row.
    void constant_column(std::string_view key, std::size_t length, std::string_view value) {
        json_.begin_array(key);
        for (std::size_t i = 0; i < length; ++i) json_.literal(value);
        json_.end_array();
    }

    void write_thread(std::size_t event) {
        const Thread thread = ThreadBuilder(profile_, event).build();
        const events::Event& described = profile_.events()[event];
        json_.begin_object();
        json_.text("processType", "default");
        json_.number("processStartupTime", 0);
        json_.key("processShutdownTime");
        json_.null();
        json_.number("registerTime", 0);
        json_.key("unregisterTime");
        json_.null();
        empty_list("pausedRanges");
        json_.text("name", described.name);
        json_.key("isMainThread");
        json_.boolean(true);
        json_.text("processName",
                   described.description.empty() ? described.name : described.description);
        json_.text("pid", std::to_string(event + 1));
        json_.number("tid", event + 1);
        write_samples(thread, described);
        write_markers();
        write_stacks(thread);
        write_frames(thread);
        write_functions(thread);
        write_empty_tables();
        json_.begin_array("stringArray");
        for (const std::string& text : thread.strings) json_.text(text);
        json_.end_array();
        json_.end_object();
    }

    void write_samples(const Thread& thread, const events::Event& event) {
        json_.begin_object("samples");
        column("stack", thread.sample_stacks);
        std::vector<std::uint64_t> times(thread.sample_stacks.size());
        for (std::size_t i = 0; i < times.size(); ++i) times[i] = i;
        column("time", times);
        column("weight", thread.weights);
        json_.text("weightType", weight_type(event));
        json_.number("length", thread.sample_stacks.size());
        json_.end_object();
    }

    void write_markers() {
        json_.begin_object("markers");
        for (const std::string_view name :
             {"data", "name", "startTime", "endTime", "phase", "category"})
            empty_list(name);
        json_.number("length", 0);
        json_.end_object();
    }

    void write_stacks(const Thread& thread) {
        const std::size_t length = thread.stack_frames.size();
        json_.begin_object("stackTable");
        column("frame", thread.stack_frames);
        column("prefix", thread.stack_prefixes);
        constant_column("category", length, "0");
        constant_column("subcategory", length, "0");
        json_.number("length", length);
        json_.end_object();
    }

    void write_frames(const Thread& thread) {
        const std::size_t length = thread.frame_functions.size();
        json_.begin_object("frameTable");
        constant_column("address", length, "-1");
        column("inlineDepth", thread.frame_inline_depths);
        constant_column("category", length, "0");
        constant_column("subcategory", length, "0");
        column("func", thread.frame_functions);
        constant_column("nativeSymbol", length, "null");
        constant_column("innerWindowID", length, "0");
        constant_column("implementation", length, "null");
        column("line", thread.frame_lines);
        constant_column("column", length, "null");
        json_.number("length", length);
        json_.end_object();
    }

    void write_functions(const Thread& thread) {
        const std::size_t length = thread.function_names.size();
        json_.begin_object("funcTable");
        column("name", thread.function_names);
        constant_column("isJS", length, "false");
        constant_column("relevantForJS", length, "false");
        constant_column("resource", length, "-1");
        column("fileName", thread.function_files);
        constant_column("lineNumber", length, "null");
        constant_column("columnNumber", length, "null");
        json_.number("length", length);
        json_.end_object();
    }

    void write_empty_tables() {
        json_.begin_object("resourceTable");
        for (const std::string_view name : {"lib", "name", "host", "type"}) empty_list(name);
        json_.number("length", 0);
        json_.end_object();
        json_.begin_object("nativeSymbols");
        for (const std::string_view name : {"libIndex", "address", "name", "functionSize"})
            empty_list(name);
        json_.number("length", 0);
        json_.end_object();
    }

    const Profile& profile_;
    const std::vector<std::size_t>& events_;
    JsonWriter json_;
};

}  // namespace

void write_firefox(const Selection& selection, Sink& sink) {
    FirefoxDocument(selection, sink).write();
    sink.write("\n");
}

}  // namespace assay::exporting
