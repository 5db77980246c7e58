// Values that are addresses in a program's files.
#include "compiled_programs.h"
#include "tools/code/object_code.h"

#include <doctest/doctest.h>
#include <cstdint>
#include <string>
#include <vector>

namespace value_symbols_test {

using namespace assay;

TEST_CASE("value symbols: functions, variables and sections, where the file was loaded") {
    const CompiledPrograms folder;
    folder.write("main.c",
                 "int table[100] = {1}; static char rest[64]; int twice(int x) { return 2 * x; }\n"
                 "int main(int n, char** w) { rest[n] = n; return twice(table[n]) + (w == 0); }\n"
                 "char* other(int n) { return rest + n; }\n");
    folder.run(
        "cc -O1 -g -fno-inline -pie -fPIE -Wl,--build-id=0x0123456789abcdef -o program main.c");
    const std::string path = folder / "program";
    const std::uint64_t link_time = address_of(folder, "program", "table");
    constexpr std::uint64_t kLoad = 0x7000'0000'0000;
    const std::uint64_t table = kLoad + link_time,
                        twice = kLoad + address_of(folder, "program", "twice"),
                        rest = kLoad + address_of(folder, "program", "rest"),
                        outside = kLoad + 0x1000'0000;
    const std::vector<std::uint64_t> values = {twice,     table + 8, 7,       rest + 63,
                                               twice + 1, table,     outside, link_time};
    const ValueSymbols symbols({{path, "0123456789abcdef", kLoad}}, values);
    CHECK(symbols.name(table) == "table");
    CHECK(symbols.name(table + 8) == "table+0x8");
    CHECK(symbols.name(twice) == "twice");
    CHECK(symbols.name(twice + 1) == "twice+0x1");
    CHECK(symbols.name(rest + 63) == "rest+0x3f");
    for (const std::uint64_t other : {std::uint64_t{7}, outside, link_time})
        CHECK(symbols.name(other).empty());
    // Of what is not the first object, the file is named.
    CHECK(ValueSymbols({{"/none", "", kLoad}, {path, "", kLoad}}, values).name(table) ==
          "table in program");
    // Another build, and one of which it is not known where it was.
    CHECK(ValueSymbols({{path, "99", kLoad}}, values).name(table).empty());
    CHECK(ValueSymbols({{path, "0123456789abcdef"}}, values).name(table).empty());
}

}  // namespace value_symbols_test
