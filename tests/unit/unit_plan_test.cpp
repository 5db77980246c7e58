// Where instrumentation goes: what is live, which references are checked together, which
// instructions fetch a line.
#include "framework/driver/native/translate/captures.h"

#include "tests/unit/driver_parts.h"

#include <algorithm>

namespace unit_plan_test {

using namespace assay;
using namespace assay::native;
using assay::native::Captures;

namespace {

constexpr std::uint16_t kCf = 1, kZf = 0x40;

UnitPlan plan(DriverParts& parts, std::uint64_t pc) {
    UnitPlan result;
    REQUIRE(parts.translator.planner().plan(pc, kCollecting, false, result));
    UnitWriter::Output output;
    UnitWriter writer(result, parts.cache, parts.trace, nullptr, {}, {}, output);
    Captures(writer).place_items(result);
    return result;
}

UnitPlan plan(DriverParts& parts, std::initializer_list<Assembled> instructions) {
    return plan(parts, parts.code(0, instructions));
}

template <typename Capture>
std::vector<Item> items(const UnitPlan& unit) {
    std::vector<Item> found;
    for (const Item& item : unit.items)
        if (item.capture == Captures::kNumber<Capture>) found.push_back(item);
    return found;
}

// How many references each check is about.
std::vector<unsigned> groups(const UnitPlan& unit) {
    std::vector<unsigned> sizes;
    for (const Item& item : items<MemoryReferences>(unit)) sizes.push_back(item.reference_count);
    return sizes;
}

using Sizes = std::vector<unsigned>;

}  // namespace

// --- What is live.

TEST_CASE("flags are live from where they are set to where they are read") {
    DriverParts parts;
    const UnitPlan unit = plan(parts, {{"add rax, rcx", {0x48, 0x01, 0xc8}},
                                       {"mov rdx, [rdi]", {0x48, 0x8b, 0x17}},
                                       {"adc rax, 0", {0x48, 0x83, 0xd0, 0x00}},
                                       {"ret", {0xc3}}});
    CHECK(unit.flags_live == std::vector<std::uint16_t>{0, kCf, kCf, 0});
}

TEST_CASE("a shift that may leave the flags alone does not end their life") {
    DriverParts parts;
    const UnitPlan unit = plan(parts, {{"cmp rax, rcx", {0x48, 0x39, 0xc8}},
                                       {"shl rdx, cl", {0x48, 0xd3, 0xe2}},
                                       {"setz al", {0x0f, 0x94, 0xc0}},
                                       {"ret", {0xc3}}});
    CHECK(unit.flags_live == std::vector<std::uint16_t>{0, kZf, kZf, 0});
}

TEST_CASE("a register is dead before it is overwritten as a whole") {
    DriverParts parts;
    const UnitPlan unit = plan(parts, {{"mov al, 1", {0xb0, 0x01}},
                                       {"mov eax, 1", {0xb8, 0x01, 0x00, 0x00, 0x00}},
                                       {"add rax, rcx", {0x48, 0x01, 0xc8}},
                                       {"mov ecx, [rdi]", {0x8b, 0x0f}},
                                       {"ret", {0xc3}}});
    const auto live = [&](unsigned instr, Gpr reg) {
        return (unit.gprs_live[instr] & bit(reg)) != 0;
    };
    CHECK(live(0, RAX));  // in part
    CHECK_FALSE(live(1, RAX));
    CHECK(live(2, RAX));
    CHECK(live(2, RCX));
    CHECK_FALSE(live(3, RCX));
    CHECK(live(3, RDI));
    CHECK(live(4, RDI));  // the caller's
    CHECK(live(4, R15));
}

TEST_CASE("what only one side of a branch reads is live before it") {
    DriverParts parts;
    parts.code(0x100, {{"mov eax, 2", {0xb8, 0x02, 0x00, 0x00, 0x00}},
                       {"mov edx, ecx", {0x89, 0xca}},
                       {"ret", {0xc3}}});
    const std::uint64_t pc = parts.code(0, {{"cmp rdi, rsi", {0x48, 0x39, 0xf7}},
                                            {"jz to 0x100", {0x0f, 0x84, 0xf7, 0, 0, 0}},
                                            {"mov eax, 1", {0xb8, 0x01, 0x00, 0x00, 0x00}},
                                            {"mov ecx, 1", {0xb9, 0x01, 0x00, 0x00, 0x00}},
                                            {"mov edx, 1", {0xba, 0x01, 0x00, 0x00, 0x00}},
                                            {"ret", {0xc3}}});
    const UnitPlan unit = plan(parts, pc);
    REQUIRE(unit.instructions[1].target() == parts.start + 0x100);
    CHECK((unit.gprs_live[1] & bit(RAX)) == 0);
    CHECK((unit.gprs_live[1] & bit(RDX)) == 0);
    CHECK((unit.gprs_live[1] & bit(RCX)) != 0);
    CHECK(unit.flags_live[1] == kZf);
}

TEST_CASE("behind a jump to nowhere known everything is live") {
    DriverParts parts;
    const UnitPlan unit =
        plan(parts, {{"mov rax, rcx", {0x48, 0x89, 0xc8}}, {"jmp rax", {0xff, 0xe0}}});
    CHECK(unit.flags_live[1] == kArithmeticFlags);
    CHECK(unit.gprs_live[1] == kAllGprs);
}

TEST_CASE("calls carry no flags until one is found that does") {
    DriverParts parts;
    parts.code(0x100, {{"ret", {0xc3}}});
    // stc; call 0x100; jc behind it; ret
    const std::uint64_t pc = parts.code(0, {{"stc", {0xf9}},
                                            {"call 0x100", {0xe8, 0xfa, 0, 0, 0}},
                                            {"jc to the ret", {0x72, 0}},
                                            {"ret", {0xc3}}});
    Planner& planner = parts.translator.planner();
    CHECK_FALSE(planner.must_keep_flags(pc));
    CHECK(planner.must_keep_flags(pc + 1));
    // Such a call is the first of its block.
    CHECK(plan(parts, pc).instructions.size() == 1);
    planner.set_flags_cross_calls();
    planner.forget_code();
    CHECK_FALSE(planner.must_keep_flags(pc + 1));
    const UnitPlan unit = plan(parts, pc);
    REQUIRE(unit.instructions.size() >= 2);
    CHECK(unit.flags_live[1] != 0);
}

// --- Data references.

TEST_CASE("neighbours are checked at once") {
    DriverParts parts;
    const UnitPlan unit = plan(parts, {{"mov eax, [rdi + 4]", {0x8b, 0x47, 0x04}},
                                       {"mov cx, [rdi]", {0x66, 0x8b, 0x0f}},
                                       {"add [rdi + 4], edx", {0x01, 0x57, 0x04}},
                                       {"ret", {0xc3}}});
    CHECK(groups(unit) == Sizes{3, 1});
    const Item item = items<MemoryReferences>(unit)[0];
    CHECK(item.low == 0);
    CHECK(item.high == 8);
    CHECK(item.instr == 0);
    const PlannedReference* members = &unit.references[item.first_reference];
    CHECK(members[0].offset == 4);
    CHECK(members[1].offset == 0);
    CHECK(members[1].bytes == 2);
    CHECK(members[2].instr == 2);
}

TEST_CASE("what lies within a large reference is checked with it") {
    DriverParts parts;
    CHECK(groups(plan(parts, {{"movups xmm0, [rdi]", {0x0f, 0x10, 0x07}},
                              {"mov rcx, [rdi + 8]", {0x48, 0x8b, 0x4f, 0x08}},
                              {"mov rcx, [rdi + 16]", {0x48, 0x8b, 0x4f, 0x10}},
                              {"ret", {0xc3}}})) == Sizes{2, 1, 1});
}

TEST_CASE("what is too far away, or at an address not known to be near, is checked by itself") {
    DriverParts parts;
    CHECK(groups(plan(parts, {{"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
                              {"mov rcx, [rdi + 8]", {0x48, 0x8b, 0x4f, 0x08}},
                              {"ret", {0xc3}}})) == Sizes{1, 1, 1});
    parts.translator.flush();
    CHECK(groups(plan(parts, {{"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
                              {"mov rcx, [rsi]", {0x48, 0x8b, 0x0e}},
                              {"ret", {0xc3}}})) == Sizes{1, 1, 1});
    parts.translator.flush();
    CHECK(groups(plan(parts, {{"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
                              {"add rdi, 8", {0x48, 0x83, 0xc7, 0x08}},
                              {"mov rcx, [rdi]", {0x48, 0x8b, 0x0f}},
                              {"ret", {0xc3}}})) == Sizes{1, 1, 1});
    parts.translator.flush();
    CHECK(groups(plan(parts, {{"mov rdi, [rdi]", {0x48, 0x8b, 0x3f}},
                              {"mov rcx, [rdi]", {0x48, 0x8b, 0x0f}},
                              {"ret", {0xc3}}})) == Sizes{1, 1, 1});
    parts.translator.flush();
    CHECK(groups(plan(parts, {{"mov rax, [rdi + rcx * 4]", {0x48, 0x8b, 0x04, 0x8f}},
                              {"mov rdx, [rdi + rcx * 8]", {0x48, 0x8b, 0x14, 0xcf}},
                              {"ret", {0xc3}}})) == Sizes{1, 1, 1});
    parts.translator.flush();
    CHECK(groups(plan(parts, {{"mov al, [rdi]", {0x8a, 0x07}},
                              {"scasb", {0xae}},
                              {"mov al, [rdi]", {0x8a, 0x07}},
                              {"ret", {0xc3}}})) == Sizes{2, 1, 1});
    parts.translator.flush();
    // A byte of rdi is enough.
    CHECK(groups(plan(parts, {{"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
                              {"mov dil, 1", {0x40, 0xb7, 0x01}},
                              {"mov rcx, [rdi]", {0x48, 0x8b, 0x0f}},
                              {"ret", {0xc3}}})) == Sizes{1, 1, 1});
}

TEST_CASE("pushes and pops are neighbours on the stack") {
    DriverParts parts;
    const UnitPlan unit =
        plan(parts, {{"push rax", {0x50}},
                     {"sub rsp, 8", {0x48, 0x83, 0xec, 0x08}},
                     {"mov edx, [rsp + 12]", {0x8b, 0x54, 0x24, 0x0c}},
                     {"add rsp, 8", {0x48, 0x83, 0xc4, 0x08}},
                     {"pop rcx", {0x59}},
                     {"sub rsp, 0x100", {0x48, 0x81, 0xec, 0x00, 0x01, 0x00, 0x00}},
                     {"mov rdx, [rsp]", {0x48, 0x8b, 0x14, 0x24}},
                     {"add rsp, 0x100", {0x48, 0x81, 0xc4, 0x00, 0x01, 0x00, 0x00}},
                     {"jmp rcx", {0xff, 0xe1}}});
    CHECK(groups(unit) == Sizes{3, 1});
    const Item item = items<MemoryReferences>(unit)[0];
    CHECK(item.low == -8);
    CHECK(item.high == 0);
    const PlannedReference* members = &unit.references[item.first_reference];
    CHECK(members[0].offset == -8);
    CHECK(members[1].offset == -4);
    CHECK(members[2].offset == -8);
}

TEST_CASE("what is saved or restored on the stack is a series") {
    const auto series = [](DriverParts& parts, std::initializer_list<Assembled> instructions) {
        std::vector<std::pair<unsigned, unsigned>> found;
        for (const Item& item : items<MemoryReferences>(plan(parts, instructions)))
            found.emplace_back(item.reference_count, item.series_count);
        return found;
    };
    using Series = std::vector<std::pair<unsigned, unsigned>>;
    const Assembled push{"push rax", {0x50}}, pop{"pop rcx", {0x59}}, ret{"ret", {0xc3}};
    const Assembled jump{"jmp rax", {0xff, 0xe0}};
    DriverParts parts;
    CHECK(series(parts, {push, push, push, jump}) == Series{{3, 3}});
    parts.translator.flush();
    CHECK(series(parts, {pop, pop, ret}) == Series{{3, 3}});
    parts.translator.flush();
    // No more than a line.
    CHECK(series(parts, {push, push, push, push, push, push, push, push, push, push, jump}) ==
          Series{{8, 8}, {2, 2}});
    parts.translator.flush();
    // What lies within belongs to the group, and ends the series; so does a change of direction.
    CHECK(
        series(parts, {push, push, {"mov ecx, [rsp + 8]", {0x8b, 0x4c, 0x24, 0x08}}, push, jump}) ==
        Series{{3, 2}, {1, 0}});
    parts.translator.flush();
    CHECK(series(parts, {push, push, pop, pop, pop, jump}) == Series{{4, 2}, {1, 0}});
    parts.translator.flush();
    // Elsewhere it is none, nor with other sizes, nor where a line's neighbour has no other set.
    CHECK(series(parts, {{"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
                         {"mov rcx, [rdi + 8]", {0x48, 0x8b, 0x4f, 0x08}},
                         jump}) == Series{{1, 0}, {1, 0}});
    parts.translator.flush();
    CHECK(series(parts, {{"mov eax, [rsp + 8]", {0x8b, 0x44, 0x24, 0x08}},
                         {"mov rcx, [rsp + 16]", {0x48, 0x8b, 0x4c, 0x24, 0x10}},
                         jump}) == Series{{1, 0}, {1, 0}});
    DriverParts one_set({trace::kCaptureReferences, {64, 1}, {0, 0}});
    CHECK(series(one_set, {push, push, jump}) == Series{{1, 0}, {1, 0}});
}

TEST_CASE("references behind a change of a segment's base are not looked at before it") {
    DriverParts parts;
    const Assembled load{"mov eax, fs:[8]", {0x64, 0x8b, 0x04, 0x25, 8, 0, 0, 0}};
    const UnitPlan unit = plan(parts, {load,
                                       {"wrfsbase rdi", {0xf3, 0x48, 0x0f, 0xae, 0xd7}},
                                       {"cmp rdx, rsi", {0x48, 0x39, 0xf2}},
                                       load,
                                       {"setz al", {0x0f, 0x94, 0xc0}},
                                       {"ret", {0xc3}}});
    CHECK(groups(unit) == Sizes{1, 1, 1});
    CHECK(items<MemoryReferences>(unit)[1].position == 2);
    parts.translator.flush();
    CHECK(groups(plan(parts, {{"mov eax, gs:[8]", {0x65, 0x8b, 0x04, 0x25, 8, 0, 0, 0}},
                              {"wrgsbase rdi", {0xf3, 0x48, 0x0f, 0xae, 0xdf}},
                              {"mov eax, gs:[8]", {0x65, 0x8b, 0x04, 0x25, 8, 0, 0, 0}},
                              {"ret", {0xc3}}})) == Sizes{1, 1, 1});
}

TEST_CASE("a stack pointer that is not known any more ends the group") {
    DriverParts parts;
    CHECK(groups(plan(parts, {{"push rax", {0x50}},
                              {"and rsp, -16", {0x48, 0x83, 0xe4, 0xf0}},
                              {"push rcx", {0x51}},
                              {"jmp rcx", {0xff, 0xe1}}})) == Sizes{1, 1});
}

TEST_CASE("addresses known now are neighbours if they lie in one line") {
    DriverParts parts;
    // The data: 0x1038 and 0x1030, then 0x1040, in the next line.
    const UnitPlan unit =
        plan(parts, {{"mov rax, [rip to 0x1038]", {0x48, 0x8b, 0x05, 0x31, 0x10, 0, 0}},
                     {"mov rcx, [rip to 0x1030]", {0x48, 0x8b, 0x0d, 0x22, 0x10, 0, 0}},
                     {"mov rdx, [rip to 0x1040]", {0x48, 0x8b, 0x15, 0x2b, 0x10, 0, 0}},
                     {"jmp rax", {0xff, 0xe0}}});
    CHECK(groups(unit) == Sizes{2, 1});
    CHECK(static_cast<std::uint64_t>(items<MemoryReferences>(unit)[0].low) == parts.start + 0x1030);
}

TEST_CASE("no group extends over a special instruction") {
    DriverParts parts;
    const UnitPlan unit = plan(parts, {{"mov rax, [rdx]", {0x48, 0x8b, 0x02}},
                                       {"rep stosb", {0xf3, 0xaa}},
                                       {"mov rcx, [rdx]", {0x48, 0x8b, 0x0a}},
                                       {"jmp rax", {0xff, 0xe0}}});
    CHECK(groups(unit) == Sizes{1, 1});
    CHECK(items<Specials>(unit).size() == 1);
}

TEST_CASE("no group extends over a fetch") {
    DriverParts parts;
    const std::uint64_t pc =
        parts.code(0x38, {{"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
                          {"mov rcx, 0x12345", {0x48, 0xc7, 0xc1, 0x45, 0x23, 0x01, 0x00}},
                          {"mov rcx, [rdi + 8]", {0x48, 0x8b, 0x4f, 0x08}},
                          {"jmp rax", {0xff, 0xe0}}});
    CHECK(groups(plan(parts, pc)) == Sizes{1, 1});
}

TEST_CASE("code is fetched behind each data reference, a part of a line at a time") {
    for (const std::uint32_t filter_sets : {0U, 64U}) {
        trace::Spec spec{};
        spec.captures = trace::kCaptureReferences | trace::kCaptureCode;
        spec.data = {filter_sets ? 64U : 0U, filter_sets};
        spec.code_line = 64;
        DriverParts parts(spec);
        const std::uint64_t pc =
            parts.code(0x38, {{"nop", {0x90}},
                              {"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
                              {"mov rcx, 0x12345", {0x48, 0xc7, 0xc1, 0x45, 0x23, 0x01, 0x00}},
                              {"jmp rax", {0xff, 0xe0}}});
        const UnitPlan unit = plan(parts, pc);
        CHECK(groups(unit) == Sizes{1, 1, 1, 1});
        REQUIRE(unit.references.size() == 4);
        const auto is_fetch = [&](unsigned i, unsigned instr, std::uint64_t at, unsigned bytes) {
            const PlannedReference& reference = unit.references[i];
            return reference.number == PlannedReference::kCode && reference.instr == instr &&
                   static_cast<std::uint64_t>(reference.offset) == parts.start + at &&
                   reference.bytes == bytes && is_constant(unit.form_of(reference));
        };
        CHECK(is_fetch(0, 0, 0x38, 4));
        CHECK(unit.references[1].number == 0);
        CHECK(is_fetch(2, 2, 0x3c, 4));
        CHECK(is_fetch(3, 2, 0x40, 5));
    }
}

TEST_CASE("fetches of both kinds are in the order of their instructions, whatever their lines") {
    for (const std::uint32_t fetch_line : {16U, 32U, 64U, 128U}) {
        trace::Spec spec{};
        spec.captures = trace::kCaptureReferences | trace::kCaptureCode | trace::kCaptureFetches;
        spec.code_line = 64;
        spec.fetch = {fetch_line, 64};
        DriverParts parts(spec);
        const Assembled longest{"mov rcx, 0x12345", {0x48, 0xc7, 0xc1, 0x45, 0x23, 0x01, 0x00}};
        const UnitPlan unit = plan(parts, parts.code(0x20, {longest,
                                                            longest,
                                                            longest,
                                                            longest,
                                                            longest,
                                                            {"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
                                                            {"jmp rax", {0xff, 0xe0}}}));
        CHECK(std::is_sorted(unit.items.begin(), unit.items.end(),
                             [](const Item& a, const Item& b) { return a.position < b.position; }));
        CHECK(items<MemoryReferences>(unit).size() == 4);  // two lines, a reference, the jump
        const std::size_t crossed = fetch_line == 16 ? 2 : fetch_line == 128 ? 0 : 1;
        CHECK(items<Fetches>(unit).size() == crossed);
    }
}

TEST_CASE("a block is recorded before its fetches and references") {
    trace::Spec spec{};
    spec.captures = trace::kCaptureReferences | trace::kCaptureFetches | trace::kCaptureBlocks;
    spec.fetch = {64, 64};
    DriverParts parts(spec);
    const UnitPlan unit = plan(parts, parts.code(0x3c, {{"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
                                                        {"mov rcx, [rdi]", {0x48, 0x8b, 0x0f}},
                                                        {"jmp rax", {0xff, 0xe0}}}));
    std::vector<unsigned> order;
    for (const Item& item : unit.items) order.push_back(item.capture);
    const unsigned block = Captures::kNumber<BlockRecords>, fetch = Captures::kNumber<Fetches>,
                   reference = Captures::kNumber<MemoryReferences>;
    CHECK(order == std::vector<unsigned>{block, fetch, reference, fetch, reference});
    CHECK(unit.items[0].position == unit.blocks[0].first);
}

TEST_CASE("without a filter every reference stands for itself") {
    DriverParts parts({trace::kCaptureReferences, {64, 0}, {0, 0}});
    CHECK(groups(plan(parts, {{"mov rax, [rdi]", {0x48, 0x8b, 0x07}},
                              {"mov rcx, [rdi]", {0x48, 0x8b, 0x0f}},
                              {"jmp rax", {0xff, 0xe0}}})) == Sizes{1, 1});
}

TEST_CASE("a check goes to where the flags are dead, unless an address changes in between") {
    DriverParts parts;
    const UnitPlan early = plan(parts, {{"cmp rax, rcx", {0x48, 0x39, 0xc8}},
                                        {"mov rdx, [rdi]", {0x48, 0x8b, 0x17}},
                                        {"setz al", {0x0f, 0x94, 0xc0}},
                                        {"jmp rdx", {0xff, 0xe2}}});
    const Item before = items<MemoryReferences>(early)[0];
    CHECK(before.instr == 1);
    CHECK(before.position == 0);
    CHECK_FALSE(before.flags_live);
    parts.translator.flush();
    const UnitPlan late = plan(parts, {{"sub rdi, rcx", {0x48, 0x29, 0xcf}},
                                       {"mov rdx, [rdi]", {0x48, 0x8b, 0x17}},
                                       {"setz al", {0x0f, 0x94, 0xc0}},
                                       {"jmp rdx", {0xff, 0xe2}}});
    const Item there = items<MemoryReferences>(late)[0];
    CHECK(there.position == 1);
    CHECK(there.flags_live);
}

TEST_CASE("checks stay in the order of their references") {
    DriverParts parts;
    const UnitPlan unit = plan(parts, {{"cmp rax, rcx", {0x48, 0x39, 0xc8}},
                                       {"mov rdx, [rdi]", {0x48, 0x8b, 0x17}},
                                       {"lea rdi, [rdi + 8]", {0x48, 0x8d, 0x7f, 0x08}},
                                       {"mov rdx, [rdi]", {0x48, 0x8b, 0x17}},
                                       {"mov rdx, [rsi]", {0x48, 0x8b, 0x16}},
                                       {"setz al", {0x0f, 0x94, 0xc0}},
                                       {"jmp rdx", {0xff, 0xe2}}});
    unsigned position = 0;
    for (const Item& item : items<MemoryReferences>(unit)) {
        CHECK(item.position >= position);
        position = item.position;
    }
    CHECK(groups(unit) == Sizes{1, 1, 1});
}

TEST_CASE("the counter goes to where the flags are dead") {
    DriverParts parts;
    const UnitPlan unit = plan(parts, {{"setz al", {0x0f, 0x94, 0xc0}},
                                       {"cmp rax, rcx", {0x48, 0x39, 0xc8}},
                                       {"mov rdx, rcx", {0x48, 0x89, 0xca}},
                                       {"setz al", {0x0f, 0x94, 0xc0}},
                                       {"jmp rdx", {0xff, 0xe2}}});
    const std::vector<Item> counts = items<BlockIncrements>(unit);
    REQUIRE(counts.size() == 1);
    CHECK(counts[0].position == 1);
    CHECK_FALSE(counts[0].flags_live);
}

TEST_CASE("blocks that a short loop of the unit repeats are told apart") {
    const auto repeated = [](unsigned more) {
        DriverParts parts;
        std::vector<std::uint8_t> code{0x31, 0xc0,   // xor eax, eax
                                       0x74, 0x70,   // jz behind the end
                                       0x01, 0xc8,   // head: add eax, ecx
                                       0x78, 0x70};  // js behind the end
        for (unsigned i = 0; i < more; ++i) code.insert(code.end(), {0xff, 0xc2});  // inc edx
        const auto back = static_cast<std::uint8_t>(4 - static_cast<int>(code.size() + 2));
        code.insert(code.end(), {0x75, back, 0xc3});  // jnz head; ret
        std::vector<bool> found;
        for (const PlannedBlock& block : plan(parts, parts.code(0, {{"the above", code}})).blocks)
            found.push_back(block.in_short_loop);
        return found;
    };
    CHECK(repeated(1) == std::vector<bool>{false, true, true, false});
    CHECK(repeated(29) == std::vector<bool>{false, true, true, false});
    CHECK(repeated(30) == std::vector<bool>{false, false, false, false});
}

TEST_CASE("nothing is planned for a run that captures nothing") {
    DriverParts parts({0, {0, 0}, {0, 0}});
    CHECK(plan(parts, {{"mov rax, [rdi]", {0x48, 0x8b, 0x07}}, {"jmp rax", {0xff, 0xe0}}})
              .items.empty());
}

// --- Calls.

TEST_CASE("a call is recorded behind its references, before it is executed") {
    DriverParts parts({trace::kCaptureCalls | trace::kCaptureReferences, {64, 64}, {}});
    const UnitPlan unit =
        plan(parts, {{"mov rax, rcx", {0x48, 0x89, 0xc8}}, {"call [rdi]", {0xff, 0x17}}});
    REQUIRE(!unit.items.empty());
    CHECK(unit.items.back().capture == Captures::kNumber<Calls>);
    CHECK(unit.items.back().position == 1);
    CHECK(items<MemoryReferences>(unit).size() == 2);
}

TEST_CASE("what sets the stack pointer is recorded, unless it allocates memory on the stack") {
    DriverParts parts({trace::kCaptureCalls, {}, {}});
    const auto recorded_behind = [](const UnitPlan& unit) {
        std::vector<unsigned> instructions;
        for (const Item& item : items<Calls>(unit))
            if (item.is_behind()) instructions.push_back(item.instr);
        return instructions;
    };
    const UnitPlan jump = plan(parts, {{"mov rdx, [rdi]", {0x48, 0x8b, 0x17}},
                                       {"mov rsp, rdx", {0x48, 0x89, 0xd4}},
                                       {"jmp rax", {0xff, 0xe0}}});
    CHECK(recorded_behind(jump) == std::vector<unsigned>{1});
    const UnitPlan allocation = plan(parts, {{"mov rax, rsp", {0x48, 0x89, 0xe0}},
                                             {"sub rax, rcx", {0x48, 0x29, 0xc8}},
                                             {"mov rsp, rax", {0x48, 0x89, 0xc4}},
                                             {"jmp rdx", {0xff, 0xe2}}});
    CHECK(recorded_behind(allocation).empty());
    const UnitPlan end = plan(parts, {{"lea rax, [rsp + 8]", {0x48, 0x8d, 0x44, 0x24, 0x08}},
                                      {"mov rax, rbx", {0x48, 0x89, 0xd8}},
                                      {"mov rsp, rax", {0x48, 0x89, 0xc4}},
                                      {"ret", {0xc3}}});
    CHECK(recorded_behind(end) == std::vector<unsigned>{2});
}

TEST_CASE("references behind a change of the stack pointer are not recorded before it") {
    DriverParts parts({trace::kCaptureCalls | trace::kCaptureReferences, {64, 64}, {}});
    const UnitPlan unit = plan(parts, {{"mov rsp, rdi", {0x48, 0x89, 0xfc}},
                                       {"add rax, rcx", {0x48, 0x01, 0xc8}},
                                       {"mov rdx, [rsi]", {0x48, 0x8b, 0x16}},
                                       {"jz to the mov", {0x74, 0xfb}}});
    const std::vector<Item> data = items<MemoryReferences>(unit);
    REQUIRE(data.size() == 1);
    CHECK(data[0].position >= 1);
}

// --- Fetches.

TEST_CASE("an instruction fetches a line that the one before has not") {
    DriverParts parts;
    // From 0x36 on: 7 + 7 bytes, so that the second begins in one line and ends in the next; then
    // one in that line.
    const std::uint64_t pc =
        parts.code(0x36, {{"mov rax, 0x12345", {0x48, 0xc7, 0xc0, 0x45, 0x23, 0x01, 0x00}},
                          {"mov rcx, 0x12345", {0x48, 0xc7, 0xc1, 0x45, 0x23, 0x01, 0x00}},
                          {"mov rdx, 0x12345", {0x48, 0xc7, 0xc2, 0x45, 0x23, 0x01, 0x00}},
                          {"jmp rax", {0xff, 0xe0}}});
    const std::vector<Item> fetches = items<Fetches>(plan(parts, pc));
    REQUIRE(fetches.size() == 1);
    CHECK(fetches[0].instr == 1);
}

TEST_CASE("an instruction at the beginning of a line fetches it") {
    DriverParts parts;
    const std::uint64_t pc =
        parts.code(0x39, {{"mov rax, 0x12345", {0x48, 0xc7, 0xc0, 0x45, 0x23, 0x01, 0x00}},
                          {"mov rcx, 0x12345", {0x48, 0xc7, 0xc1, 0x45, 0x23, 0x01, 0x00}},
                          {"jmp rax", {0xff, 0xe0}}});
    const std::vector<Item> fetches = items<Fetches>(plan(parts, pc));
    REQUIRE(fetches.size() == 1);
    CHECK(fetches[0].instr == 1);
}

// --- Units.

TEST_CASE("a unit goes on where the program probably does") {
    DriverParts parts;
    parts.code(0x80, {{"nop", {0x90}}, {"jmp rax", {0xff, 0xe0}}});
    const std::uint64_t pc =
        parts.code(0, {{"jz to 0x40", {0x74, 0x3e}}, {"call 0x80", {0xe8, 0x79, 0, 0, 0}}});
    const UnitPlan unit = plan(parts, pc);
    REQUIRE(unit.blocks.size() == 3);
    CHECK(unit.blocks[1].pc == pc + 2);
    CHECK(unit.blocks[2].pc == parts.start + 0x80);
    CHECK(unit.blocks[0].chained);
    CHECK(unit.blocks[0].end_pc == pc + 2);
    // The second lies in the first one's line, the third does not.
    CHECK(unit.blocks[1].previous_fetched);
    CHECK_FALSE(unit.blocks[2].previous_fetched);
    CHECK_FALSE(unit.blocks[2].chained);
}

TEST_CASE("a unit ends before code that has been translated, its own and others'") {
    DriverParts parts;
    const UnitPlan loop =
        plan(parts, {{"dec rax", {0x48, 0xff, 0xc8}}, {"jmp to the dec", {0xeb, 0xfb}}});
    CHECK(loop.blocks.size() == 1);
    const std::uint64_t other = parts.code(0x40, {{"nop", {0x90}}, {"jmp rax", {0xff, 0xe0}}});
    REQUIRE(parts.translator.translate(other, kCollecting, false) != nullptr);
    const UnitPlan unit = plan(
        parts, parts.code(0x3c, {{"mov eax, ecx", {0x89, 0xc8}}, {"jz to 0x50", {0x74, 0x10}}}));
    CHECK(unit.blocks.size() == 1);
}

TEST_CASE("a unit ends where code does") {
    DriverParts parts;
    UnitPlan unit;
    parts.code(DriverParts::kCodeBytes - 2, {{"mov eax, ecx", {0x89, 0xc8}}});
    REQUIRE(parts.translator.planner().plan(parts.start + DriverParts::kCodeBytes - 2, kCollecting,
                                            false, unit));
    CHECK(unit.instructions.size() == 1);
    CHECK_FALSE(parts.translator.planner().plan(parts.start + DriverParts::kCodeBytes, kCollecting,
                                                false, unit));
    parts.code(0, {{"invalid", {0x06}}});
    CHECK_FALSE(parts.translator.planner().plan(parts.start, kCollecting, false, unit));
}

}  // namespace unit_plan_test
