// Types of data as DWARF describes them: layouts, holes, and the member at an offset.
#include "framework/symbols/data_types.h"
#include "framework/data_references/type_tree.h"
#include "framework/symbols/debug_info.h"
#include "tests/unit/compiled_programs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>

namespace data_types_test {

namespace {

using namespace assay::symbols;
using assay::data_references::DebugEntries;

constexpr const char* kData = R"(
struct Point { int x; long y; };
struct Empty {};
struct Base { int id; };
struct Flags { unsigned first : 3, second : 5, third : 12; };
struct Twelve : Empty, Base {
    char kind;
    long hot;
    Point corners[4];
    union { int whole; short half; };
    Flags flags;
    double cold;
    static long counted;
};
typedef struct { char letter; double number; struct List* next; } Pair;
struct List { List* next; int open[]; };
namespace inner { struct Own { Own* self; }; Twelve one; Own own; }
Twelve many[10];
Pair pair;
List list;
int main() {
    static Point last;
    return inner::one.id + many[3].kind + int(pair.letter) + last.x + list.open[0] +
           (inner::own.self != nullptr);
}
)";

struct Opened {
    CompiledPrograms folder;
    std::optional<DebugInfo> info;
    DataTypes types;
    std::optional<DebugEntries> entries;

    explicit Opened(const std::string& flags) {
        folder.write("data.cpp", kData);
        folder.run("c++ -O0 " + flags + " -o data data.cpp");
        info.emplace(folder / "data", "", ImageCache(""));
        REQUIRE(info->dwarf() != nullptr);
        entries.emplace(info->dwarf(), types);
    }
    DataTypeId variable(const std::string& symbol) {
        const auto found = entries->variable_at(address_of(folder, "data", symbol));
        REQUIRE(found);
        return found->type;
    }
    std::string place(const std::string& symbol, std::int64_t offset, std::uint64_t size) {
        const std::optional<DataPlace> found = types.place(variable(symbol), offset, size);
        if (!found) return "";
        std::string text = types.full_name(found->type);
        for (const DataPlace::Step& step : found->members)
            for (std::uint32_t i = step.first; i <= step.last; ++i)
                text += (i == step.first ? "." : "+") + types[step.in].members[i].name;
        return text;
    }
};

}  // namespace

TEST_CASE("the member at an offset of a variable is found") {
    for (const char* flags :
         {"-g", "-g -gdwarf-4", "-g -gdwarf-3", "-g -gz=zlib", "-g -fdebug-types-section"}) {
        CAPTURE(flags);
        Opened opened(flags);
        const char* one = "_ZN5inner3oneE";
        CHECK(opened.place(one, 0, 4) == "Twelve.Base.id");
        CHECK(opened.place(one, 4, 1) == "Twelve.kind");
        CHECK(opened.place(one, 8, 8) == "Twelve.hot");
        CHECK(opened.place(one, 16, 4) == "Twelve.corners.x");
        CHECK(opened.place(one, 40, 8) == "Twelve.corners.y");
        CHECK(opened.place(one, 80, 4) == "Twelve..whole");
        CHECK(opened.place(one, 80, 2) == "Twelve..half");
        CHECK(opened.place(one, 84, 1) == "Twelve.flags.first+second");
        CHECK(opened.place(one, 85, 2) == "Twelve.flags.third");
        CHECK(opened.place(one, 5, 1) == "Twelve");
        CHECK(opened.place("many", 3 * 96 + 88, 8) == "Twelve.cold");
        CHECK(opened.place("many", -8, 8) == "Twelve.cold");
        CHECK(opened.place("pair", 8, 8) == "Pair.number");
        CHECK(opened.place("list", 80, 4) == "List.open");
    }
}

TEST_CASE("types have names as their users would write them") {
    Opened opened("-g");
    const auto name_of_part = [&](const char* symbol, std::int64_t offset) {
        return opened.types.full_name(opened.types.place(opened.variable(symbol), offset, 8)->part);
    };
    CHECK(opened.types.full_name(opened.variable("_ZN5inner3ownE")) == "inner::Own");
    CHECK(name_of_part("_ZN5inner3ownE", 0) == "inner::Own *");
    CHECK(name_of_part("pair", 16) == "List *");
    CHECK(opened.types.full_name(opened.variable("many")) == "Twelve[10]");
    // An unnamed one has its typedef's, too.
    CHECK(opened.types.full_name(opened.variable("pair")) == "Pair");
}

TEST_CASE("a layout has the members in order") {
    Opened opened("-g");
    const DataType& layout = opened.types[opened.variable("_ZN5inner3oneE")];
    CHECK(layout.name == "Twelve");
    CHECK(layout.kind == DataType::Kind::kStruct);
    CHECK(layout.size == 96);
    CHECK(layout.line == 6);
    CHECK(layout.file.ends_with("/data.cpp"));
    CHECK(layout.members.size() == 7);
}

// Whatever bytes are wrong, reading ends, and members lie within their types.
TEST_CASE("damaged types are survived") {
    Opened opened("-g");
    const std::string bytes = read_bytes(opened.folder / "data");
    const std::size_t begin = bytes.size() / 4;
    std::uint32_t random = 12345;
    for (int round = 0; round < 50; ++round) {
        std::string damaged = bytes;
        for (int i = 0; i < 20; ++i) {
            random = random * 1664525 + 1013904223;
            damaged[begin + (random >> 8) % (bytes.size() - begin)] = static_cast<char>(random);
        }
        write_bytes(opened.folder / "damaged", damaged);
        const DebugInfo info(opened.folder / "damaged", "", ImageCache(""));
        if (info.dwarf() == nullptr) continue;
        DataTypes types;
        DebugEntries entries(info.dwarf(), types);
        for (const char* symbol : {"many", "pair", "list", "_ZN5inner3oneE"}) {
            const auto variable = entries.variable_at(address_of(opened.folder, "data", symbol));
            if (!variable) continue;
            for (std::int64_t offset = 0; offset < 100; ++offset)
                static_cast<void>(types.place(variable->type, offset, 8));
            CHECK(!types.full_name(variable->type).empty());
            for (const DataMember& member : types[variable->type].members)
                CHECK(member.offset + member.size <= types[variable->type].size);
        }
    }
}

}  // namespace data_types_test
