// Names of code that a program makes itself: perf maps and jitdump files, good and damaged.
#include "framework/symbols/generated_code.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace generated_code_test {

namespace {

using assay::symbols::GeneratedCode;

std::string function_at(const GeneratedCode& code, std::uint64_t address) {
    const auto place = code.find(address);
    return place ? std::string(place->frame.function) : "";
}

template <typename T>
void put(std::string& bytes, T number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string record(std::uint32_t kind, const std::string& body) {
    std::string bytes;
    put<std::uint32_t>(bytes, kind);
    put<std::uint32_t>(bytes, static_cast<std::uint32_t>(16 + body.size()));
    put<std::uint64_t>(bytes, 0);
    return bytes + body;
}

std::string header() {
    std::string bytes;
    for (const std::uint32_t field : {0x4A695444U, 1U, 40U, 62U, 0U, 1U, 0U, 0U, 0U, 0U})
        put(bytes, field);
    return bytes;
}

std::string load(std::uint64_t address, std::uint64_t size, std::string_view name) {
    std::string body;
    for (const std::uint64_t field : {std::uint64_t{0}, address, address, size, std::uint64_t{0}})
        put(body, field);
    return record(0, body + std::string(name) + '\0' + std::string(size, '\x90'));
}

std::string move(std::uint64_t from, std::uint64_t to, std::uint64_t size) {
    std::string body;
    for (const std::uint64_t field : {std::uint64_t{0}, to, from, to, size, std::uint64_t{0}})
        put(body, field);
    return record(1, body);
}

std::string lines(std::uint64_t address, std::uint64_t added = 0) {
    std::string body;
    put<std::uint64_t>(body, address);
    put<std::uint64_t>(body, 2);
    put<std::uint64_t>(body, address + added);
    put<std::uint32_t>(body, 10);
    put<std::uint32_t>(body, 0);
    body += std::string("a.lang") + '\0';
    put<std::uint64_t>(body, address + added + 8);
    put<std::uint32_t>(body, 12);
    put<std::uint32_t>(body, 0);
    return record(2, body + '\xff' + '\0');
}

}  // namespace

TEST_CASE("perf maps name code") {
    GeneratedCode code;
    CHECK(code.add_perf_map("/tmp/perf-1.map", "1000 10 f\n0x1010 0x20 g with spaces\n") == "");
    CHECK(function_at(code, 0xfff) == "");
    CHECK(function_at(code, 0x1000) == "f");
    CHECK(function_at(code, 0x100f) == "f");
    CHECK(function_at(code, 0x102f) == "g with spaces");
    CHECK(function_at(code, 0x1030) == "");
    CHECK(code.find(0x1000)->source == "/tmp/perf-1.map");
    CHECK(code.find(0x1000)->frame.file == "???");
    CHECK(code.find(0x1000)->frame.line == 0);
}

TEST_CASE("of perf maps, later lines win") {
    GeneratedCode code;
    CHECK(code.add_perf_map("m", "1000 100 old\n1010 10 new\n1080 100 last\n") == "");
    CHECK(function_at(code, 0x100f) == "old");
    CHECK(function_at(code, 0x1010) == "new");
    CHECK(function_at(code, 0x1020) == "old");
    CHECK(function_at(code, 0x107f) == "old");
    CHECK(function_at(code, 0x1080) == "last");
    CHECK(function_at(code, 0x117f) == "last");
}

TEST_CASE("lines that are none are left out, and told once") {
    GeneratedCode code;
    CHECK(code.add_perf_map("m",
                            "1000 10 f\nnonsense\n\n10 20\n-1 1 x\nfffffffffffffff0 20 wraps\n"
                            "10000000000000000 1 long\n2000 0 empty\n3000 10 g\n4000 10 cut") ==
          "6 lines are not a start, a size and a name, the first is line 2");
    CHECK(function_at(code, 0x1000) == "f");
    CHECK(function_at(code, 0x2000) == "");
    CHECK(function_at(code, 0x3000) == "g");
    CHECK(function_at(code, 0x4000) == "");
    CHECK(function_at(code, 0) == "");
}

TEST_CASE("jitdump files name code and its lines") {
    GeneratedCode code;
    CHECK(code.add_jitdump("d", header() + lines(0x1000) + load(0x1000, 16, "f") +
                                    load(0x2000, 16, "g") + record(99, "from the future") +
                                    move(0x1000, 0x3000, 16) + record(3, "") +
                                    load(0x4000, 16, "after the end")) == "");
    CHECK(function_at(code, 0x1000) == "f");
    CHECK(code.find(0x1007)->frame.line == 10);
    CHECK(code.find(0x1007)->frame.file == "a.lang");
    CHECK(code.find(0x1008)->frame.line == 12);
    CHECK(code.find(0x1008)->frame.file == "a.lang");
    CHECK(function_at(code, 0x2000) == "g");
    CHECK(code.find(0x2000)->frame.file == "???");
    CHECK(function_at(code, 0x3000) == "f");
    CHECK(code.find(0x3008)->frame.line == 12);
    CHECK(function_at(code, 0x4000) == "");
}

TEST_CASE("jitdump files tell where code has replaced other code") {
    GeneratedCode code;
    CHECK(code.add_perf_map("m", "3000 10 by the map\n") == "");
    CHECK(code.add_jitdump("d", header() + load(0x2000, 16, "f") + load(0x2008, 16, "g") +
                                    load(0x3000, 16, "f") + load(0x3000, 16, "f") +
                                    load(0x2018, 16, "h")) == "");
    CHECK(function_at(code, 0x2000) == "f");
    CHECK(function_at(code, 0x2008) == "g [address reused]");
    CHECK(function_at(code, 0x2018) == "h");
    CHECK(function_at(code, 0x3000) == "f");
}

TEST_CASE("jitdump files can add an ELF header to the addresses of lines") {
    GeneratedCode code;
    CHECK(code.add_jitdump("d", header() + lines(0x1000, 64) + load(0x1000, 80, "f")) == "");
    CHECK(code.find(0x1000)->frame.line == 10);
    CHECK(code.find(0x1008)->frame.line == 12);
    CHECK(code.find(0x1040)->frame.line == 12);
}

TEST_CASE("jitdump files can be cut anywhere, and be garbage") {
    const std::string whole = header() + lines(0x1000) + load(0x1000, 16, "f");
    for (std::size_t size = 0; size < whole.size(); ++size) {
        GeneratedCode code;
        const std::string problem = code.add_jitdump("d", whole.substr(0, size));
        CHECK(problem.empty() == (size >= header().size()));
        CHECK(code.empty());
    }
    GeneratedCode code;
    CHECK(code.add_jitdump(
              "d", header() + load(0x1000, 16, "f") + record(0, "short") + load(0x2000, 16, "g")) ==
          "the record at byte 114 is damaged; it and the rest of the file are left out");
    CHECK(function_at(code, 0x1000) == "f");
    CHECK(function_at(code, 0x2000) == "");
    std::string little = header();
    put<std::uint32_t>(little, 0);
    put<std::uint32_t>(little, 1);
    put<std::uint64_t>(little, 0);
    CHECK(code.add_jitdump("d", little).starts_with("the record at byte 40 is damaged"));
    std::string other = header();
    std::swap(other[0], other[3]);
    CHECK(code.add_jitdump("d", other) == "not a jitdump file of version 1 for this machine");
}

}  // namespace generated_code_test
