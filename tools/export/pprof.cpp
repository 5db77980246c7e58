// pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto), with its
// field numbers as constants. All fields of the outermost message are repeated or independent, so
// they can be written in any order.
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/export/export.h"
#include "tools/export/stacks.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

namespace assay::exporting {

namespace {

// Messages in the wire format of protocol buffers
// (https://protobuf.dev/programming-guides/encoding/), limited to the features of pprof's profiles.

class ProtobufMessage {
  public:
    // Omits fields with value 0, which is the default.
    void number(unsigned field, std::uint64_t value) {
        if (value == 0) return;
        append_varint(std::uint64_t{field} << 3 | kVarint);
        append_varint(value);
    }
    void boolean(unsigned field, bool value) { number(field, value ? 1 : 0); }
    // Writes a string or an inner message.
    void bytes(unsigned field, std::string_view value) {
        append_varint(std::uint64_t{field} << 3 | kLengthDelimited);
        append_varint(value.size());
        bytes_ += value;
    }
    void packed(unsigned field, std::span<const std::uint64_t> values) {
        ProtobufMessage list;
        for (const std::uint64_t value : values) list.append_varint(value);
        bytes(field, list.bytes_);
    }

    const std::string& encoded() const { return bytes_; }

  private:
    enum : std::uint64_t { kVarint = 0, kLengthDelimited = 2 };

    void append_varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
        bytes_ += static_cast<char>(value);
    }

    std::string bytes_;
};

// Gives objects separate addresses, as if object N were loaded at N * kObjectBytes. The first
// object usually is the program. It keeps the addresses that debuggers and disassemblers show.
constexpr std::uint64_t kObjectBytes = std::uint64_t{1} << 44;

class PprofDocument {
  public:
    PprofDocument(const Selection& selection, Sink& sink)
        : profile_(selection.profile),
          stacks_(selection.profile),
          events_(selection.events),
          sink_(sink),
          counts_(profile_.events().size()) {
        for (const std::size_t event : events_)
            by_context_.push_back(is_counted_by_context(profile_, event));
    }

    void write() {
        check_totals();
        text("");  // the first text must be empty
        write_header();
        write_mappings();
        for (std::uint32_t place = 0; place < profile_.places().size(); ++place) write_lines(place);
        for (std::uint32_t context = 1; context < profile_.contexts().size(); ++context)
            write_context(context);
        write_outside();
    }

  private:
    enum ProfileField : unsigned {
        kSampleType = 1,
        kSample = 2,
        kMapping = 3,
        kLocation = 4,
        kFunction = 5,
        kStringTable = 6,
        kPeriodType = 11,
        kPeriod = 12,
        kComment = 13,
        kDefaultSampleType = 14,
    };
    // A function with the functions inlined into it, innermost first.
    struct Frame {
        struct Line {
            std::uint64_t function, line;
            bool operator<(const Line& other) const {
                return std::tie(function, line) < std::tie(other.function, other.line);
            }
        };
        std::uint64_t object_number;  // 0 if unknown
        std::uint64_t address;
        std::vector<Line> lines;
        bool operator<(const Frame& other) const {
            return std::tie(object_number, address, lines) <
                   std::tie(other.object_number, other.address, other.lines);
        }
    };

    void check_totals() const {
        for (const std::size_t event : events_)
            if (profile_.totals()[event] > std::numeric_limits<std::int64_t>::max())
                throw Error(
                    fmt::format("the total of {}, {}, exceeds the 63 bits of pprof's "
                                "format; export other events with --event",
                                profile_.events()[event].name, profile_.totals()[event]));
    }

    void field(ProfileField number, const ProtobufMessage& message) {
        ProtobufMessage outer;
        outer.bytes(number, message.encoded());
        sink_.write(outer.encoded());
    }
    void number(ProfileField field, std::uint64_t value) {
        ProtobufMessage outer;
        outer.number(field, value);
        sink_.write(outer.encoded());
    }

    // Returns the index of a text. Writes the text at its first use.
    std::uint64_t text(std::string_view text) {
        const auto [entry, is_new] = texts_.try_emplace(std::string(text), texts_.size());
        if (is_new) {
            ProtobufMessage outer;
            // Readers reject messages with text that is not UTF-8.
            outer.bytes(kStringTable, printable(text));
            sink_.write(outer.encoded());
        }
        return entry->second;
    }

    void write_header() {
        for (const std::size_t event : events_) {
            const events::Event& described = profile_.events()[event];
            ProtobufMessage type;
            type.number(1, text(described.name));
            type.number(2, text(unit_of(described, "count")));
            field(kSampleType, type);
        }
        number(kDefaultSampleType, text(profile_.events()[events_.front()].name));
        for (const std::string& command : profile_.commands()) number(kComment, text(command));
        for (const auto& [name, value] : profile_.heads().common_descriptions())
            number(kComment, text(fmt::format("{}: {}", name, value)));
        for (const std::string& reason : profile_.incomplete())
            number(kComment, text("incomplete: " + reason));
    }

    void write_mappings() {
        std::uint64_t start = 0;
        for (std::size_t i = 0; i < profile_.objects().size(); ++i, start += kObjectBytes) {
            const events::Object& object = profile_.objects()[i];
            ProtobufMessage mapping;
            mapping.number(1, i + 1);
            mapping.number(2, start);
            mapping.number(3, start + kObjectBytes);
            mapping.number(5, text(object.path));
            mapping.number(6, text(object.build_id));
            for (const unsigned known : {7U, 8U, 9U})  // functions, file names, line numbers
                mapping.boolean(known, true);
            field(kMapping, mapping);
        }
    }

    std::uint64_t function(Strings::Id name, std::string_view file) {
        const auto [entry, is_new] = functions_.try_emplace(
            {name, std::string(file)}, static_cast<std::uint64_t>(functions_.size() + 1));
        if (is_new)
            write_function(entry->second, profile_.text(name), file, profile_.linkage_name(name));
        return entry->second;
    }

    void write_function(std::uint64_t id, std::string_view name, std::string_view file,
                        std::string_view linkage_name) {
        ProtobufMessage function;
        function.number(1, id);
        function.number(2, text(name));
        // pprof takes a linkage name for a symbol and shortens it: it removes template arguments,
        // parameters and unnamed namespaces, by which alone functions may differ. Readable names
        // with < or ( are therefore not written as linkage names.
        const bool is_readable = name.find_first_of("<(") != std::string_view::npos;
        if (!linkage_name.empty())
            function.number(3, text(linkage_name));
        else if (!is_readable)
            function.number(3, text(name));
        function.number(4, text(file == kUnknown ? "" : file));
        field(kFunction, function);
    }

    // The location of a frame that is not a function of the program.
    std::uint64_t pseudo_location(std::string_view name) {
        const auto [entry, is_new] = pseudo_locations_.try_emplace(std::string(name), 0);
        if (is_new) {
            constexpr Strings::Id kNoName = std::numeric_limits<Strings::Id>::max();
            const std::uint64_t id = functions_.size() + 1;
            functions_[{kNoName, std::string(name)}] = id;
            write_function(id, name, "", "");
            entry->second = location({0, 0, {{id, 0}}});
        }
        return entry->second;
    }

    std::uint64_t location(const Frame& frame) {
        const auto [entry, is_new] =
            locations_.try_emplace(frame, static_cast<std::uint64_t>(locations_.size() + 1));
        if (!is_new) return entry->second;
        ProtobufMessage location;
        location.number(1, entry->second);
        location.number(2, frame.object_number);
        if (frame.object_number != 0)
            location.number(3, frame.address + (frame.object_number - 1) * kObjectBytes);
        for (const Frame::Line& each : frame.lines) {
            ProtobufMessage line;
            line.number(1, each.function);
            line.number(2, each.line);
            location.bytes(4, line.encoded());
        }
        field(kLocation, location);
        return entry->second;
    }

    // Writes the counts of events that are counted by context, or of the others.
    void write_sample(std::span<const std::uint64_t> locations, Counts counts, bool by_context) {
        std::vector<std::uint64_t> values;
        for (std::size_t i = 0; i < events_.size(); ++i)
            values.push_back(by_context_[i] == by_context ? counts[events_[i]] : 0);
        if (!any_count(values)) return;
        ProtobufMessage sample;
        sample.packed(1, locations);
        sample.packed(2, values);
        field(kSample, sample);
    }

    void write_lines(std::uint32_t place) {
        for_each_part(
            profile_, place,
            [&](const Profile::Instruction& at, Counts counts) {
                const std::uint64_t id =
                    location({std::uint64_t{at.object} + 1, at.address, source_lines(at)});
                write_sample({&id, 1}, counts, false);
            },
            [&](const Profile::Line& line, Counts rest) {
                const std::uint64_t id = location({0, 0, source_lines(line)});
                write_sample({&id, 1}, rest, false);
            });
    }

    // The source lines of a line or an instruction, including the calls through which it was
    // inlined.
    template <typename Row>
    std::vector<Frame::Line> source_lines(const Row& row) {
        const Profile::Place& place = profile_.places()[row.place];
        std::vector<Frame::Line> lines = {
            {function(place.function, profile_.text(place.file)), row.line}};
        for (std::uint32_t i = row.site; i != 0; i = profile_.sites()[i].parent) {
            const Profile::Site& site = profile_.sites()[i];
            lines.push_back({function(site.function, profile_.text(site.file)), site.line});
        }
        return lines;
    }

    std::uint64_t context_function(std::uint32_t context) {
        const Strings::Id name = profile_.contexts()[context].function;
        return function(name, file_of(profile_, name));
    }

    void write_context(std::uint32_t context) {
        profile_.counts().read(profile_.contexts()[context].row, counts_);
        if (!any_count(counts_)) return;
        const std::vector<std::uint32_t> path = stacks_.to(context);
        std::vector<std::uint64_t> locations;
        Frame frame{};  // the frame being built, with the call that leads to the frame before it
        std::uint64_t line = 0;  // of that call
        for (std::size_t i = path.size(); i-- > 0;) {
            if (path[i] == 0) {
                locations.push_back(pseudo_location(kLeftOut));
                frame = {};
                line = 0;
                continue;
            }
            const Profile::Context& entered = profile_.contexts()[path[i]];
            frame.lines.push_back({context_function(path[i]), line});
            line = profile_.call_line(entered);
            const bool is_cut = i == 0 || path[i - 1] == 0;
            if (entered.kind == events::StackKind::kInlined && !is_cut) continue;
            locations.push_back(location(frame));
            frame = {};
            if (events::has_place(entered.kind))
                frame = {std::uint64_t{entered.object} + 1, entered.address, {}};
        }
        write_sample(locations, counts_, true);
    }

    void write_outside() {
        for (const std::size_t event : events_) counts_[event] = outside(profile_, event);
        const std::uint64_t id = pseudo_location(kOutside);
        write_sample({&id, 1}, counts_, true);
    }

    const Profile& profile_;
    const Stacks stacks_;
    const std::vector<std::size_t>& events_;
    Sink& sink_;
    std::vector<bool> by_context_;       // of events_
    std::vector<std::uint64_t> counts_;  // scratch
    std::map<std::string, std::uint64_t> texts_;
    std::map<std::pair<Strings::Id, std::string>, std::uint64_t> functions_;
    std::map<Frame, std::uint64_t> locations_;
    std::map<std::string, std::uint64_t> pseudo_locations_;
};

}  // namespace

void write_pprof(const Selection& selection, Sink& sink) {
    PprofDocument(selection, sink).write();
}

}  // namespace assay::exporting
