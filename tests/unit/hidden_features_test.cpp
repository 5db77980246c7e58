// What of a processor's features a program is not told of: made-up processors.
#include "framework/driver/native/processor/hidden_features.h"

#include <doctest/doctest.h>
#include <cstring>
#include <string>
#include <vector>

namespace hidden_features_test {

using namespace assay::native;

namespace {

constexpr std::uint32_t kExtended = 0x80000000;

// As far as AVX-512 and protection keys; `more` has what else the processor has.
struct Leaf {
    std::uint32_t leaf, subleaf;
    CpuidAnswer answer;
};
std::vector<Leaf> more;

CpuidAnswer processor(std::uint32_t leaf, std::uint32_t subleaf) {
    for (const Leaf& one : more)
        if (one.leaf == leaf && one.subleaf == subleaf) return one.answer;
    if (leaf == 0) return {0x29, 1, 2, 3};
    if (leaf == kExtended) return {kExtended + 0x21, 0, 0, 0};
    if (leaf == 7 && subleaf == 0) return {2, 0xd19f27eb, 0x1840075e, 0x2c000010};
    if (leaf == 7 && subleaf == 1) return {1U << 4 | 1U << 5 | 1U << 10, 0, 0, 1U << 14};
    if (leaf == 0xd && subleaf == 0) return {0x2e7, 2696, 2696, 0};
    if (leaf == 0xd && subleaf == 9) return {8, 2688, 0, 0};
    if (leaf == 0xd && subleaf == 11) return {16, 0, 1, 0};  // of IA32_XSS
    return {};
}

constexpr std::uint64_t kXcr0 = 0x2e7, kAmx = 0x60000, kApx = 1U << 19;

struct More {
    explicit More(std::vector<Leaf> leaves) { more = std::move(leaves); }
    More(const More&) = delete;
    More& operator=(const More&) = delete;
    ~More() { more.clear(); }
};

bool operator==(const CpuidAnswer& a, const CpuidAnswer& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

TEST_CASE("a processor that the driver knows is shown as it is") {
    CHECK(hidden_features(processor, kXcr0) == Hidden::kNothing);
    CHECK(hidden_features(processor, 3) == Hidden::kNothing);
    CHECK(shown_xcr0(kXcr0) == kXcr0);
    for (const std::uint32_t leaf : {0U, 7U, 0xdU, kExtended})
        for (std::uint32_t subleaf = 0; subleaf < 12; ++subleaf)
            CHECK(shown_cpuid(leaf, subleaf, processor) == processor(leaf, subleaf));
}

TEST_CASE("APX is hidden, and what may be its instructions is not taken for none") {
    const More apx({{7, 1, {1U << 4, 0, 0, 1U << 21}},
                    {0xd, 0, {0xa02e7, 2696, 2696, 0}},
                    {0xd, 19, {128, 960, 0, 0}},
                    {0x29, 0, {0, 1, 0, 0}}});
    CHECK(hidden_features(processor, kXcr0 | kApx) == Hidden::kInstructions);
    CHECK(shown_xcr0(kXcr0 | kApx) == kXcr0);
    CHECK(shown_cpuid(7, 1, processor) == CpuidAnswer{1U << 4, 0, 0, 0});
    // xsave writes the registers nevertheless.
    CHECK(shown_cpuid(0xd, 0, processor) == CpuidAnswer{0x2e7, 2696, 2696, 0});
    CHECK(shown_cpuid(0xd, 19, processor) == CpuidAnswer{});
    CHECK(shown_cpuid(0xd, 11, processor) == processor(0xd, 11));
    CHECK(shown_cpuid(0x29, 0, processor) == CpuidAnswer{});
}

TEST_CASE("state that the driver does not keep is hidden; the decoder knows its instructions") {
    {
        const More amx({{7, 0, {1, 0, 0, 1U << 22 | 1U << 24 | 1U << 25 | 1U << 4}},
                        {0x1d, 1, {0x4000400, 0x80040, 16, 0}}});
        CHECK(hidden_features(processor, kXcr0 | kAmx) == Hidden::kState);
        CHECK(shown_cpuid(7, 0, processor) == CpuidAnswer{1, 0, 0, 1U << 4});
        CHECK(shown_cpuid(0x1d, 1, processor) == CpuidAnswer{});
    }
    {
        const More mpx({{7, 0, {0, 1U << 14 | 1U << 5, 0, 0}}});
        CHECK(hidden_features(processor, 0x1f) == Hidden::kState);
        CHECK(shown_cpuid(7, 0, processor) == CpuidAnswer{0, 1U << 5, 0, 0});
    }
    const More lwp({{kExtended + 1, 0, {0, 0, 1U << 15 | 1, 0}}});
    CHECK(hidden_features(processor, 7) == Hidden::kState);
    CHECK(shown_cpuid(kExtended + 1, 0, processor) == CpuidAnswer{0, 0, 1, 0});
}

TEST_CASE("instructions that are newer than the decoder are hidden") {
    for (const CpuidAnswer& answer :
         {CpuidAnswer{1, 0, 0, 0} /* SHA512 */, CpuidAnswer{1U << 23, 0, 0, 0} /* AVX-IFMA */,
          CpuidAnswer{0, 0, 0, 1U << 4} /* AVX-VNNI-INT8 */, CpuidAnswer{0, 0, 0, 1U << 19}}) {
        const More newer({{7, 1, answer}});
        CHECK(hidden_features(processor, kXcr0) == Hidden::kInstructions);
        CHECK(shown_cpuid(7, 1, processor) == CpuidAnswer{});
    }
    CHECK(hidden_features(processor, std::uint64_t{1} << 20 | 3) == Hidden::kInstructions);
}

// SDM volume 2, CPUID: it gives the data of the highest basic leaf.
TEST_CASE("leaves beyond the last one say nothing") {
    const More old({{0, 0, {0x16, 1, 2, 3}}, {0x24, 0, {1, 2, 3, 4}}, {0x1d, 0, {1, 2, 3, 4}}});
    CHECK(hidden_features(processor, kXcr0) == Hidden::kNothing);
    CHECK(shown_cpuid(0x24, 0, processor) == CpuidAnswer{1, 2, 3, 4});
}

TEST_CASE("an instruction that is not known has a name where the processor may know it") {
    const auto is_in = [](const char* word, const char* text) {
        return text != nullptr && std::string(text).find(word) != std::string::npos;
    };
    const std::uint8_t rex2[] = {0x66, 0xd5, 0x18, 0x89, 0xc0}, map4[] = {0x62, 0xf4, 0x7c, 0x18},
                       other[] = {0x62, 0xf5, 0x7c, 0x18}, cut[] = {0x62},
                       prefixes[] = {0x66, 0xf3};
    CHECK(is_in("REX2", newer_instruction(rex2, Hidden::kInstructions, kXcr0 | kApx)));
    CHECK(is_in("APX", newer_instruction(map4, Hidden::kInstructions, kXcr0 | kApx)));
    // Without APX, or a kernel that has enabled it, they are none, whatever else is newer.
    CHECK(newer_instruction(rex2, Hidden::kInstructions, kXcr0) == nullptr);
    CHECK(newer_instruction(map4, Hidden::kInstructions, kXcr0) == nullptr);
    for (const std::span<const std::uint8_t> code :
         {std::span<const std::uint8_t>(other), std::span<const std::uint8_t>(cut),
          std::span<const std::uint8_t>(prefixes)}) {
        CHECK(is_in("newer", newer_instruction(code, Hidden::kInstructions, kXcr0)));
        CHECK(newer_instruction(code, Hidden::kState, kXcr0 | kAmx) == nullptr);
        CHECK(newer_instruction(code, Hidden::kNothing, kXcr0) == nullptr);
    }
}

TEST_CASE("instructions of an extension that the processor lacks are none") {
    CHECK(has_extension(ProcessorExtension::kTiles, processor, kXcr0 | kAmx));
    CHECK_FALSE(has_extension(ProcessorExtension::kTiles, processor, kXcr0));
    CHECK_FALSE(
        has_extension(ProcessorExtension::kTiles, processor, kXcr0 | 1U << 17));  // the shapes only
    CHECK_FALSE(has_extension(ProcessorExtension::kTransactions, processor, kXcr0 | kAmx));
    {
        const More rtm({{7, 0, {0, 1U << 11, 0, 0}}});
        CHECK(has_extension(ProcessorExtension::kTransactions, processor, kXcr0));
        CHECK_FALSE(has_extension(ProcessorExtension::kTiles, processor, kXcr0));
        const More old({{0, 0, {6, 1, 2, 3}}, {7, 0, {0, 1U << 11, 0, 0}}});
        CHECK_FALSE(has_extension(ProcessorExtension::kTransactions, processor, kXcr0));
    }
    for (const auto level :
         {assay::trace::CpuLevel::kV2, assay::trace::CpuLevel::kV3, assay::trace::CpuLevel::kV4}) {
        CHECK_FALSE(has_extension(ProcessorExtension::kTiles, level));
        CHECK_FALSE(has_extension(ProcessorExtension::kTransactions, level));
        CHECK(has_extension(ProcessorExtension::kNone, level));
    }
}

}  // namespace hidden_features_test
