#include "framework/events/callgrind_parser.h"

#include "framework/events/formula.h"
#include "framework/events/lexical.h"
#include "framework/support/error.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace assay::events {

namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
    text = skip_blanks(text);
    return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::string_view take_bare_word(std::string_view& rest) {
    rest = skip_blanks(rest);
    const std::string_view word = rest.substr(0, rest.find_first_of(kBlanks));
    rest.remove_prefix(word.size());
    return word;
}

bool begins_costs(char c) {
    return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '*';
}

// Turns `Ir + 10 L1m` into a formula of events files: Ir + 10 * L1m.
std::string with_products(std::string_view text) {
    std::string out;
    bool after_number = false;
    while (!(text = skip_blanks(text)).empty()) {
        const std::string_view word = take_bare_word(text);
        const bool is_name =
            (word[0] >= 'A' && word[0] <= 'Z') || (word[0] >= 'a' && word[0] <= 'z');
        if (!out.empty()) out += after_number && is_name ? " * " : " ";
        out += word;
        after_number = std::all_of(word.begin(), word.end(),
                                   [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
    }
    return out;
}

// Functions with the same name and an unknown file are told apart by their objects.
std::string file_or_object(const std::string& file, const std::string& object) {
    const bool is_known = file != kUnknown || object.empty() || object == kUnknown;
    return is_known ? file : "[" + object + "]";
}

}  // namespace

CallgrindParser::CallgrindParser(std::string path, Handler& handler, Accept accept)
    : path_(std::move(path)), handler_(handler), accept_(accept) {}

void CallgrindParser::feed(std::string_view block) {
    if (lines_.feed(block, [this](std::string_view line) { parse_line(line); })) return;
    ++line_number_;
    fail("the line is longer than " + std::to_string(kMaxLineBytes) + " bytes", lines_.begin());
}

void CallgrindParser::finish() {
    if (const std::string line = lines_.take_rest(); !line.empty()) parse_line(line);
    if (!has_events_) fail("the file ends without an events: line", "");
    if (next_costs_ != Costs::kSelf) fail("the file ends without the costs of a call or jump", "");
    start_body();
    if (is_callgrinds_ && !behind_totals_)
        fail("the file ends without its totals: it was cut short", "");
    if (!stated_totals_) return;
    for (std::size_t i = 0; i < totals_.size(); ++i)
        if (totals_[i] != (*stated_totals_)[i])
            fail("the total of " + excerpt(header_.events[i].name) +
                     " differs from the sum of its costs, " + std::to_string(totals_[i]) +
                     ": the file is damaged or cut short",
                 std::to_string((*stated_totals_)[i]));
}

void CallgrindParser::parse_line(std::string_view line) {
    ++line_number_;
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#') return;
    if (begins_costs(text.front())) return parse_costs(text);
    if (next_costs_ != Costs::kSelf) fail("expected the line of a call or jump", text);
    const std::size_t end = text.find_first_of(":= ");
    const std::string_view key = text.substr(0, end);
    if (end == std::string_view::npos || text[end] == ' ')
        fail("expected 'key: value', a position or costs", text);
    if (text[end] == ':')
        parse_header_line(key, trimmed(text.substr(end + 1)));
    else
        parse_specification(key, skip_blanks(text.substr(end + 1)));
}

// --- The header. Its lines may come in any order; a file of several parts repeats them.

void CallgrindParser::parse_header_line(std::string_view key, std::string_view text) {
    if (key == "version") {
        if (parse_number(text) > 1)
            fail("this release reads only version 1 of Callgrind's format", text);
    } else if (key == "cmd") {
        if (header_.command.empty()) header_.command = text;
    } else if (key == "creator") {
        is_callgrinds_ = text.starts_with("callgrind");
    } else if (key == "pid") {
        header_.pid = static_cast<std::uint32_t>(parse_number(text));
    } else if (key == "desc") {
        const std::size_t colon = std::min(text.find(':'), text.size());
        std::pair description(std::string(text.substr(0, colon)),
                              std::string(trimmed(text.substr(std::min(colon + 1, text.size())))));
        if (!in_body_ && !description.second.empty())
            header_.descriptions.push_back(std::move(description));
    } else if (key == "event") {
        parse_event(text);
    } else if (key == "events") {
        parse_events(text);
    } else if (key == "positions") {
        parse_positions(text);
    } else if (key == "totals") {
        parse_totals(text);
    }
    // The other keys say nothing about costs: part, thread, summary (which may differ from the sum,
    // as callgrind_annotate notes), and keys of other programs.
}

// NAME [= FORMULA] [: LONG NAME]
void CallgrindParser::parse_event(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view long_name =
        colon == std::string_view::npos ? std::string_view() : trimmed(text.substr(colon + 1));
    std::string_view rest = text.substr(0, colon);
    const std::size_t equals = rest.find('=');
    const std::string name(trimmed(rest.substr(0, equals)));
    if (equals != std::string_view::npos)
        header_.derived.push_back({long_name.empty() ? name : std::string(long_name),
                                   with_products(rest.substr(equals + 1)), ""});
    else if (!has_events_)
        header_.events.push_back({name, std::string(long_name), {}, {}});
    if (header_.events.size() > kMaxEvents || header_.derived.size() > kMaxEvents)
        fail("more than " + std::to_string(kMaxEvents) + " events", name);
}

void CallgrindParser::parse_events(std::string_view text) {
    std::vector<Event> events;
    for (text = skip_blanks(text); !text.empty(); text = skip_blanks(text)) {
        Event event{std::string(take_bare_word(text)), {}, {}, {}};
        if (events.size() == kMaxEvents)
            fail("more than " + std::to_string(kMaxEvents) + " events", event.name);
        for (const Event& other : events)
            if (other.name == event.name) fail("the event occurs twice", event.name);
        for (const Event& described : header_.events)
            if (described.name == event.name) event.description = described.description;
        events.push_back(std::move(event));
    }
    if (events.empty()) fail("the events: line names no event", "");
    const auto same = [](const Event& a, const Event& b) { return a.name == b.name; };
    if (has_events_ && !std::equal(events.begin(), events.end(), header_.events.begin(),
                                   header_.events.end(), same))
        fail("the events of this part differ from those of the first", events.front().name);
    if (has_events_) return;
    header_.events = std::move(events);
    has_events_ = true;
    counts_.resize(header_.events.size());
    totals_.resize(header_.events.size());
}

void CallgrindParser::parse_positions(std::string_view text) {
    has_instructions_ = has_lines_ = false;
    while (!(text = skip_blanks(text)).empty()) {
        const std::string_view word = take_bare_word(text);
        if (word == "instr" && !has_lines_)
            has_instructions_ = true;
        else if (word == "line")
            has_lines_ = true;
        else
            fail("expected 'instr', 'line' or 'instr line'", word);
    }
    if (!has_lines_ && !has_instructions_) fail("the positions: line names no position", "");
}

// Each part has its own totals.
void CallgrindParser::parse_totals(std::string_view text) {
    start_body();
    behind_totals_ = true;
    parse_counts(text);
    if (!stated_totals_) stated_totals_.emplace(totals_.size());
    for (std::size_t i = 0; i < counts_.size(); ++i) add_cost((*stated_totals_)[i], i);
}

// --- Places

void CallgrindParser::parse_specification(std::string_view key, std::string_view text) {
    start_body();
    if (key == "fn") {
        function_ = parse_name(kFunction, text);
        function_file_ = file_;
        has_function_ = location_changed_ = true;
    } else if (key == "fl" || key == "fi" || key == "fe") {
        file_ = parse_name(kFile, text);
        location_changed_ = true;
    } else if (key == "ob") {
        object_ = parse_name(kObject, text);
        location_changed_ = true;
    } else if (key == "cfn") {
        callee_ = parse_name(kFunction, text);
    } else if (key == "cfi" || key == "cfl") {
        callee_file_ = parse_name(kFile, text);
    } else if (key == "cob") {
        callee_object_ = parse_name(kObject, text);
    } else if (key == "jfi" || key == "jfl") {
        parse_name(kFile, text);
    } else if (key == "jfn") {
        parse_name(kFunction, text);
    } else if (key == "calls") {
        parse_calls(text);
    } else if (key == "jump" || key == "jcnd") {
        parse_jump(text);
    } else {
        fail("unknown specification", key);
    }
}

// NAME, (NUMBER) NAME, which also defines the number, or (NUMBER).
std::string_view CallgrindParser::parse_name(NameKind kind, std::string_view text) {
    if (!text.starts_with('(')) return text;
    const std::size_t close = text.find(')');
    std::uint64_t number = 0;
    const char* const end = text.data() + std::min(close, text.size());
    const auto [rest, error] = std::from_chars(text.data() + 1, end, number);
    // A function name may begin with a parenthesis: `(below main)`.
    if (close == std::string_view::npos || error != std::errc() || rest != end) return text;
    const std::string_view name = skip_blanks(text.substr(close + 1));
    auto& names = names_[kind].by_number;
    if (!name.empty()) {
        name_bytes_ += name.size() + sizeof(std::string);
        if (name_bytes_ > kMostNameBytes)
            fail("the names are longer than " + std::to_string(kMostNameBytes) + " bytes together",
                 name);
        return names[number] = name;
    }
    const auto found = names.find(number);
    if (found == names.end()) fail("this number stands for no name yet", text);
    return found->second;
}

void CallgrindParser::parse_calls(std::string_view text) {
    if (callee_.empty()) fail("calls= without a cfn= before it", text);
    calls_ = parse_number(take_bare_word(text));
    parse_position_list(text);
    next_costs_ = Costs::kCall;
}

// jump=COUNT TARGET or jcnd=TAKEN/EXECUTED TARGET
void CallgrindParser::parse_jump(std::string_view text) {
    const std::string_view count = take_bare_word(text);
    const std::size_t slash = count.find('/');
    parse_number(count.substr(0, slash));
    if (slash != std::string_view::npos) parse_number(count.substr(slash + 1));
    parse_position_list(text);
    next_costs_ = Costs::kJump;
}

// --- Costs

void CallgrindParser::parse_costs(std::string_view line) {
    start_body();
    behind_totals_ = false;
    if (!has_function_) fail("costs without fn= before them", line);
    last_ = parse_position_list(line);
    parse_counts(line);
    switch (std::exchange(next_costs_, Costs::kSelf)) {
        case Costs::kSelf:
            return pass_self();
        case Costs::kCall:
            return pass_call();
        case Costs::kJump:
            return;
    }
}

CallgrindParser::Positions CallgrindParser::parse_position_list(std::string_view& rest) {
    Positions positions;
    if (has_instructions_)
        positions.instruction = parse_position(take_bare_word(rest), last_.instruction);
    if (has_lines_) positions.line = parse_position(take_bare_word(rest), last_.line);
    return positions;
}

std::uint64_t CallgrindParser::parse_position(std::string_view word, std::uint64_t last) {
    if (word == "*") return last;
    if (word.starts_with('+')) return last + parse_number(word.substr(1));
    if (word.starts_with('-')) return last - parse_number(word.substr(1));
    return parse_number(word);
}

void CallgrindParser::parse_counts(std::string_view text) {
    std::size_t count = 0;
    for (text = skip_blanks(text); !text.empty(); text = skip_blanks(text)) {
        if (count == counts_.size()) fail("more costs than events", text);
        counts_[count++] = parse_cost(take_bare_word(text));
    }
    std::fill(counts_.begin() + static_cast<std::ptrdiff_t>(count), counts_.end(), 0);
}

// A negative cost is returned in two's complement.
std::uint64_t CallgrindParser::parse_cost(std::string_view word) {
    const bool is_negative = word.starts_with('-');
    if (is_negative) turn_into_difference(word);
    const std::uint64_t size = parse_number(word.substr(is_negative ? 1 : 0));
    if (header_.difference && size >> 63 != 0)
        fail("negative cost beside one that exceeds 63 bits", word);
    return is_negative ? 0 - size : size;
}

void CallgrindParser::turn_into_difference(std::string_view cost) {
    if (header_.difference) return;
    if (accept_ == Accept::kProfiles)
        fail("negative cost: only annotate, by function and source, reads differences", cost);
    const auto is_too_large = [](std::uint64_t value) { return value >> 63 != 0; };
    for (const auto& counts : {counts_, totals_, stated_totals_.value_or(totals_)})
        if (std::any_of(counts.begin(), counts.end(), is_too_large))
            fail("negative cost beside one that exceeds 63 bits", cost);
    header_.difference = true;
    handler_.turns_into_difference();
}

// Adds the cost that this line has for `event`.
void CallgrindParser::add_cost(std::uint64_t& total, std::size_t event) const {
    bool overflow = false;
    if (header_.difference) {
        std::int64_t sum = 0;
        overflow = __builtin_add_overflow(static_cast<std::int64_t>(total),
                                          static_cast<std::int64_t>(counts_[event]), &sum);
        total = static_cast<std::uint64_t>(sum);
    } else {
        overflow = __builtin_add_overflow(total, counts_[event], &total);
    }
    if (overflow)
        fail("the total of " + excerpt(header_.events[event].name) + " exceeds 64 bits",
             std::to_string(counts_[event]));
}

// Decimal, or hexadecimal after 0x.
std::uint64_t CallgrindParser::parse_number(std::string_view text) {
    const bool hexadecimal = text.starts_with("0x");
    const std::string_view digits = text.substr(hexadecimal ? 2 : 0);
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, value, hexadecimal ? 16 : 10);
    if (error == std::errc::result_out_of_range) fail("the number exceeds 64 bits", text);
    if (error != std::errc() || rest != end) fail("malformed number", text);
    return value;
}

void CallgrindParser::start_body() {
    if (std::exchange(in_body_, true)) return;
    if (!has_events_) fail("expected the events: line first", "");
    // Remove formulas that use events this file does not have, such as events of other options.
    std::erase_if(header_.derived, [this](const Derived& derived) {
        try {
            (void)Formula(derived.formula, header_.events);
            return false;
        } catch (const Error&) {
            return true;
        }
    });
    file_ = function_file_ = kUnknown;
    handler_.start(header_);
}

void CallgrindParser::pass_location() {
    if (!std::exchange(location_changed_, false)) return;
    const std::string file = file_or_object(file_, object_),
                      function_file = file_or_object(function_file_, object_);
    handler_.location({file, function_file, function_});
}

void CallgrindParser::pass_self() {
    for (std::size_t i = 0; i < totals_.size(); ++i) add_cost(totals_[i], i);
    const std::uint32_t line = line_number(last_.line);
    const std::uint32_t object = has_instructions_ ? object_index() : 0;
    pass_location();
    handler_.line(line, counts_);
    if (has_instructions_) handler_.instruction({object, last_.instruction, line}, counts_);
}

void CallgrindParser::pass_call() {
    pass_location();
    // Without a file or object of its own, the called function belongs to the caller's.
    const std::string callee_file =
        file_or_object(callee_file_.empty() ? file_ : callee_file_,
                       callee_object_.empty() ? object_ : callee_object_);
    handler_.call({line_number(last_.line), callee_file, callee_, calls_}, counts_);
    callee_object_.clear();
    callee_file_.clear();
    callee_.clear();
}

// A file without line numbers gets line 0, the unknown line, everywhere.
std::uint32_t CallgrindParser::line_number(std::uint64_t line) {
    if (line > std::numeric_limits<std::uint32_t>::max())
        fail("line number beyond 32 bits", std::to_string(line));
    return static_cast<std::uint32_t>(line);
}

std::uint32_t CallgrindParser::object_index() {
    const auto [entry, is_new] =
        object_indices_.try_emplace(object_, static_cast<std::uint32_t>(header_.objects.size()));
    if (is_new) {
        header_.objects.push_back({object_, ""});
        handler_.object(header_.objects.back());
    }
    return entry->second;
}

void CallgrindParser::fail(std::string_view reason, std::string_view value) const {
    throw Error(path_ + ":" + std::to_string(line_number_) + ": " + std::string(reason) +
                (value.empty() ? "" : " (" + excerpt(value) + ")"));
}

}  // namespace assay::events
