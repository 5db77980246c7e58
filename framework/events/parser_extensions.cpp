// Parses the `fl=#! ` lines of an events file, which extend Cachegrind's format.

#include "framework/events/formula.h"
#include "framework/events/lexical.h"
#include "framework/events/parser.h"
#include "framework/support/error.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace assay::events {

void Parser::parse_extension(std::string_view text) {
    const std::string keyword = take_word(text).value_or("");
    text = skip_blanks(text);
    if (version_ == 0) {
        if (keyword != "version" || state_ != State::kExtensions)
            fail("expected '#! version' first", keyword);
        parse_version(text);
    } else if (keyword == "at") {
        parse_instruction(text);
    } else if (keyword == "value") {
        parse_values(text);
    } else if (keyword == "site") {
        parse_site(text);
    } else if (keyword == "sites") {
        parse_sites(text, Rows::kLines);
    } else if (keyword == "at-sites") {
        parse_sites(text, Rows::kInstructions);
    } else if (keyword == "group") {
        parse_group(text);
    } else if (keyword == "binary") {
        parse_binary(text);
    } else if (keyword == "linkage") {
        parse_linkage(text);
    } else if (keyword == "of") {
        parse_counts_of(text);
    } else if (keyword == "stack") {
        parse_stack(text);
    } else if (keyword == "calls") {
        parse_calls(text);
    } else if (keyword == "recursion") {
        parse_recursion(text);
    } else if (keyword == "series") {
        parse_series(text);
    } else if (keyword == "x" || keyword == "y") {
        parse_axis(text, keyword == "x");
    } else if (keyword == "points") {
        parse_points(text);
    } else if (state_ != State::kExtensions) {
        // A later release may write unknown keywords among the counts.
        has_file_ = false;
    } else if (keyword == "pid") {
        header_.pid = static_cast<std::uint32_t>(parse_number(text, kMax32));
    } else if (keyword == "event") {
        parse_event(text);
    } else if (keyword == "derived") {
        parse_derived(text);
    } else if (keyword == "object") {
        parse_object(text);
    } else if (keyword == "incomplete") {
        header_.incomplete = text;
    } else if (keyword == "difference") {
        header_.difference = true;
    }
    // Other keywords belong to a later release, which raises the version for every change that
    // concerns this one.
}

void Parser::parse_version(std::string_view text) {
    const std::uint64_t version = parse_number(text, kMax32);
    if (version == 0) fail("versions begin with 1", text);
    if (version > kFormatVersion)
        fail("the file is of format version " + std::to_string(version) +
             ", but this assay reads only up to version " + std::to_string(kFormatVersion) +
             "; use a newer assay");
    version_ = static_cast<unsigned>(version);
}

void Parser::parse_event(std::string_view text) {
    const std::string name = take_word(text).value_or("");
    const auto event = std::find_if(header_.events.begin(), header_.events.end(),
                                    [&](const Event& e) { return e.name == name; });
    if (event == header_.events.end()) fail("the events: line does not name this event", name);
    event->unit = take_attribute(text, "unit").value_or("");
    event->profiler = take_attribute(text, "profiler").value_or("");
    text = skip_blanks(text);
    if (text.empty()) return;
    std::string_view rest = text;
    const std::optional<std::string> description = take_word(rest);
    if (!description) fail("malformed description of event " + excerpt(name), text);
    event->description = *description;
}

void Parser::parse_derived(std::string_view text) {
    const std::string_view whole = text;
    const std::optional<std::string> name = take_word(text);
    if (!name) fail("malformed name of a derived figure", whole);
    const std::string unit = take_attribute(text, "unit").value_or("");
    text = skip_blanks(text);
    if (!text.starts_with('=')) fail("expected '= formula'", text);
    text = skip_blanks(text.substr(1));
    try {
        Formula(text, header_.events);
    } catch (const Error& error) {
        fail(error.what());
    }
    header_.derived.push_back({*name, std::string(text), unit});
}

void Parser::parse_object(std::string_view text) {
    const std::string index = take_word(text).value_or("");
    if (parse_number(index, kMax32) != header_.objects.size())
        fail("objects must be numbered from 0 upwards", index);
    std::string_view rest = text;
    const std::optional<std::string> path = take_word(rest);
    if (!path) fail("malformed path of an object", text);
    events::Object object{*path, take_attribute(rest, "build-id").value_or("")};
    if (const std::optional<std::string> load = take_attribute(rest, "load")) {
        if (!load->starts_with("0x")) fail("expected an address, 0xADDRESS, of an object", *load);
        object.load = parse_number(std::string_view(*load).substr(2), kMax64, 16);
    }
    header_.objects.push_back(std::move(object));
}

std::pair<std::uint32_t, std::uint64_t> Parser::parse_place_in_object(std::string_view text) {
    const std::size_t colon = text.find(":0x");
    if (colon == std::string_view::npos) fail("expected OBJECT:0xADDRESS", text);
    const std::uint64_t object = parse_number(text.substr(0, colon), kMax32);
    if (object >= header_.objects.size()) fail("unknown object", text);
    return {static_cast<std::uint32_t>(object), parse_number(text.substr(colon + 3), kMax64, 16)};
}

void Parser::parse_instruction(std::string_view text) {
    const Handler::Instruction instruction = take_instruction(text);
    parse_counts(text);
    add_counts(instruction_totals_);
    announce_location();
    ++without_site_[static_cast<std::size_t>(Rows::kInstructions)];
    handler_.instruction(instruction, counts_);
}

void Parser::parse_values(std::string_view text) {
    const std::string_view whole = text;
    const Handler::Instruction instruction = take_instruction(text);
    const Hotlist list = parse_hotlist(text);
    if (const char* const reason = defect(list)) fail(reason, whole);
    announce_location();
    handler_.values(instruction, list);
}

Hotlist Parser::parse_hotlist(std::string_view text) {
    Hotlist list;
    list.name = take_word(text).value_or("");
    if (list.name.empty()) fail("expected the name of a list of values", text);
    list.total = parse_number(take_word(text).value_or(""), kMax64);
    if (const auto error = take_attribute(text, "error")) list.error = parse_number(*error, kMax64);
    for (std::string_view word = take_bare(text); !word.empty(); word = take_bare(text))
        list.values.push_back(parse_hot_value(word));
    return list;
}

HotValue Parser::parse_hot_value(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (!text.starts_with("0x") || colon == std::string_view::npos)
        fail("expected 0xVALUE:COUNT", text);
    return {parse_number(text.substr(2, colon - 2), kMax64, 16),
            parse_number(text.substr(colon + 1), kMax64)};
}

Handler::Instruction Parser::take_instruction(std::string_view& text) {
    start_body();
    if (!has_function_) fail("an instruction without fn= before it", text);
    has_file_ = false;
    const auto [object, address] = parse_place_in_object(take_word(text).value_or(""));
    const std::string source_line = take_word(text).value_or("");
    return {object, address, static_cast<std::uint32_t>(parse_number(source_line, kMax32))};
}

// One LINE or LINE@PARENT for each site. Readers rely on knowing all sites before the first counts.
void Parser::parse_site(std::string_view text) {
    start_body();
    if (has_function_) fail("a site after the first function", text);
    has_file_ = false;
    const std::string number = take_word(text).value_or("");
    if (parse_number(number, kMax32) != std::uint64_t{sites_} + 1)
        fail("sites must be numbered from 1 upwards", number);
    const std::optional<std::string> file = take_word(text), function = take_word(text);
    if (!file || !function) fail("expected a file and a function", number);
    for (std::string_view word = take_bare(text); !word.empty(); word = take_bare(text)) {
        const std::size_t at = word.find('@');
        const bool has_parent = at != std::string_view::npos;
        const std::uint64_t parent = has_parent ? parse_number(word.substr(at + 1), kMax32) : 0;
        if (parent > sites_) fail("the enclosing site must come first", word);
        const std::uint64_t line = parse_number(word.substr(0, at), kMax32);
        handler_.site({.number = ++sites_,
                       .parent = static_cast<std::uint32_t>(parent),
                       .line = static_cast<std::uint32_t>(line),
                       .file = *file,
                       .function = *function});
    }
}

// SITE or SITE*TIMES for each row or run of rows.
void Parser::parse_sites(std::string_view text, Rows rows) {
    start_body();
    has_file_ = false;
    std::uint64_t& left = without_site_[static_cast<std::size_t>(rows)];
    for (std::string_view word = take_bare(text); !word.empty(); word = take_bare(text)) {
        const std::size_t star = word.find('*');
        const std::uint64_t site = parse_number(word.substr(0, star), kMax32);
        if (site > sites_) fail("unknown site", word);
        const std::uint64_t times =
            star == std::string_view::npos ? 1 : parse_number(word.substr(star + 1), kMax64);
        if (times > left) fail("more sites than rows of counts", word);
        left -= times;
        const auto number = static_cast<std::uint32_t>(site);
        if (rows == Rows::kLines)
            handler_.line_sites(number, times);
        else
            handler_.instruction_sites(number, times);
    }
}

// The limits allow every real profile: counts are broken down in few ways, and members of types are
// not nested deeply. Readers may therefore follow groups by recursion.
void Parser::parse_group(std::string_view text) {
    constexpr std::size_t kMostKinds = 64;
    constexpr std::uint32_t kMostDepth = 256;
    start_body();
    if (has_function_) fail("a group after the first function", text);
    has_file_ = false;
    const std::string number = take_word(text).value_or("");
    if (parse_number(number, kMax32) != groups_.size() + 1)
        fail("groups must be numbered from 1 upwards", number);
    Group group{static_cast<std::uint32_t>(groups_.size() + 1), 0, {}, {}, {}};
    group.kind = take_word(text).value_or("");
    if (group.kind.empty()) fail("expected the kind of a group", number);
    const std::uint64_t parent = parse_number(take_attribute(text, "in").value_or(""), kMax32);
    if (parent >= group.number) fail("the enclosing group must come first", number);
    group.parent = static_cast<std::uint32_t>(parent);
    const std::uint32_t depth = parent == 0 ? 1 : groups_[parent - 1].depth + 1;
    if (depth > kMostDepth) fail("groups are nested too deeply", number);
    const std::optional<std::string> name = take_word(text);
    if (!name) fail("malformed name of a group", text);
    group.name = *name;
    for (text = skip_blanks(text); !text.empty(); text = skip_blanks(text)) {
        const std::string key(text.substr(0, text.find('=')));
        const std::optional<std::string> value = take_attribute(text, key);
        if (key.empty() || !value) fail("expected KEY=VALUE", text);
        group.attributes.emplace_back(key, *value);
    }
    const auto kind = std::find(kinds_.begin(), kinds_.end(), group.kind);
    groups_.push_back({static_cast<std::uint32_t>(kind - kinds_.begin()), depth});
    if (kind == kinds_.end()) {
        if (kinds_.size() == kMostKinds) fail("too many kinds of groups", group.kind);
        kinds_.push_back(group.kind);
        kind_totals_.emplace_back(counts_.size());
    }
    handler_.group(group);
}

void Parser::parse_binary(std::string_view text) {
    start_body();
    if (!has_function_) fail("a binary without fn= before it", text);
    has_file_ = false;
    const std::uint64_t object = parse_number(text, kMax32);
    if (object >= header_.objects.size()) fail("unknown object", text);
    handler_.binary(function_, static_cast<std::uint32_t>(object));
}

void Parser::parse_linkage(std::string_view text) {
    start_body();
    if (!has_function_) fail("a linkage name without fn= before it", text);
    has_file_ = false;
    const std::string_view whole = text;
    const std::optional<std::string> name = take_word(text);
    if (!name || name->empty()) fail("expected a linkage name", whole);
    handler_.linkage(function_, *name);
}

void Parser::parse_counts_of(std::string_view text) {
    start_body();
    if (!has_function_) fail("counts of a group without fn= before them", text);
    has_file_ = false;
    const std::string number = take_word(text).value_or("");
    const std::uint64_t group = parse_number(number, kMax32);
    if (group == 0 || group > groups_.size()) fail("unknown group", number);
    const std::uint64_t line = parse_number(take_word(text).value_or(""), kMax32);
    parse_counts(text);
    add_counts(kind_totals_[groups_[group - 1].kind]);
    announce_location();
    handler_.counts_of(static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(line),
                       counts_);
}

void Parser::parse_stack(std::string_view text) {
    start_body();
    has_file_ = false;
    without_site_ = {};  // contexts come last
    const std::string number = take_word(text).value_or("");
    if (parse_number(number, kMax32) != std::uint64_t{stacks_} + 1)
        fail("contexts must be numbered from 1 upwards", number);
    ++stacks_;
    const std::uint64_t parent = parse_number(take_attribute(text, "in").value_or(""), kMax32);
    if (parent >= stacks_) fail("the enclosing context must come first", number);
    Stack stack = {.number = stacks_,
                   .parent = static_cast<std::uint32_t>(parent),
                   .kind = StackKind::kCall,
                   .object = 0,
                   .address = 0,
                   .line = 0,
                   .function = {}};
    take_entry(text, stack);
    const std::optional<std::string> function = take_word(text);
    if (!function) fail("malformed name of a function", text);
    stack.function = *function;
    parse_counts(text);
    add_counts(stack_totals_);
    handler_.stack(stack, counts_);
}

void Parser::take_entry(std::string_view& text, Stack& stack) {
    std::optional<std::string> at_line = take_attribute(text, "inlined");
    if (at_line) {
        if (stack.parent == 0) fail("an inlined function outside of all calls", *at_line);
        stack.kind = StackKind::kInlined;
    } else if ((at_line = take_attribute(text, "jumped"))) {
        stack.kind = StackKind::kJumped;
    }
    if (at_line) {
        stack.line = static_cast<std::uint32_t>(parse_number(*at_line, kMax32));
        return;
    }
    std::optional<std::string> place = take_attribute(text, "call");
    if (!place) {
        stack.kind = StackKind::kHandler;
        place = take_attribute(text, "interrupted");
    }
    if (!place) fail("expected call=, interrupted=, inlined= or jumped=", skip_blanks(text));
    parse_place_of_call(*place, stack.object, stack.address, stack.line);
}

void Parser::parse_place_of_call(std::string_view text, std::uint32_t& object,
                                 std::uint64_t& address, std::uint32_t& line) {
    const std::size_t end = text.find(':', text.find(':') + 1);
    std::tie(object, address) = parse_place_in_object(text.substr(0, end));
    if (end != std::string_view::npos)
        line = static_cast<std::uint32_t>(parse_number(text.substr(end + 1), kMax32));
}

std::uint32_t Parser::known_context(std::string_view number) {
    const std::uint64_t context = parse_number(number, kMax32);
    if (context == 0 || context > stacks_) fail("unknown context", number);
    return static_cast<std::uint32_t>(context);
}

// The number of the first context, and a count for it and for each context after it.
void Parser::parse_calls(std::string_view text) {
    start_body();
    has_file_ = false;
    std::uint64_t context = parse_number(take_bare(text), kMax32);
    for (std::string_view word = take_bare(text); !word.empty(); word = take_bare(text)) {
        const std::uint64_t number = parse_number(word, kMax64);
        if (context == 0 || context > stacks_) fail("calls of an unknown context", word);
        handler_.calls(static_cast<std::uint32_t>(context++), number);
    }
}

void Parser::parse_recursion(std::string_view text) {
    start_body();
    has_file_ = false;
    Recursion recursion{};
    recursion.context = known_context(take_word(text).value_or(""));
    recursion.caller = known_context(take_attribute(text, "in").value_or(""));
    parse_place_of_call(take_attribute(text, "call").value_or(""), recursion.object,
                        recursion.address, recursion.line);
    handler_.recursion(recursion, parse_number(skip_blanks(text), kMax64));
}

}  // namespace assay::events
