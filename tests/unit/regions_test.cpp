#include "framework/driver/native/trace/regions.h"
#include "framework/driver/native/load/elf_functions.h"
#include "framework/x86/instruction.h"
#include "tests/unit/driver_parts.h"

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>

namespace regions_test {

using namespace assay;
using namespace assay::native;

namespace {

trace::Spec spec_with(const trace::Regions& regions) {
    trace::Spec spec = kEverything;
    spec.regions = regions;
    return spec;
}

trace::Regions functions_named(const char* names) {
    trace::Regions regions{};
    std::strncpy(regions.functions, names, sizeof regions.functions - 1);
    return regions;
}

// The block at `pc` is about to be executed, in the order of translated code.
Version step(Regions& regions, Context& context, std::uint32_t instructions) {
    context.countdown -= instructions;
    if (context.countdown >= 0) return regions.version_of(context);
    context.countdown += instructions;
    regions.reach(context);
    return step(regions, context, instructions);
}

}  // namespace

TEST_CASE("regions: without any, all is collected") {
    Regions regions;
    regions.initialise(kEverything);
    const auto context = std::make_unique<Context>();
    regions.begin(*context, true);
    CHECK(regions.version_of(*context) == kCollecting);
    CHECK_FALSE(regions.counts());
    CHECK_FALSE(regions.has_functions());
}

TEST_CASE("regions: markers") {
    Regions regions;
    regions.initialise(spec_with({.off_at_start = 1}));
    const auto context = std::make_unique<Context>();
    regions.begin(*context, true);
    CHECK(regions.version_of(*context) == kPlain);
    CHECK(regions.set_collecting(true));
    CHECK_FALSE(regions.set_collecting(true));
    CHECK(regions.version_of(*context) == kCollecting);
    CHECK(regions.set_collecting(false));
    CHECK(regions.version_of(*context) == kPlain);
}

TEST_CASE("regions: a function is left when the stack pointer is above its return address") {
    Regions regions;
    regions.initialise(spec_with(functions_named("f")));
    const auto context = std::make_unique<Context>();
    regions.begin(*context, true);
    CHECK(regions.version_of(*context) == kPlain);
    context->gpr[RSP] = 0x1000;
    regions.enter(*context);
    CHECK(regions.version_of(*context) == kCollecting);
    for (const std::uint64_t inside : {0x800, 0x1000}) {
        context->gpr[RSP] = inside;
        regions.leave_functions(*context);
        CHECK(regions.version_of(*context) == kCollecting);
    }
    context->gpr[RSP] = 0x1008;
    regions.leave_functions(*context);
    CHECK(regions.version_of(*context) == kPlain);
}

TEST_CASE("regions: a block belongs to where its last instruction lies") {
    Regions regions;
    const auto context = std::make_unique<Context>();
    SUBCASE("in the middle") {
        regions.initialise(spec_with({.from_instruction = 11, .to_instruction = 20}));
        regions.begin(*context, true);
        CHECK(step(regions, *context, 10) == kPlain);      // 1 to 10
        CHECK(step(regions, *context, 1) == kCollecting);  // 11
        CHECK(step(regions, *context, 9) == kCollecting);  // 12 to 20
        CHECK(step(regions, *context, 1) == kPlain);
    }
    SUBCASE("blocks across the boundaries") {
        regions.initialise(spec_with({.from_instruction = 11, .to_instruction = 20}));
        regions.begin(*context, true);
        CHECK(step(regions, *context, 8) == kPlain);
        CHECK(step(regions, *context, 8) == kCollecting);  // 9 to 16
        CHECK(step(regions, *context, 8) == kPlain);       // 17 to 24
    }
    SUBCASE("within one block") {
        regions.initialise(spec_with({.from_instruction = 11, .to_instruction = 12}));
        regions.begin(*context, true);
        CHECK(step(regions, *context, 20) == kPlain);
        CHECK(step(regions, *context, 20) == kPlain);
        CHECK_FALSE(regions.counts());
    }
    SUBCASE("from the beginning") {
        regions.initialise(spec_with({.to_instruction = 20}));
        regions.begin(*context, true);
        CHECK(step(regions, *context, 20) == kCollecting);
        CHECK(step(regions, *context, 1) == kPlain);
    }
    SUBCASE("to the end") {
        regions.initialise(spec_with({.from_instruction = 2}));
        regions.begin(*context, true);
        CHECK(step(regions, *context, 1) == kPlain);
        CHECK(step(regions, *context, 1) == kCollecting);
        CHECK_FALSE(regions.counts());
    }
}

TEST_CASE("regions: only the first thread's instructions are counted") {
    Regions regions;
    regions.initialise(spec_with({.from_instruction = 11}));
    const auto first = std::make_unique<Context>(), second = std::make_unique<Context>();
    regions.begin(*first, true);
    regions.begin(*second, false);
    CHECK(step(regions, *second, 1000) == kPlain);
    CHECK(step(regions, *first, 11) == kCollecting);
    CHECK(step(regions, *second, 1000) == kCollecting);
}

TEST_CASE("regions: functions of files that are mapped") {
    Regions regions;
    regions.initialise(spec_with(functions_named("no_such_function\nassay_enter")));
    std::uint64_t offset = 0;
    for_each_function("/proc/self/exe", [&](const char* symbol, std::uint64_t place) {
        if (std::strcmp(symbol, "assay_enter") == 0) offset = place;
    });
    REQUIRE(offset != 0);
    const std::uint64_t start = 0x10000, end = start + 0x2000, page = offset & ~0xfffULL;
    regions.mapped(start, end, page, "/proc/self/exe");
    CHECK(regions.is_entry(start + offset - page));
    CHECK(regions.missing_functions() == std::vector<std::string>{"no_such_function"});
    regions.unmapped(start, end);
    CHECK_FALSE(regions.is_entry(start + offset - page));
    // What is not mapped is not an entry, nor what cannot be read.
    regions.mapped(start, end, page + 0x2000, "/proc/self/exe");
    regions.mapped(start, end, page, "/nonexistent");
    CHECK_FALSE(regions.is_entry(start + offset - page));
}

// An ELF file of Arm's M profile with two functions.
struct SmallElf {
    Elf32_Ehdr header{};
    Elf32_Phdr segment{};
    Elf32_Shdr sections[3]{};  // no section, symbols, names
    Elf32_Sym symbols[4]{};    // no symbol, Thumb code, other code, data
    char names[16] = "\0thumb\0arm\0data";

    SmallElf() {
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS32;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_machine = EM_ARM;
        header.e_phoff = offsetof(SmallElf, segment);
        header.e_phnum = 1;
        header.e_shoff = offsetof(SmallElf, sections);
        header.e_shnum = 3;
        segment.p_type = PT_LOAD;
        segment.p_vaddr = 0x08000000;
        segment.p_offset = 0x1000;
        segment.p_filesz = 0x2000;
        sections[1].sh_type = SHT_SYMTAB;
        sections[1].sh_offset = offsetof(SmallElf, symbols);
        sections[1].sh_size = sizeof symbols;
        sections[1].sh_link = 2;
        sections[2].sh_offset = offsetof(SmallElf, names);
        sections[2].sh_size = sizeof names;
        symbols[1] = {1, 0x08000101, 0, STT_FUNC, 0, 1};
        symbols[2] = {7, 0x08000200, 0, STT_FUNC, 0, 1};
        symbols[3] = {11, 0x08000300, 0, STT_OBJECT, 0, 1};
    }
    // The places of the functions, in a file of this content and size.
    std::map<std::string, std::uint64_t> functions(std::size_t size = sizeof(SmallElf)) const {
        const int file = memfd_create("elf", MFD_CLOEXEC);
        REQUIRE(write(file, this, size) == static_cast<ssize_t>(size));
        std::map<std::string, std::uint64_t> found;
        driver::for_each_function(
            file, [&](const char* symbol, std::uint64_t place) { found[symbol] = place; });
        close(file);
        return found;
    }
};

TEST_CASE("functions of 32-bit files, and of damaged ones") {
    const std::map<std::string, std::uint64_t> both{{"arm", 0x1200}, {"thumb", 0x1100}};
    SmallElf elf;
    CHECK(elf.functions() == both);
    for (std::size_t size = 0; size < sizeof elf; ++size) CHECK(elf.functions(size).empty());
    elf.header.e_ident[EI_DATA] = ELFDATA2MSB;
    CHECK(elf.functions().empty());
    elf = SmallElf();
    elf.segment.p_filesz = 0x180;
    CHECK(elf.functions() == std::map<std::string, std::uint64_t>{{"thumb", 0x1100}});
    elf = SmallElf();
    elf.sections[1].sh_link = 3;
    CHECK(elf.functions().empty());
    elf = SmallElf();
    elf.sections[1].sh_size = UINT32_MAX;
    CHECK(elf.functions().empty());
}

TEST_CASE("function patterns") {
    const auto matches = [](const char* pattern, const char* symbol) {
        return driver::FunctionPatterns(pattern).match(symbol);
    };
    CHECK(matches("main", "main"));
    CHECK_FALSE(matches("main", "domain"));
    CHECK(matches("*main", "domain"));
    CHECK(matches("sort.?\nother", "other"));
    CHECK(matches("sum", "sum.constprop.0.isra.0"));
    CHECK_FALSE(matches("sum", "sum.cold"));
    const char* const symbol = "_ZN4wide3sumEPKil";  // wide::sum(int const*, long)
    CHECK(matches(symbol, symbol));
    CHECK(matches("wide::sum", symbol));
    CHECK(matches("wide::sum(int const*, long)", symbol));
    CHECK_FALSE(matches("wide::sum(int)", symbol));
    CHECK(matches("*::sum", symbol));
    // void wide::add<std::__cxx11::basic_string<char, ...> >(std::__cxx11::basic_string<char, ...>)
    const char* const instance =
        "_ZN4wide3addINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEEvT_";
    CHECK(matches("wide::add<std::string>", instance));
    CHECK(matches("void wide::add<std::string>(std::string)", instance));
    CHECK(driver::FunctionPatterns("").empty());
}

TEST_CASE("a marker is its own flow, other long no-operations are not") {
    Decoder decoder;
    Instruction instruction;
    const std::vector<std::uint8_t> marker{0x0f, 0x1f, 0x84, 0x00, 0x61, 0x73, 0x73, 0x79};
    const std::vector<std::uint8_t> padding{0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00};
    for (int times = 0; times < 2; ++times) {
        REQUIRE(decoder.decode(padding, 0x1000, instruction));
        CHECK(instruction.form->flow == Flow::kNone);
        REQUIRE(decoder.decode(marker, 0x1000, instruction));
        CHECK(instruction.form->flow == Flow::kMarker);
        CHECK(instruction.form->length == kMarkerBytes);
        CHECK(instruction.form->reference_count == 0);
    }
}

TEST_CASE("both versions of a translation are kept") {
    DriverParts parts;
    const std::uint64_t pc = parts.code(0, {{"mov eax, [rbx]", {0x8b, 0x03}}, {"ret", {0xc3}}});
    const Block* collecting = parts.translator.translate(pc, kCollecting, true);
    REQUIRE(collecting != nullptr);
    CHECK(parts.cache.find(pc, kPlain) == nullptr);
    REQUIRE(parts.translator.translate(pc, kPlain, true) != nullptr);
    Block* plain = parts.cache.find(pc, kPlain);
    collecting = parts.cache.find(pc, kCollecting);
    REQUIRE(plain != nullptr);
    REQUIRE(collecting != nullptr);
    CHECK(plain->entry != collecting->entry);
    const auto length = [&](const Block& block) {
        const Unit& unit = parts.cache.units()[block.unit];
        return unit.hot_end - unit.hot_begin;
    };
    CHECK(length(*plain) < length(*collecting));

    const std::uint64_t miss = parts.cache.indirect_miss();
    const auto& table = parts.context->indirect_table;
    parts.cache.add_landing(*plain);
    CHECK(table[kPlain][pc % kIndirectEntries] == plain->landing);
    CHECK(table[kCollecting][pc % kIndirectEntries] == miss);

    CHECK(parts.cache.invalidate(pc, pc + 1));
    CHECK(parts.cache.find(pc, kPlain) == nullptr);
    CHECK(parts.cache.find(pc, kCollecting) == nullptr);
    CHECK(table[kPlain][pc % kIndirectEntries] == miss);
}

TEST_CASE("blocks end where functions begin that switch collecting on") {
    DriverParts parts(spec_with(functions_named("assay_enter")));
    parts.regions.initialise(parts.trace.spec());
    std::uint64_t offset = 0;
    for_each_function("/proc/self/exe", [&](const char* symbol, std::uint64_t place) {
        if (std::strcmp(symbol, "assay_enter") == 0) offset = place;
    });
    const std::uint64_t pc =
        parts.code(0, {{"nop", {0x90}}, {"nop", {0x90}}, {"nop", {0x90}}, {"ret", {0xc3}}});
    parts.regions.mapped(pc + 2, pc + 4, offset, "/proc/self/exe");
    UnitPlan unit;
    REQUIRE(parts.translator.planner().plan(pc, kPlain, false, unit));
    REQUIRE(unit.blocks.size() == 2);
    CHECK(unit.blocks[0].count == 2);
    CHECK_FALSE(unit.blocks[0].enters_function);
    CHECK(unit.blocks[1].enters_function);
    CHECK(unit.leaves_functions);
}

}  // namespace regions_test
