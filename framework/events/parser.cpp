#include "framework/events/parser.h"

#include "framework/events/lexical.h"
#include "framework/support/error.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace assay::events {

namespace {

constexpr std::string_view kExtension = "fl=#! ";
constexpr std::uint64_t kMaxLineNumber = std::numeric_limits<std::uint32_t>::max();

bool take_prefix(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

}  // namespace

Parser::Parser(std::string path, Handler& handler, Accept accept)
    : path_(std::move(path)), handler_(handler), accept_(accept) {}

void Parser::feed(std::string_view block) {
    if (lines_.feed(block, [this](std::string_view line) { parse_line(line); })) return;
    ++line_number_;
    fail("the line is longer than " + std::to_string(kMaxLineBytes) + " bytes", lines_.begin());
}

void Parser::finish() {
    if (const std::string line = lines_.take_rest(); !line.empty()) parse_line(line);
    if (line_number_ == 0) throw Error(path_ + ": the file is empty");
    if (state_ != State::kEnd)
        fail(state_ == State::kDescriptions ? "the file ends before its events: line"
                                            : "the file ends without a summary: it was cut short");
}

void Parser::parse_line(std::string_view line) {
    ++line_number_;
    if (line.ends_with('\r')) line.remove_suffix(1);  // of a file from another system
    if (state_ == State::kDescriptions || state_ == State::kEvents)
        parse_header(line);
    else
        parse_body(line);
}

// --- desc:, cmd:, events:

void Parser::parse_header(std::string_view line) {
    const std::string_view whole = line;
    if (state_ == State::kEvents) {
        if (!take_prefix(line, "events:")) fail("expected the events: line", whole);
        parse_events(line);
    } else if (take_prefix(line, "desc:")) {
        parse_description(line);
    } else if (take_prefix(line, "cmd:")) {
        header_.command = skip_blanks(line);
        state_ = State::kEvents;
    } else {
        fail(line_number_ == 1 ? "not an events file: expected a desc: or cmd: line"
                               : "expected a desc: or cmd: line",
             whole);
    }
}

void Parser::parse_description(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view name =
        colon == std::string_view::npos ? std::string_view() : skip_blanks(text.substr(0, colon));
    if (colon != std::string_view::npos) text.remove_prefix(colon + 1);
    header_.descriptions.emplace_back(name, skip_blanks(text));
    // cg_diff writes this description.
    if (name == "Files compared") header_.difference = true;
}

void Parser::parse_events(std::string_view text) {
    for (text = skip_blanks(text); !text.empty(); text = skip_blanks(text)) {
        const std::string_view name = text.substr(0, text.find_first_of(" \t\r"));
        text.remove_prefix(name.size());
        if (header_.events.size() == kMaxEvents)
            fail("more than " + std::to_string(kMaxEvents) + " events", name);
        for (const Event& event : header_.events)
            if (event.name == name) fail("the event occurs twice", name);
        header_.events.push_back({std::string(name), {}, {}, {}});
    }
    if (header_.events.empty()) fail("the events: line names no event");
    counts_.resize(header_.events.size());
    totals_.resize(header_.events.size());
    instruction_totals_.resize(header_.events.size());
    stack_totals_.resize(header_.events.size());
    state_ = State::kExtensions;
}

// --- Places and counts

void Parser::parse_body(std::string_view line) {
    if (line.empty() || line.front() == '#' || skip_blanks(line).empty()) return;
    if (state_ == State::kEnd) fail("unexpected line after the summary", line);
    if (is_digit(line.front())) {
        parse_counts_line(line);
    } else if (take_prefix(line, kExtension)) {
        parse_extension(line);
    } else if (take_prefix(line, "summary:")) {
        parse_summary(line);
    } else {
        parse_place(line);
    }
}

void Parser::parse_place(std::string_view line) {
    const std::string_view whole = line;
    start_body();
    without_site_ = {};
    if (take_prefix(line, "fl=") || take_prefix(line, "fi=") || take_prefix(line, "fe=")) {
        file_ = line;
        has_file_ = true;
    } else if (take_prefix(line, "fn=")) {
        if (!has_file_) fail("fn= without a fl= before it", whole);
        function_ = line;
        function_file_ = file_;
        has_function_ = true;
    } else {
        fail("expected fl=, fn=, counts or summary:", whole);
    }
    location_changed_ = true;
}

void Parser::parse_counts_line(std::string_view line) {
    if (!has_file_ || !has_function_) fail("counts without fl= and fn= before them", line);
    const auto end = std::find_if_not(line.begin(), line.end(), is_digit);
    const std::string_view number(line.begin(), end);
    line.remove_prefix(number.size());
    if (!line.empty() && !is_blank(line.front())) fail("malformed line number", number);
    const auto source_line = static_cast<std::uint32_t>(parse_number(number, kMaxLineNumber));
    parse_counts(line);
    add_counts(totals_);
    announce_location();
    ++without_site_[static_cast<std::size_t>(Rows::kLines)];
    handler_.line(source_line, counts_);
}

void Parser::announce_location() {
    if (std::exchange(location_changed_, false))
        handler_.location({file_, function_file_, function_});
}

void Parser::parse_summary(std::string_view text) {
    start_body();
    const std::size_t count = parse_counts(text);
    if (count != counts_.size())
        fail("the summary has " + std::to_string(count) + " counts for " +
                 std::to_string(counts_.size()) + " events",
             skip_blanks(text));
    for (std::size_t i = 0; i < count; ++i) {
        const std::string& name = header_.events[i].name;
        if (counts_[i] != totals_[i])
            fail("the summary of " + excerpt(name) + " differs from the sum of its counts, " +
                     std::to_string(totals_[i]) + ": the file is damaged",
                 std::to_string(counts_[i]));
    }
    check_part(instruction_totals_, "instruction");
    check_part(stack_totals_, "calling context");
    for (std::size_t i = 0; i < kinds_.size(); ++i) check_part(kind_totals_[i], kinds_[i]);
    state_ = State::kEnd;
}

void Parser::check_part(const std::vector<std::uint64_t>& totals, std::string_view what) const {
    if (header_.difference) return;
    for (std::size_t i = 0; i < totals.size(); ++i)
        if (totals[i] > totals_[i])
            fail("the counts of " + excerpt(header_.events[i].name) + " by " + std::string(what) +
                     " exceed its summary",
                 std::to_string(totals[i]));
}

void Parser::check_difference() {
    if (header_.difference && accept_ == Accept::kProfiles)
        throw Error(path_ + ": the file is a difference of two profiles, not a profile");
}

// Cachegrind's own tools write negative counts without announcing them: cg_merge does, given a file
// of cg_diff.
void Parser::turn_into_difference(std::string_view count) {
    if (accept_ == Accept::kProfiles)
        fail("negative count: only a difference of two profiles may have one", count);
    const auto has_sign = [](std::uint64_t value) { return value >> 63 != 0; };
    for (const auto* counts : {&counts_, &totals_, &instruction_totals_, &stack_totals_})
        if (std::any_of(counts->begin(), counts->end(), has_sign))
            fail("negative count beside one that exceeds 63 bits", count);
    for (const auto& totals : kind_totals_)
        if (std::any_of(totals.begin(), totals.end(), has_sign))
            fail("negative count beside one that exceeds 63 bits", count);
    header_.difference = true;
    handler_.turns_into_difference();
}

void Parser::start_body() {
    if (state_ != State::kExtensions) return;
    end_series();
    state_ = State::kBody;
    check_difference();
    handler_.start(header_);
}

std::size_t Parser::parse_counts(std::string_view text) {
    std::size_t count = 0;
    const char* at = text.data();
    const char* const end = at + text.size();
    for (;;) {
        while (at != end && is_blank(*at)) ++at;
        if (at == end) break;
        const char* const word = at;
        if (count == counts_.size())
            fail("more counts than events", {word, static_cast<std::size_t>(end - word)});
        const std::uint64_t value = *at == '.' ? (++at, 0) : parse_count(at, end);
        if (at == word || (at != end && !is_blank(*at)))
            fail("malformed count", {word, static_cast<std::size_t>(end - word)});
        counts_[count++] = value;
    }
    std::fill(counts_.begin() + static_cast<std::ptrdiff_t>(count), counts_.end(), 0);
    return count;
}

// Leaves `at` unchanged if there is no number.
std::uint64_t Parser::parse_count(const char*& at, const char* end) {
    const auto parse = [&](auto value) {
        const auto [rest, error] = std::from_chars(at, end, value);
        if (error == std::errc::result_out_of_range)
            fail("the count exceeds 64 bits", {at, static_cast<std::size_t>(end - at)});
        at = rest;
        return static_cast<std::uint64_t>(value);
    };
    if (header_.difference) return parse(std::int64_t{0});
    if (*at != '-') return parse(std::uint64_t{0});
    turn_into_difference({at, static_cast<std::size_t>(end - at)});
    return parse(std::int64_t{0});
}

void Parser::add_counts(std::vector<std::uint64_t>& totals) {
    for (std::size_t i = 0; i < totals.size(); ++i) {
        bool overflow = false;
        if (header_.difference) {
            std::int64_t sum = 0;
            overflow = __builtin_add_overflow(static_cast<std::int64_t>(totals[i]),
                                              static_cast<std::int64_t>(counts_[i]), &sum);
            totals[i] = static_cast<std::uint64_t>(sum);
        } else {
            overflow = __builtin_add_overflow(totals[i], counts_[i], &totals[i]);
        }
        if (overflow)
            fail("the total of " + excerpt(header_.events[i].name) + " exceeds 64 bits",
                 std::to_string(counts_[i]));
    }
}

std::uint64_t Parser::parse_number(std::string_view text, std::uint64_t largest, int base) {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value, base);
    if (error == std::errc::invalid_argument || rest != end) fail("malformed number", text);
    if (error != std::errc() || value > largest)
        fail("number beyond " + std::to_string(largest), text);
    return value;
}

void Parser::fail(std::string_view reason) const {
    throw Error(path_ + ":" + std::to_string(line_number_) + ": " + std::string(reason));
}

void Parser::fail(std::string_view reason, std::string_view value) const {
    fail(std::string(reason) + " (" + excerpt(value) + ")");
}

}  // namespace assay::events
