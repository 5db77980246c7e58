// The features of made-up processors that a program is shown.
#include "framework/driver/native/processor/shown_processor.h"

#include <Zydis/Zydis.h>
#include <doctest/doctest.h>
#include <string>
#include <vector>

namespace shown_processor_test {

using namespace assay::native;
using assay::trace::CpuLevel;

namespace {

constexpr std::uint32_t kExtended = kExtendedLeaves;

struct Leaf {
    std::uint32_t leaf, subleaf;
    CpuidAnswer answer;
};

// A processor with AVX-512 and protection keys; `more` comes first.
Cpuid processor(std::vector<Leaf> more = {}) {
    return [more = std::move(more)](std::uint32_t leaf, std::uint32_t subleaf) -> CpuidAnswer {
        for (const Leaf& one : more)
            if (one.leaf == leaf && one.subleaf == subleaf) return one.answer;
        if (leaf == 0) return {0x29, 1, 2, 3};
        if (leaf == 1) return {0xc0662, 0, 0x7ffafbff, 0xbfebfbff};
        if (leaf == kExtended) return {kExtended + 0x21, 0, 0, 0};
        if (leaf == kExtended + 1) return {0, 0, 0x121, 0x2c100800};
        if (leaf == 7 && subleaf == 0) return {2, 0xd19f27eb, 0x1840075e, 0x2c000010};
        if (leaf == 7 && subleaf == 1) return {1U << 4 | 1U << 5 | 1U << 10, 0, 0, 1U << 14};
        if (leaf != 0xd) return {};
        switch (subleaf) {
            case 0:
                return {0x2e7, 2696, 2696, 0};
            case 1:
                return {0xf, 2456, 0x1800, 0};  // with component 11, which IA32_XSS has enabled
            case 2:
                return {256, 576, 0, 0};
            case 5:
                return {64, 1088, 0, 0};
            case 6:
                return {512, 1152, 0, 0};
            case 7:
                return {1024, 1664, 0, 0};
            case 9:
                return {8, 2688, 0, 0};
            case 11:
                return {16, 0, 1, 0};
            default:
                return {};
        }
    };
}

constexpr Components kXcr0 = 0x2e7, kAmx = kTileState, kApx = kApxState;

ShownProcessor shown(std::vector<Leaf> more, Components xcr0, std::string_view hidden = {},
                     CpuLevel level = CpuLevel::kHost) {
    Hiding hiding;
    REQUIRE(hiding.add(hidden).empty());
    return {{.cpuid = processor(std::move(more)),
             .xcr0 = xcr0,
             .hwcap = 0xbfebfbff,
             .hwcap2 = 2,
             .signal_stack = 3632},
            level,
            hiding};
}

Form form_of(ZydisMnemonic mnemonic, ProcessorUse use,
             ProcessorExtension extension = ProcessorExtension::kNone) {
    Form form;
    form.mnemonic = mnemonic;
    form.processor_use = use;
    form.extension = extension;
    return form;
}

}  // namespace

TEST_CASE("a processor that the driver knows is shown as it is") {
    const Cpuid real = processor();
    const ShownProcessor host = shown({}, kXcr0);
    CHECK_FALSE(host.emulates_identification());
    CHECK_FALSE(host.limits_state());
    CHECK(host.xcr0() == kXcr0);
    for (const std::uint32_t leaf : {0U, 7U, 0xdU, kExtended})
        for (std::uint32_t subleaf = 0; subleaf < 12; ++subleaf)
            CHECK(host.cpuid(leaf, subleaf) == real(leaf, subleaf));
    CHECK(host.frame_components() == kXcr0);
    CHECK(host.frame_bytes() == 2696);
    CHECK(host.saved_components() == 0xe7);
    CHECK(host.saving() == kSavedIfChanged);
    CHECK(host.hwcap() == 0xbfebfbff);
    CHECK(host.hwcap2() == 2);
    CHECK(host.signal_stack() == 3632);
    CHECK(host.has_protection_keys());
}

TEST_CASE("MPX is hidden, and with it the room for its registers") {
    const std::vector<Leaf> mpx{{7, 0, {0, 1U << 14 | 1U << 5, 0, 0}},
                                {0xd, 0, {0x1f, 1088, 1088, 0}},
                                {0xd, 1, {0xf, 960, 0x100, 0}},
                                {0xd, 3, {64, 960, 0, 0}},
                                {0xd, 4, {64, 1024, 0, 0}}};
    const ShownProcessor host = shown(mpx, 0x1f);
    CHECK(host.emulates_identification());
    CHECK(host.limits_state());
    CHECK(host.xcr0() == 7);
    CHECK(host.cpuid(7, 0) == CpuidAnswer{0, 1U << 5, 0, 0});
    CHECK(host.cpuid(0xd, 0) == CpuidAnswer{7, 832, 832, 0});
    CHECK(host.cpuid(0xd, 1) == CpuidAnswer{0xf, 832, 0x100, 0});
    CHECK(host.cpuid(0xd, 3) == CpuidAnswer{});
    CHECK(host.cpuid(0xd, 4) == CpuidAnswer{});
    CHECK(host.frame_bytes() == 832);
}

TEST_CASE("APX is hidden, and what may be its instructions is not taken for none") {
    const ShownProcessor host = shown({{7, 1, {1U << 4, 0, 0, 1U << 21}},
                                       {0xd, 0, {0xa02e7, 2816, 2816, 0}},
                                       {0xd, 19, {128, 960, 0, 0}},
                                       {0x29, 0, {0, 1, 0, 0}}},
                                      kXcr0 | kApx);
    CHECK(host.xcr0() == kXcr0);
    CHECK(host.limits_state());
    CHECK(host.cpuid(7, 1) == CpuidAnswer{1U << 4, 0, 0, 0});
    CHECK(host.cpuid(0xd, 0) == CpuidAnswer{0x2e7, 2696, 2696, 0});
    CHECK(host.cpuid(0xd, 19) == CpuidAnswer{});
    CHECK(host.cpuid(0xd, 11) == processor()(0xd, 11));
    CHECK(host.cpuid(0x29, 0) == CpuidAnswer{});
    CHECK(host.cpuid(0x29, 3) == CpuidAnswer{});
}

TEST_CASE("AMX is hidden, and the delayed state with it") {
    const ShownProcessor host =
        shown({{7, 0, {1, 0, 0x18, 1U << 22 | 1U << 24 | 1U << 25 | 1U << 4}},
               {0xd, 0, {0x602e7, 2696, 11008, 0}},
               {0xd, 1, {0x1f, 2456, 0x1800, 0}},
               {0xd, 17, {64, 2752, 2, 0}},
               {0xd, 18, {8192, 2816, 6, 0}},
               {0x1d, 1, {0x4000400, 0x80040, 16, 0}}},
              kXcr0 | kAmx);
    CHECK(host.cpuid(7, 0) == CpuidAnswer{1, 0, 0x18, 1U << 4});
    CHECK(host.cpuid(0x1d, 1) == CpuidAnswer{});
    CHECK(host.cpuid(0xd, 0) == CpuidAnswer{0x2e7, 2696, 2696, 0});
    CHECK(host.cpuid(0xd, 1) == CpuidAnswer{0xf, 2440, 0x1800, 0});
    CHECK(host.frame_bytes() == 2696);
}

TEST_CASE("LWP is hidden, whose component no kernel enables") {
    const ShownProcessor host = shown({{kExtended + 1, 0, {0, 0, 1U << 15 | 1, 0}},
                                       {0xd, 0, {7, 832, 960, 1U << 30}},
                                       {0xd, 62, {128, 832, 0, 0}}},
                                      7);
    CHECK(host.emulates_identification());
    CHECK_FALSE(host.limits_state());
    CHECK(host.cpuid(kExtended + 1, 0) == CpuidAnswer{0, 0, 1, 0});
    CHECK(host.cpuid(0xd, 0) == CpuidAnswer{7, 832, 832, 0});
    CHECK(host.cpuid(0xd, 62) == CpuidAnswer{});
}

TEST_CASE("instructions that are newer than the decoder are hidden") {
    for (const CpuidAnswer& answer :
         {CpuidAnswer{1, 0, 0, 0} /* SHA512 */, CpuidAnswer{1U << 23, 0, 0, 0} /* AVX-IFMA */,
          CpuidAnswer{0, 0, 0, 1U << 4} /* AVX-VNNI-INT8 */, CpuidAnswer{0, 0, 0, 1U << 19}}) {
        const ShownProcessor host = shown({{7, 1, answer}}, kXcr0);
        CHECK(host.emulates_identification());
        CHECK(host.cpuid(7, 1) == CpuidAnswer{});
    }
    CHECK(shown({}, Components{1} << 20 | 3).xcr0() == 3);
}

// SDM volume 2, CPUID: they repeat the highest basic one.
TEST_CASE("leaves beyond the last one say no more than the last one") {
    const ShownProcessor old =
        shown({{0, 0, {0x16, 1, 2, 3}}, {0x24, 0, {1, 2, 3, 4}}, {0x1d, 0, {1, 2, 3, 4}}}, kXcr0);
    CHECK_FALSE(old.emulates_identification());
    CHECK(old.cpuid(0x24, 0) == CpuidAnswer{1, 2, 3, 4});
    const CpuidAnswer mpx{0, 1U << 14 | 1U << 5, 0, 0};
    const ShownProcessor repeating =
        shown({{0, 0, {7, 1, 2, 3}}, {7, 0, mpx}, {0x24, 0, mpx}}, kXcr0);
    CHECK(repeating.cpuid(0x24, 0) == CpuidAnswer{0, 1U << 5, 0, 0});
}

TEST_CASE("hiding a feature hides what needs it") {
    const std::uint32_t kAvxBits = 1U << 28 | 1U << 12 | 1U << 29;
    const ShownProcessor avx = shown({}, kXcr0, "avx");
    CHECK(avx.xcr0() == 0x203);
    CHECK((avx.cpuid(1, 0).ecx & kAvxBits) == 0);
    CHECK(avx.cpuid(7, 0).ebx == (0xd19f27eb & ~0xd0230020));
    CHECK(avx.cpuid(0xd, 0) == CpuidAnswer{0x203, 2696, 2696, 0});
    CHECK(avx.cpuid(0xd, 1).ebx == 576 + 8);
    CHECK(avx.missing().empty());
    CHECK(avx.saved_components() == 3);

    const ShownProcessor xsave = shown({}, kXcr0, "xsave");
    CHECK(xsave.xcr0() == 3);
    CHECK((xsave.cpuid(1, 0).ecx & (kAvxBits | 3U << 26)) == 0);
    for (std::uint32_t subleaf = 0; subleaf < 12; ++subleaf)
        CHECK(xsave.cpuid(0xd, subleaf) == CpuidAnswer{});
    CHECK(xsave.saving() == kSavedByFxsave);
    CHECK(xsave.frame_bytes() == 512);
    CHECK(xsave.signal_stack() == 1440);
    CHECK_FALSE(xsave.has_protection_keys());
    CHECK((xsave.cpuid(7, 0).ecx & 3U << 3) == 0);

    CHECK(shown({}, kXcr0, "xsaveopt").saving() == kSavedPlainly);
    const ShownProcessor xsavec = shown({}, kXcr0, "xsavec");
    CHECK(xsavec.cpuid(0xd, 1) == CpuidAnswer{5, 0, 0, 0});
    CHECK(xsavec.cpuid(0xd, 11) == CpuidAnswer{});
    CHECK_FALSE(xsavec.limits_state());

    const ShownProcessor pkru = shown({}, kXcr0, "pkru");
    CHECK_FALSE(pkru.has_protection_keys());
    CHECK(pkru.frame_bytes() == 2688);
    CHECK((pkru.cpuid(7, 0).ecx & 3U << 3) == 0);

    const ShownProcessor bases = shown({}, kXcr0, "fsgsbase");
    CHECK(bases.hwcap2() == 0);
    CHECK_FALSE(bases.allows_base_instructions());
    Form form;
    form.sets_base = true;
    CHECK_FALSE(bases.executes(form));
    CHECK(shown({}, kXcr0).executes(form));
}

// A component in the middle, as MPX is.
TEST_CASE("hiding one component leaves the others where they are") {
    const ShownProcessor host = shown({}, kXcr0, "zmm_hi256,bmi2");
    CHECK(host.xcr0() == 0x2a7);
    CHECK(host.cpuid(0xd, 0) == CpuidAnswer{0x2a7, 2696, 2696, 0});
    CHECK(host.cpuid(0xd, 1).ebx == 576 + 256 + 64 + 1024 + 8);
    CHECK(host.cpuid(0xd, 7) == processor()(0xd, 7));
    CHECK((host.cpuid(7, 0).ebx & 0xd0230100) == 0);
}

TEST_CASE("names of features that are unknown, or that every processor has") {
    Hiding hiding;
    CHECK(hiding.add("avx512,neon,avx") == "neon");
    CHECK(hiding.add("sse2") == "sse2");
    CHECK(hiding.add("").empty());
    CHECK(Hiding::names().find("pkru") != std::string::npos);
}

TEST_CASE("what signal stacks need, of kernels that say it and that do not") {
    const auto signal_stack = [](std::uint64_t of_kernel) {
        return ShownProcessor(
                   {.cpuid = processor(), .xcr0 = kXcr0 | kAmx, .signal_stack = of_kernel},
                   CpuLevel::kHost)
            .signal_stack();
    };
    CHECK(signal_stack(3632) == 3632);
    CHECK(signal_stack(3312) == 3312);  // of another configuration of the kernel
    CHECK(signal_stack(0) == 0);
}

TEST_CASE("an instruction that is not known has a name where the processor may know it") {
    const auto is_in = [](const char* word, const char* text) {
        return text != nullptr && std::string(text).find(word) != std::string::npos;
    };
    const std::uint8_t rex2[] = {0x66, 0xd5, 0x18, 0x89, 0xc0}, map4[] = {0x62, 0xf4, 0x7c, 0x18},
                       other[] = {0x62, 0xf5, 0x7c, 0x18}, cut[] = {0x62},
                       prefixes[] = {0x66, 0xf3};
    const ShownProcessor apx = shown({}, kXcr0 | kApx), amx = shown({}, kXcr0 | kAmx),
                         plain = shown({}, kXcr0), newer = shown({{7, 1, {1, 0, 0, 0}}}, kXcr0);
    CHECK(is_in("REX2", apx.newer_instruction(rex2)));
    CHECK(is_in("APX", apx.newer_instruction(map4)));
    // Without APX, or a kernel that has enabled it, they are none, whatever else is newer.
    CHECK(newer.newer_instruction(rex2) == nullptr);
    CHECK(newer.newer_instruction(map4) == nullptr);
    for (const std::span<const std::uint8_t> code :
         {std::span<const std::uint8_t>(other), std::span<const std::uint8_t>(cut),
          std::span<const std::uint8_t>(prefixes)}) {
        CHECK(is_in("newer", newer.newer_instruction(code)));
        CHECK(amx.newer_instruction(code) == nullptr);
        CHECK(plain.newer_instruction(code) == nullptr);
    }
}

TEST_CASE("instructions that the processor lacks are none") {
    const Form tiles =
        form_of(ZYDIS_MNEMONIC_LDTILECFG, ProcessorUse::kNone, ProcessorExtension::kTiles);
    const Form transaction =
        form_of(ZYDIS_MNEMONIC_XBEGIN, ProcessorUse::kNone, ProcessorExtension::kTransactions);
    const Form xsave = form_of(ZYDIS_MNEMONIC_XSAVE, ProcessorUse::kSaveState);
    const Form xgetbv = form_of(ZYDIS_MNEMONIC_XGETBV, ProcessorUse::kIdentify);
    const Form cpuid = form_of(ZYDIS_MNEMONIC_CPUID, ProcessorUse::kIdentify);
    CHECK(shown({}, kXcr0 | kAmx).executes(tiles));
    CHECK_FALSE(shown({}, kXcr0).executes(tiles));
    CHECK_FALSE(shown({}, kXcr0 | 1U << 17).executes(tiles));  // the shapes only
    CHECK_FALSE(shown({}, kXcr0).executes(transaction));
    const Leaf rtm{7, 0, {0, 1U << 11, 0, 0}};
    CHECK(shown({rtm}, kXcr0).executes(transaction));
    CHECK_FALSE(shown({{0, 0, {6, 1, 2, 3}}, rtm}, kXcr0).executes(transaction));
    for (const auto level : {CpuLevel::kV2, CpuLevel::kV3, CpuLevel::kV4}) {
        const ShownProcessor at = shown({rtm}, kXcr0 | kAmx, "", level);
        CHECK_FALSE(at.executes(tiles));
        CHECK_FALSE(at.executes(transaction));
        CHECK(at.executes(cpuid));
        CHECK(at.executes(xsave) == (level >= CpuLevel::kV3));
        CHECK(at.executes(xgetbv) == (level >= CpuLevel::kV3));
    }
    CHECK_FALSE(shown({}, kXcr0, "xsave").executes(xsave));
    CHECK(shown({}, kXcr0).executes(xsave));
}

}  // namespace shown_processor_test
