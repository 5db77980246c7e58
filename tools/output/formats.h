// Formats for programs and browsers: JSON, CSV and pages of HTML.
#pragma once

#include "tools/output/output.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

// A field of comma-separated values (RFC 4180), in quotes if needed.
std::string csv_field(std::string_view text);

// Escapes text from files for HTML, in elements and in quoted attributes.
std::string html_text(std::string_view text);

// Writes a page of HTML up to its body. `title` and `style` must be valid HTML and CSS. The policy
// of the page forbids it to load or send data, whatever it contains.
void begin_page(std::string_view title, std::span<const std::string_view> style, bool has_scripts,
                Sink& sink);

// Writes JSON piece by piece, without a tree in memory.

class JsonWriter {
  public:
    // Whether texts are only made valid, or also printable because people read them.
    enum class Texts { kAny, kPrintable };

    explicit JsonWriter(Sink& sink, Texts texts = Texts::kAny) : sink_(sink), texts_(texts) {}

    void begin_object() { begin('{'); }
    void end_object() { end('}'); }
    void begin_array() { begin('['); }
    void end_array() { end(']'); }
    // Writes the key of the next value.
    void key(std::string_view name);
    void begin_object(std::string_view name) {
        key(name);
        begin_object();
    }
    void begin_array(std::string_view name) {
        key(name);
        begin_array();
    }
    // Writes an array of objects. `members` writes the members for one of the values.
    template <typename Values, typename Members>
    void objects(std::string_view name, const Values& values, const Members& members) {
        begin_array(name);
        for (const auto& each : values) {
            begin_object();
            members(each);
            end_object();
        }
        end_array();
    }

    void text(std::string_view text);
    // Writes an address as text, such as "0x1f".
    void address(std::uint64_t address);
    void number(std::uint64_t number);
    void real(double number);
    // Writes null for no value.
    void real(std::optional<double> number);
    void boolean(bool value) { raw(value ? "true" : "false"); }
    void null() { raw("null"); }
    // Writes a value that is already JSON.
    void literal(std::string_view value) { raw(value); }
    void numbers(std::span<const std::uint64_t> numbers);

    // Write a key and its value.
    void text(std::string_view name, std::string_view value) {
        key(name);
        text(value);
    }
    void number(std::string_view name, std::uint64_t value) {
        key(name);
        number(value);
    }
    void address(std::string_view name, std::uint64_t value) {
        key(name);
        address(value);
    }
    void real(std::string_view name, std::optional<double> value) {
        key(name);
        real(value);
    }
    void boolean(std::string_view name, bool value) {
        key(name);
        boolean(value);
    }
    template <typename Numbers>
    void numbers(std::string_view name, const Numbers& values) {
        begin_array(name);
        for (const auto each : values) number(each);
        end_array();
    }
    void texts(std::string_view name, std::span<const std::string> values);
    // Writes objects with the members "name" and "text".
    void named_texts(std::string_view name,
                     std::span<const std::pair<std::string, std::string>> values);

  private:
    void begin(char bracket);
    void end(char bracket);
    void raw(std::string_view value);
    void separate();

    Sink& sink_;
    Texts texts_;
    bool first_ = true;  // true at the start of an object or array, and after a key
};

// Returns a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace assay
