#include "tools/output/json_writer.h"

#include "framework/support/text.h"

#include <fmt/format.h>
#include <cmath>
#include <nlohmann/json.hpp>

namespace assay {

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
    key(name);
    begin_array();
    for (const std::string& each : values) text(each);
    end_array();
}

void JsonWriter::named_texts(std::string_view name,
                             std::span<const std::pair<std::string, std::string>> values) {
    key(name);
    begin_array();
    for (const auto& [each, value] : values) {
        begin_object();
        text("name", each);
        text("text", value);
        end_object();
    }
    end_array();
}

void JsonWriter::numbers(std::span<const std::uint64_t> numbers) {
    begin_array();
    for (const std::uint64_t each : numbers) number(each);
    end_array();
}

}  // namespace assay
