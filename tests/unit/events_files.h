// Events files for tests: one to write, and what a parser passes on of one.
#pragma once

#include "framework/events/reader.h"
#include "framework/events/writer.h"
#include "framework/support/error.h"

#include <doctest/doctest.h>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace assay::events {

inline std::string text_of_data(const std::string& name) {
    const char* folder = std::getenv("ASSAY_TEST_DATA");
    REQUIRE(folder);
    std::ostringstream content;
    content << std::ifstream(std::string(folder) + "/" + name).rdbuf();
    REQUIRE(!content.str().empty());
    return content.str();
}

// What a parser passed on, as text: one line per call.
class Recorder final : public Handler {
  public:
    std::string text;
    int starts = 0;

  private:
    void start(const Header&) override { ++starts; }
    void location(const Location& location) override {
        text += std::string(location.file) + " " + std::string(location.function_file) + ":" +
                std::string(location.function) + "\n";
    }
    void line(std::uint32_t line, std::span<const std::uint64_t> counts) override {
        text += "line " + std::to_string(line) + numbers(counts);
    }
    void instruction(const Instruction& at, std::span<const std::uint64_t> counts) override {
        text += "at " + std::to_string(at.object) + " " + std::to_string(at.address) + " line " +
                std::to_string(at.line) + numbers(counts);
    }
    void values(const Instruction& at, const Hotlist& list) override {
        text += "values " + std::to_string(at.object) + " " + std::to_string(at.address) +
                " line " + std::to_string(at.line) + " " + list.name + " " +
                std::to_string(list.total) + " error " + std::to_string(list.error) + ":";
        for (const HotValue& each : list.values)
            text += " " + std::to_string(each.value) + "*" + std::to_string(each.count);
        text += "\n";
    }
    void site(const Site& site) override {
        text += "site " + std::to_string(site.number) + " in " + std::to_string(site.parent) +
                " line " + std::to_string(site.line) + " " + std::string(site.file) + " " +
                std::string(site.function) + "\n";
    }
    void line_sites(std::uint32_t site, std::uint64_t count) override {
        text += "lines in " + std::to_string(site) + ": " + std::to_string(count) + "\n";
    }
    void instruction_sites(std::uint32_t site, std::uint64_t count) override {
        text += "instructions in " + std::to_string(site) + ": " + std::to_string(count) + "\n";
    }
    void group(const Group& group) override {
        text += "group " + std::to_string(group.number) + " " + group.kind + " in " +
                std::to_string(group.parent) + " " + group.name;
        for (const auto& [key, value] : group.attributes)
            text.append(" ").append(key).append("=").append(value);
        text += "\n";
    }
    void binary(std::string_view function, std::uint32_t object) override {
        text.append("binary ").append(std::to_string(object)).append(" of ");
        text.append(function).append("\n");
    }
    void linkage(std::string_view function, std::string_view name) override {
        text.append("linkage ").append(name).append(" of ").append(function).append("\n");
    }
    void counts_of(std::uint32_t group, std::uint32_t line,
                   std::span<const std::uint64_t> counts) override {
        text += "of " + std::to_string(group) + " line " + std::to_string(line) + numbers(counts);
    }
    void stack(const Stack& stack, std::span<const std::uint64_t> counts) override {
        text += "stack " + std::to_string(stack.number) + " in " + std::to_string(stack.parent) +
                entry(stack) + " " + std::string(stack.function) + numbers(counts);
    }
    void calls(std::uint32_t context, std::uint64_t number) override {
        text += "calls of " + std::to_string(context) + ": " + std::to_string(number) + "\n";
    }
    void recursion(const Recursion& recursion, std::uint64_t number) override {
        text += "recursion of " + std::to_string(recursion.context) + " in " +
                std::to_string(recursion.caller) + " from " + std::to_string(recursion.object) +
                " " + std::to_string(recursion.address) + " line " +
                std::to_string(recursion.line) + ": " + std::to_string(number) + "\n";
    }
    static std::string entry(const Stack& stack) {
        if (stack.kind == StackKind::kInlined) return " inlined at " + std::to_string(stack.line);
        if (stack.kind == StackKind::kJumped) return " jumped to at " + std::to_string(stack.line);
        return (stack.kind == StackKind::kHandler ? " interrupting " : " from ") +
               std::to_string(stack.object) + " " + std::to_string(stack.address) +
               (stack.line != 0 ? " line " + std::to_string(stack.line) : "");
    }
    static std::string numbers(std::span<const std::uint64_t> counts) {
        std::string out = ":";
        for (const std::uint64_t count : counts) out.append(" ").append(std::to_string(count));
        return out.append("\n");
    }
};

// Parses in blocks of the size given.
inline FileSummary parse(const std::string& text, Recorder& recorder, std::size_t block = 1 << 20) {
    Parser parser("FILE", recorder);
    for (std::size_t at = 0; at < text.size(); at += block)
        parser.feed(std::string_view(text).substr(at, block));
    parser.finish();
    return {parser.header(), parser.totals()};
}

// The message of the error that parsing ends in; "" if there is none.
inline std::string error_of(const std::string& text) {
    Recorder recorder;
    try {
        parse(text, recorder);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

inline Header example_header() {
    Header header;
    header.descriptions = {{"I1 cache", "32768 B"}};
    header.command = "./prog arg";
    header.events = {{"Ir", "instructions \"executed\"", "instructions", "cache"},
                     {"Dr", "", "data reads", ""}};
    header.derived = {{"reads by instruction", "Dr / Ir", "%"}};
    header.objects = {{"/usr/bin/prog", "abc", 0x555555554000}, {"/a folder/lib.so", ""}};
    header.pid = 17;
    header.incomplete = "killed";
    return header;
}

inline void write_example(const std::string& path) {
    Writer writer(path, example_header());
    const std::uint64_t five_one[] = {5, 1}, seven_zero[] = {7, 0};
    writer.location("a.c", "main");
    writer.line(3, five_one);
    writer.instruction(0, 0x1136, five_one);
    writer.line(4, seven_zero);
    writer.instruction(1, 0x40, seven_zero);
    writer.values(1, 0x40, {"classic.loaded", 9, 1, {{~std::uint64_t{0}, 5}, {0, 2}}});
    writer.values(1, 0x40, {"a name", 0, 0, {}});
    writer.location("a.c", "main");
    writer.line(5, five_one);
    writer.location("a.c", "other");
    writer.line(0, five_one);
    writer.location("", "");
    writer.line(0, seven_zero);
    writer.finish();
}

// What files of the tests begin with.
inline const std::string kStart = "desc: a\ncmd: ./t\nevents: Ir Dr\n";
inline const std::string kVersion = kStart + "fl=#! version 1\n";
inline const std::string kPlace = "fl=a.c\nfn=f\n";
inline const std::string kSites = kVersion + "fl=#! site 1 a.c main 7\n";
inline const std::string kContexts =
    kVersion + "fl=#! object 0 a\n" + kPlace + "1 1 2\nfl=#! stack ";

}  // namespace assay::events
