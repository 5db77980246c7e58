// What programs read, and browsers: JSON, CSV and pages of HTML.
#pragma once

#include "tools/output/output.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace assay {

// Comma-separated values (RFC 4180).

// In quotes if it must be.
std::string csv_field(std::string_view text);

// Text in pages of HTML.

// What comes from files, so that it is nothing but text, in elements and in quoted attributes.
std::string html_text(std::string_view text);

// The beginning of a page up to its body, with a title and a style that are HTML and CSS already.
// Its policy keeps it from loading or sending anything, whatever is in it.
void begin_page(std::string_view title, std::span<const std::string_view> style, bool has_scripts,
                Sink& sink);

// JSON as it is made, without a tree of it in memory.

class JsonWriter {
  public:
    // How texts are written: what reads them takes any, or they are shown to people, hence
    // printable.
    enum class Texts { kAny, kPrintable };

    explicit JsonWriter(Sink& sink, Texts texts = Texts::kAny) : sink_(sink), texts_(texts) {}

    void begin_object() { begin('{'); }
    void end_object() { end('}'); }
    void begin_array() { begin('['); }
    void end_array() { end(']'); }
    // Of the next value.
    void key(std::string_view name);
    void begin_object(std::string_view name) {
        key(name);
        begin_object();
    }
    void begin_array(std::string_view name) {
        key(name);
        begin_array();
    }
    // An array of objects: `members` writes those of one, of each of the values.
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
    // As a text: 0x1f.
    void address(std::uint64_t address);
    void number(std::uint64_t number);
    void real(double number);
    // Null if there is none.
    void real(std::optional<double> number);
    void boolean(bool value) { raw(value ? "true" : "false"); }
    void null() { raw("null"); }
    // Any other value, as it is written in JSON.
    void literal(std::string_view value) { raw(value); }
    void numbers(std::span<const std::uint64_t> numbers);

    // A key and its value.
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
    // Objects of "name" and "text".
    void named_texts(std::string_view name,
                     std::span<const std::pair<std::string, std::string>> values);

  private:
    void begin(char bracket);
    void end(char bracket);
    void raw(std::string_view value);
    void separate();

    Sink& sink_;
    Texts texts_;
    bool first_ = true;  // in its object or array; behind a key
};

// A JSON string, quotes included; what is not UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

}  // namespace assay
