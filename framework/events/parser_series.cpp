// Parses the `fl=#! ` lines about series: a line that names a series, one for each axis, then its
// points.

#include "framework/events/lexical.h"
#include "framework/events/parser.h"

namespace assay::events {

void Parser::parse_series(std::string_view text) {
    if (state_ != State::kExtensions) fail("a series after the first counts", text);
    end_series();
    if (header_.series.size() == kMostSeries)
        fail("more than " + std::to_string(kMostSeries) + " series", text);
    Series series;
    series.name = take_word(text).value_or("");
    for (text = skip_blanks(text); !text.empty(); text = skip_blanks(text)) {
        std::string_view rest = text;
        if (text.front() == '"') {
            const std::optional<std::string> description = take_word(rest);
            if (!description || !skip_blanks(rest).empty())
                fail("malformed description of series " + excerpt(series.name), text);
            series.description = *description;
            break;
        }
        const std::string key(text.substr(0, text.find_first_of("= \t\r")));
        const std::optional<std::string> value = take_attribute(rest, key);
        if (key.empty() || !value) fail("expected KEY=VALUE or a description", text);
        text = rest;
        parse_series_attribute(series, key, *value);
    }
    // Check only the first line here. end_series() checks the rest when all lines have been read.
    Series whole = series;
    whole.x.name = "x";
    whole.columns = {whole.x};
    if (const char* const reason = defect(whole)) fail(reason, series.name);
    header_.series.push_back(std::move(series));
}

// An unknown key belongs to a later release and changes nothing that this release knows.
void Parser::parse_series_attribute(Series& series, const std::string& key,
                                    const std::string& value) {
    if (key == "profiler") {
        series.profiler = value;
    } else if (key == "thread") {
        series.thread = static_cast<std::uint32_t>(parse_number(value, kMax32));
    } else if (key == "phase") {
        series.phase = value;
    } else if (key == "from") {
        series.from = value;
    } else if (key == "scale") {
        series.log_x = value == "log";
    } else if (key == "merge") {
        series.adds = value == "add";
    } else if (key == "each") {
        series.each = parse_number(value, kMax64);
    }
}

Series& Parser::open_series(std::string_view text) {
    if (state_ != State::kExtensions || header_.series.empty())
        fail("expected the line of a series first", text);
    return header_.series.back();
}

void Parser::parse_axis(std::string_view text, bool is_x) {
    Series& series = open_series(text);
    const std::string_view whole = text;
    if (is_x != series.x.name.empty())
        fail("expected one x axis of the series, then its y axes", whole);
    if (!series.numbers.empty()) fail("an axis of a series after its points", whole);
    if (series.columns.size() == kMostSeriesColumns)
        fail("more than " + std::to_string(kMostSeriesColumns) + " columns of a series", whole);
    Axis axis;
    axis.name = take_word(text).value_or("");
    axis.unit = take_attribute(text, "unit").value_or("");
    if (axis.name.empty()) fail("expected the name of an axis", whole);
    if (axis.name.size() > kMostSeriesText || axis.unit.size() > kMostSeriesText)
        fail("the name of an axis has more than " + std::to_string(kMostSeriesText) + " bytes",
             whole);
    if (is_x)
        series.x = std::move(axis);
    else
        series.columns.push_back(std::move(axis));
}

// X:Y for each point, or X:Y:Y with a number for each column.
void Parser::parse_points(std::string_view text) {
    Series& series = open_series(text);
    if (series.columns.empty()) fail("points of a series without axes before them", text);
    for (std::string_view word = take_bare(text); !word.empty(); word = take_bare(text)) {
        if (series.points() == kMostSeriesPoints)
            fail("more than " + std::to_string(kMostSeriesPoints) + " points of a series", word);
        std::string_view rest = word;
        for (std::size_t i = 0; i < series.width(); ++i) {
            const std::size_t colon = rest.find(':');
            const bool is_last = i + 1 == series.width();
            if (is_last != (colon == std::string_view::npos))
                fail("expected x and " + std::to_string(series.columns.size()) +
                         " numbers of a point, with : between them",
                     word);
            const std::uint64_t number = parse_number(rest.substr(0, colon), kMax64);
            const std::size_t end = series.numbers.size();
            if (i == 0 && end != 0 && number <= series.numbers[end - series.width()])
                fail("the points of a series must be in ascending order of x", word);
            series.numbers.push_back(number);
            if (!is_last) rest.remove_prefix(colon + 1);
        }
    }
}

void Parser::end_series() {
    if (header_.series.empty()) return;
    const Series& series = header_.series.back();
    if (const char* const reason = defect(series)) fail(reason, series.name);
}

}  // namespace assay::events
