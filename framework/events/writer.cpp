#include "framework/events/writer.h"

#include "framework/events/file.h"
#include "framework/events/formula.h"
#include "framework/events/lexical.h"
#include "framework/support/error.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay::events {

namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;
// Lines with this many sites or points stay far below kMaxLineBytes.
constexpr std::uint32_t kMostSitesOfALine = 1024;
constexpr std::size_t kMostPointsOfALine = 64;

bool is_event_name(std::string_view name) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return !name.empty() && is_letter(name.front()) &&
           std::all_of(name.begin(), name.end(), [&](char c) {
               return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
           });
}

void check(const Header& header) {
    if (header.events.empty() || header.events.size() > kMaxEvents)
        throw Error("an events file has 1 to " + std::to_string(kMaxEvents) + " events, not " +
                    std::to_string(header.events.size()) + "; load other profilers");
    std::set<std::string_view> names;
    for (const Event& event : header.events) {
        // Files of other programs have no profilers, and may use any characters in names.
        if (!event.profiler.empty() && !is_event_name(event.name))
            throw Error("event name '" + excerpt(event.name) + "' of profiler '" +
                        excerpt(event.profiler) +
                        "': use a letter, then letters, digits, '_', '-' or '.'");
        if (!names.insert(event.name).second)
            throw Error("event name '" + event.name + "' occurs twice; load only one profiler " +
                        "that declares it");
    }
    for (const Derived& derived : header.derived) Formula(derived.formula, header.events);
    if (header.series.size() > kMostSeries)
        throw Error("an events file has at most " + std::to_string(kMostSeries) + " series, not " +
                    std::to_string(header.series.size()) + "; this is a defect of assay");
    for (const Series& series : header.series)
        if (const char* const reason = defect(series))
            throw Error("series " + excerpt(series.name) + ": " + reason +
                        "; this is a defect of assay");
}

// Generated code has longer texts, which would burden every reader.
constexpr std::size_t kMaxTextBytes = 64 * 1024;

// The text on one line of at most kMaxTextBytes, never cut within a UTF-8 character.
std::string free_text(std::string_view text) {
    if (text.size() > kMaxTextBytes) {
        std::size_t size = kMaxTextBytes;
        while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
        text = text.substr(0, size);
    }
    return one_line(text);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

// cg_diff joins file and function with ### and later splits them there.
std::string place_name(std::string_view name) {
    if (name.empty()) return std::string(kUnknown);
    return replaced(free_text(name), "###", "##\\#");
}

// A file name that begins with #! would start a line of our extensions.
std::string file_name_of(std::string_view file) {
    std::string name = place_name(file);
    return name.starts_with("#!") ? "./" + name : name;
}

void append_number(std::string& out, std::uint64_t number, int base = 10) {
    char digits[20];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, number, base).ptr);
}

void append_counts(std::string& out, std::span<const std::uint64_t> counts,
                   bool difference = false) {
    for (const std::uint64_t count : counts) {
        const bool negative = difference && count >> 63 != 0;
        out += negative ? " -" : " ";
        append_number(out, negative ? 0 - count : count);
    }
    out += '\n';
}

std::span<const std::uint64_t> without_last_zeros(std::span<const std::uint64_t> counts) {
    while (!counts.empty() && counts.back() == 0) counts = counts.first(counts.size() - 1);
    return counts;
}

void append(std::string& out, std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) out += part;
}

void append_attribute(std::string& out, std::string_view key, std::string_view value) {
    if (value.empty()) return;
    append(out, {" ", key, "=", word(value)});
}

// The lines that Cachegrind's files also have. cg_merge needs at least one desc: line. cg_annotate
// 3.19 takes each of the first lines that contains `desc:` anywhere for a description, so no
// command may contain it.
std::string standard_header(const Header& header) {
    std::string out;
    for (const auto& [name, text] : header.descriptions)
        append(out, {"desc: ", free_text(name), name.empty() ? "" : ": ", free_text(text), "\n"});
    if (header.descriptions.empty()) out += "desc: Profile: written by assay\n";
    const std::string command = replaced(free_text(header.command), "desc:", "desc\\:");
    append(out, {"cmd: ", command, "\nevents:"});
    for (const Event& event : header.events) append(out, {" ", event.name});
    return out += '\n';
}

void append_axis(std::string& out, std::string_view keyword, const Axis& axis) {
    append(out, {"fl=#! ", keyword, " ", word(axis.name)});
    append_attribute(out, "unit", axis.unit);
    out += '\n';
}

void append_points(std::string& out, const Series& series) {
    for (std::size_t point = 0; point < series.points(); ++point) {
        if (point % kMostPointsOfALine == 0) append(out, {point == 0 ? "" : "\n", "fl=#! points"});
        for (std::size_t i = 0; i < series.width(); ++i) {
            out += i == 0 ? ' ' : ':';
            append_number(out, series.numbers[point * series.width() + i]);
        }
    }
    if (series.points() != 0) out += '\n';
}

void append_series(std::string& out, const Series& series) {
    append(out, {"fl=#! series ", word(series.name)});
    append_attribute(out, "profiler", series.profiler);
    if (series.thread != 0) append(out, {" thread=", std::to_string(series.thread)});
    append_attribute(out, "phase", series.phase);
    append_attribute(out, "from", series.from);
    if (series.log_x) out += " scale=log";
    if (series.adds) out += " merge=add";
    if (series.each != 1) append(out, {" each=", std::to_string(series.each)});
    if (!series.description.empty()) append(out, {" ", events::quoted(series.description)});
    out += '\n';
    append_axis(out, "x", series.x);
    for (const Axis& column : series.columns) append_axis(out, "y", column);
    append_points(out, series);
}

std::string extended_header(const Header& header) {
    std::string out;
    append(out, {"fl=#! version ", std::to_string(kFormatVersion), "\n"});
    if (header.pid != 0) append(out, {"fl=#! pid ", std::to_string(header.pid), "\n"});
    for (const Event& event : header.events) {
        append(out, {"fl=#! event ", events::word(event.name)});
        append_attribute(out, "unit", event.unit);
        append_attribute(out, "profiler", event.profiler);
        if (!event.description.empty())
            append(out, {" ", events::quoted(free_text(event.description))});
        out += '\n';
    }
    for (const Derived& derived : header.derived) {
        append(out, {"fl=#! derived ", events::quoted(derived.name)});
        append_attribute(out, "unit", derived.unit);
        append(out, {" = ", free_text(derived.formula), "\n"});
    }
    for (std::size_t i = 0; i < header.objects.size(); ++i) {
        append(out, {"fl=#! object ", std::to_string(i), " ", word(header.objects[i].path)});
        append_attribute(out, "build-id", header.objects[i].build_id);
        if (header.objects[i].load) {
            out += " load=0x";
            append_number(out, *header.objects[i].load, 16);
        }
        out += '\n';
    }
    if (!header.incomplete.empty())
        append(out, {"fl=#! incomplete ", free_text(header.incomplete), "\n"});
    if (header.difference) out += "fl=#! difference\n";
    for (const Series& series : header.series) append_series(out, series);
    return out;
}

// The sites of the rows of one location, as runs.
class SiteList {
  public:
    void add(std::uint32_t site) {
        if (runs_.empty() || runs_.back().first != site) runs_.emplace_back(site, 0);
        ++runs_.back().second;
    }
    // Appends them as lines with that keyword, or nothing if no row is inlined code. Empties the
    // list.
    void append_to(std::string& out, std::string_view keyword) {
        if (!runs_.empty() && runs_.back().first == 0) runs_.pop_back();
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            if (i % kMostSitesOfALine == 0) append(out, {i == 0 ? "" : "\n", "fl=#! ", keyword});
            out += ' ';
            append_number(out, runs_[i].first);
            if (runs_[i].second == 1) continue;
            out += '*';
            append_number(out, runs_[i].second);
        }
        if (!runs_.empty()) out += '\n';
        runs_.clear();
    }

  private:
    std::vector<std::pair<std::uint32_t, std::uint64_t>> runs_;  // site and number of rows
};

}  // namespace

struct Writer::Impl {
    Impl(const std::string& path, const Header& header)
        : file(path),
          event_count(header.events.size()),
          object_count(header.objects.size()),
          difference(header.difference),
          totals(header.events.size()) {
        text = standard_header(header) + extended_header(header);
    }

    void check_object(std::uint32_t object) const {
        if (object >= object_count)
            throw Error("instruction of object " + std::to_string(object) + ", which the header " +
                        "of the events file does not list; this is a defect of assay");
    }

    void append_instruction(std::string& out, std::uint32_t object, std::uint64_t address) const {
        append_number(out, object);
        out += ":0x";
        append_number(out, address, 16);
        out += ' ';
        append_number(out, last_line);
    }

    void add_to_totals(std::span<const std::uint64_t> counts) {
        for (std::size_t i = 0; i < event_count; ++i) {
            if (difference)
                totals[i] += counts[i];  // a difference of two totals of 63 bits at most
            else if (__builtin_add_overflow(totals[i], counts[i], &totals[i]))
                throw Error("the total of an event exceeds 64 bits; profile a shorter run");
        }
    }

    void flush_if_full() {
        if (text.size() < kBlockBytes) return;
        file.write(text);
        text.clear();
    }

    // Cachegrind's tools do not see the file of our own lines, so fl= and fn= must follow them.
    // Instructions are therefore kept until the lines of their function are complete. Returns
    // whether there were any.
    bool end_location() {
        end_sites();
        const std::size_t size = text.size();
        line_sites.append_to(text, "sites");
        text += instructions;
        instructions.clear();
        instruction_sites.append_to(text, "at-sites");
        if (const auto known = binaries.extract(function_name))
            append(text, {"fl=#! binary ", std::to_string(known.mapped()), "\n"});
        if (const auto named = linkage_names.extract(function_name))
            append(text, {"fl=#! linkage ", word(named.mapped()), "\n"});
        const bool wrote = text.size() != size;
        file_name.clear();
        function_name.clear();
        return wrote;
    }

    void end_sites() {
        if (std::exchange(in_sites, false)) text += '\n';
        flush_if_full();
    }

    OutputFile file;
    std::size_t event_count, object_count;
    bool difference;
    std::vector<std::uint64_t> totals;
    // Of functions still to come.
    std::unordered_map<std::string, std::string> linkage_names;
    std::unordered_map<std::string, std::uint32_t> binaries;
    std::string text;          // not written yet
    std::string instructions;  // of the current location
    SiteList line_sites, instruction_sites;
    bool in_sites = false;                 // the last line of the text lists sites
    std::string site_file, site_function;  // of that line
    std::string file_name, function_name;
    std::string given_file, given_function;  // as the caller gave them
    std::uint32_t last_line = 0;
};

Writer::Writer(const std::string& path, const Header& header) {
    check(header);
    impl_ = std::make_unique<Impl>(path, header);
}

Writer::~Writer() = default;

void Writer::location(std::string_view file, std::string_view function) {
    // The common case: nothing changed.
    if (!impl_->file_name.empty() && file == impl_->given_file && function == impl_->given_function)
        return;
    impl_->given_file = file;
    impl_->given_function = function;
    std::string file_name = file_name_of(file);
    std::string function_name = place_name(function);
    const bool same_file = file_name == impl_->file_name;
    if (same_file && function_name == impl_->function_name) return;
    const bool needs_file = impl_->end_location() || !same_file;
    if (needs_file) append(impl_->text, {"fl=", file_name, "\n"});
    impl_->text += "fn=" + function_name + "\n";
    impl_->file_name = std::move(file_name);
    impl_->function_name = std::move(function_name);
}

// The sites of one function share a line.
void Writer::site(const Site& site) {
    std::string& out = impl_->text;
    const bool goes_on = impl_->in_sites && impl_->site_file == site.file &&
                         impl_->site_function == site.function &&
                         site.number % kMostSitesOfALine != 0;
    if (!goes_on) {
        impl_->end_sites();
        impl_->site_file = site.file;
        impl_->site_function = site.function;
        append(out, {"fl=#! site ", std::to_string(site.number), " ", word(file_name_of(site.file)),
                     " ", word(place_name(site.function))});
        impl_->in_sites = true;
    }
    out += ' ';
    append_number(out, site.line);
    if (site.parent == 0) return;
    out += '@';
    append_number(out, site.parent);
}

void Writer::line(std::uint32_t line, std::span<const std::uint64_t> counts, std::uint32_t site) {
    Impl& impl = *impl_;
    if (counts.size() != impl.event_count)
        throw Error("a line of " + std::to_string(counts.size()) + " counts for " +
                    std::to_string(impl.event_count) + " events; this is a defect of assay");
    if (impl.file_name.empty()) location(kUnknown, kUnknown);
    append_number(impl.text, line);
    append_counts(impl.text, counts, impl.difference);
    impl.add_to_totals(counts);
    impl.line_sites.add(site);
    impl.last_line = line;
    impl.flush_if_full();
}

void Writer::instruction(std::uint32_t object, std::uint64_t address,
                         std::span<const std::uint64_t> counts, std::uint32_t site) {
    impl_->check_object(object);
    impl_->instruction_sites.add(site);
    std::string& out = impl_->instructions;
    out += "fl=#! at ";
    impl_->append_instruction(out, object, address);
    append_counts(out, without_last_zeros(counts));
}

void Writer::values(std::uint32_t object, std::uint64_t address, const Hotlist& list) {
    impl_->check_object(object);
    Hotlist most_frequent = list;
    merge(most_frequent, {}, kMaxHotValues);
    if (const char* const reason = defect(most_frequent))
        throw Error("values of " + list.name + ": " + reason + "; this is a defect of assay");
    std::string& out = impl_->instructions;
    out += "fl=#! value ";
    impl_->append_instruction(out, object, address);
    append(out, {" ", word(list.name), " ", std::to_string(most_frequent.total)});
    if (most_frequent.error != 0) append(out, {" error=", std::to_string(most_frequent.error)});
    for (const HotValue& each : most_frequent.values) {
        out += " 0x";
        append_number(out, each.value, 16);
        out += ':';
        append_number(out, each.count);
    }
    out += '\n';
}

void Writer::group(const Group& group) {
    impl_->end_sites();
    std::string& out = impl_->text;
    append(out, {"fl=#! group ", std::to_string(group.number), " ", word(free_text(group.kind)),
                 " in=", std::to_string(group.parent), " ", word(free_text(group.name))});
    for (const auto& [key, value] : group.attributes)
        append(out, {" ", key, "=", word(free_text(value))});
    out += '\n';
}

void Writer::linkage(std::string_view function, std::string_view name) {
    if (name.size() > kMaxTextBytes) return;
    impl_->linkage_names.insert_or_assign(place_name(function), std::string(name));
}

void Writer::binary(std::string_view function, std::uint32_t object) {
    impl_->check_object(object);
    impl_->binaries.insert_or_assign(place_name(function), object);
}

void Writer::counts_of(std::uint32_t group, std::span<const std::uint64_t> counts) {
    std::string& out = impl_->instructions;
    append(out, {"fl=#! of ", std::to_string(group), " ", std::to_string(impl_->last_line)});
    append_counts(out, without_last_zeros(counts), impl_->difference);
}

void Writer::stack(const Stack& stack, std::span<const std::uint64_t> counts) {
    if (has_place(stack.kind)) impl_->check_object(stack.object);
    impl_->end_location();
    std::string& out = impl_->text;
    append(out,
           {"fl=#! stack ", std::to_string(stack.number), " in=", std::to_string(stack.parent)});
    if (has_place(stack.kind)) {
        append(out, {stack.kind == StackKind::kHandler ? " interrupted=" : " call=",
                     std::to_string(stack.object), ":0x"});
        append_number(out, stack.address, 16);
        if (stack.line != 0) append(out, {":", std::to_string(stack.line)});
    } else {
        append(out, {stack.kind == StackKind::kInlined ? " inlined=" : " jumped=",
                     std::to_string(stack.line)});
    }
    append(out, {" ", word(free_text(stack.function))});
    append_counts(out, without_last_zeros(counts), impl_->difference);
    impl_->flush_if_full();
}

void Writer::calls(std::span<const std::uint64_t> numbers) {
    constexpr std::size_t kOfALine = 64;
    impl_->end_location();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const bool begins = i % kOfALine == 0;
        if (begins)
            append(impl_->text, {i == 0 ? "" : "\n", "fl=#! calls ", std::to_string(i + 1)});
        impl_->text += ' ';
        append_number(impl_->text, numbers[i]);
    }
    if (!numbers.empty()) impl_->text += '\n';
    impl_->flush_if_full();
}

void Writer::recursion(const Recursion& recursion, std::uint64_t number) {
    impl_->check_object(recursion.object);
    impl_->end_location();
    std::string& out = impl_->text;
    append(out, {"fl=#! recursion ", std::to_string(recursion.context),
                 " in=", std::to_string(recursion.caller),
                 " call=", std::to_string(recursion.object), ":0x"});
    append_number(out, recursion.address, 16);
    if (recursion.line != 0) append(out, {":", std::to_string(recursion.line)});
    append(out, {" ", std::to_string(number), "\n"});
    impl_->flush_if_full();
}

void Writer::finish() {
    impl_->end_location();
    impl_->text += "summary:";
    append_counts(impl_->text, impl_->totals, impl_->difference);
    impl_->file.write(impl_->text);
    impl_->text.clear();
    impl_->file.finish();
}

}  // namespace assay::events
