#include "tools/output/formats.h"

#include "framework/support/text.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <cmath>
#include <nlohmann/json.hpp>

namespace assay {

std::string csv_field(std::string_view text) {
    const bool bare = text.find_first_of(",\"\r\n") == std::string_view::npos;
    if (bare) return std::string(text);
    std::string field = "\"";
    for (const char c : text) field.append(c == '"' ? 2 : 1, c);
    return field += '"';
}

std::string html_text(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            default:
                out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
    }
    return out;
}

void begin_page(std::string_view title, std::span<const std::string_view> style, bool has_scripts,
                Sink& sink) {
    sink.write(fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "{}style-src 'unsafe-inline'; img-src data:\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
        "<title>{}</title>\n<style>\n",
        has_scripts ? "script-src 'unsafe-inline'; " : "", title));
    for (const std::string_view piece : style) sink.write(piece);
    sink.write("</style>\n</head>\n<body>\n");
}

std::string json_string(std::string_view text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void JsonWriter::separate() {
    if (!first_) sink_.write(",");
    first_ = false;
}

void JsonWriter::begin(char bracket) {
    separate();
    sink_.write({&bracket, 1});
    first_ = true;
}

void JsonWriter::end(char bracket) {
    sink_.write({&bracket, 1});
    first_ = false;
}

void JsonWriter::key(std::string_view name) {
    if (!first_) sink_.write(",\n");
    sink_.write(json_string(name));
    sink_.write(":");
    first_ = true;
}

void JsonWriter::raw(std::string_view value) {
    separate();
    sink_.write(value);
}

void JsonWriter::text(std::string_view text) {
    raw(json_string(texts_ == Texts::kPrintable ? printable(text) : text));
}

void JsonWriter::address(std::uint64_t address) {
    raw(fmt::format("\"{:#x}\"", address));
}

void JsonWriter::number(std::uint64_t number) {
    raw(fmt::format_int(number).c_str());
}

void JsonWriter::real(double number) {
    if (std::isfinite(number))
        raw(fmt::format("{}", number));
    else
        null();
}

void JsonWriter::real(std::optional<double> number) {
    if (number)
        real(*number);
    else
        null();
}

void JsonWriter::texts(std::string_view name, std::span<const std::string> values) {
    begin_array(name);
    for (const std::string& each : values) text(each);
    end_array();
}

void JsonWriter::named_texts(std::string_view name,
                             std::span<const std::pair<std::string, std::string>> values) {
    objects(name, values, [&](const auto& each) {
        text("name", each.first);
        text("text", each.second);
    });
}

void JsonWriter::numbers(std::span<const std::uint64_t> numbers) {
    begin_array();
    for (const std::uint64_t each : numbers) number(each);
    end_array();
}

}  // namespace assay
