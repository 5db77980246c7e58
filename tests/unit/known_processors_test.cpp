// Every decision about the processor, for real ones: data/processors.txt has their CPUID answers.
#include "framework/driver/native/processor/shown_processor.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace known_processors_test {

using namespace assay::native;
using assay::trace::CpuLevel;

namespace {

struct KnownProcessor {
    std::string name;
    std::map<std::pair<std::uint32_t, std::uint32_t>, CpuidAnswer> answers;

    // As Intel's processors: beyond the last leaf they repeat the highest basic one.
    CpuidAnswer cpuid(std::uint32_t leaf, std::uint32_t subleaf) const {
        const auto last = answers.at({leaf & kExtendedLeaves, 0}).eax;
        if (leaf > last) leaf = answers.at({0, 0}).eax;
        if (!has_subleaves(leaf)) subleaf = 0;
        const auto found = answers.find({leaf, subleaf});
        return found == answers.end() ? CpuidAnswer{} : found->second;
    }
    bool has(const char* name_of_feature) const {
        return std::any_of(features().begin(), features().end(), [&](const Feature& feature) {
            return std::string_view(feature.name) == name_of_feature &&
                   has_feature(feature, cpuid_function());
        });
    }
    Cpuid cpuid_function() const {
        return [this](std::uint32_t leaf, std::uint32_t subleaf) { return cpuid(leaf, subleaf); };
    }
    // What Linux enables: arch/x86/kernel/fpu/xstate.c, fpu__init_system_xstate().
    Components xcr0() const {
        if (!has("osxsave")) return kX87AndSse;
        Components wanted = kX87AndSse;
        if (has("avx")) wanted |= kAvxState;
        if (has("mpx")) wanted |= kMpxState;
        if (has("avx512f")) wanted |= kAvx512State;
        if (has("pku")) wanted |= kPkruState;
        if (has("amx_tile")) wanted |= kTileState;
        return wanted & cpuid(kStateLeaf, 0).eax;
    }
    ShownProcessor shown(CpuLevel level = CpuLevel::kHost, const Hiding& hiding = Hiding()) const {
        constexpr std::uint64_t kFsGsBase = 2;
        return {{.cpuid = cpuid_function(),
                 .xcr0 = xcr0(),
                 .hwcap = cpuid(1, 0).edx,
                 .hwcap2 = has("fsgsbase") ? kFsGsBase : 0},
                level,
                hiding};
    }
};

// Adds what the dumps lack. Four dumps have subleaf 2 of the state leaf in the place of subleaf 0.
// Others lack some components. Programs of 32 bits made most of Intel's dumps: they see no syscall.
// No dump was made under Linux, which enables protection keys.
void repair(KnownProcessor& processor) {
    auto& answers = processor.answers;
    if (const auto state = answers.find({kStateLeaf, 0}); state != answers.end()) {
        if ((state->second.eax & kX87AndSse) != kX87AndSse) state->second = {7, 832, 832, 0};
        const bool is_intel = processor.name.starts_with("intel");
        const CpuidAnswer components[] = {
            {256, 576, 0, 0},
            {64, 960, 0, 0},
            {64, 1024, 0, 0},
            {64, is_intel ? 1088U : 832U, 0, 0},
            {512, is_intel ? 1152U : 896U, 0, 0},
            {1024, is_intel ? 1664U : 1408U, 0, 0},
            {},
            {8, is_intel ? 2688U : 2432U, 0, 0},
        };
        const CpuidAnswer lwp{128, 832, 0, 0};
        const auto complete = [&](std::uint32_t subleaf, const CpuidAnswer& component) {
            CpuidAnswer& answer = answers[{kStateLeaf, subleaf}];
            if (answer == CpuidAnswer{}) answer = component;
        };
        const CpuidAnswer supported = state->second;
        for (std::uint32_t i = 0; i < std::size(components); ++i)
            if (supported.eax >> (i + 2) & 1) complete(i + 2, components[i]);
        if (supported.edx != 0) complete(62, lwp);
    }
    constexpr std::uint32_t kPku = 1U << 3, kOsPke = 1U << 4, kFeatures = 7;
    const auto more = answers.find({kFeatures, 0});
    if (more != answers.end() && more->second.ecx & kPku) more->second.ecx |= kOsPke;
    constexpr std::uint32_t kSyscall = 1U << 11;
    answers.at({kExtendedLeaves + 1, 0}).edx |= kSyscall;
}

std::vector<KnownProcessor> read_processors() {
    std::ifstream file(std::string(std::getenv("ASSAY_TEST_DATA")) + "/processors.txt");
    std::vector<KnownProcessor> processors;
    std::string line;
    while (std::getline(file, line)) {
        if (line.starts_with('#')) continue;
        std::istringstream words(line);
        if (line.starts_with("processor ")) {
            words.ignore(sizeof "processor");
            words >> processors.emplace_back().name;
            continue;
        }
        std::uint32_t leaf = 0, subleaf = 0;
        CpuidAnswer answer;
        words >> std::hex >> leaf >> subleaf >> answer.eax >> answer.ebx >> answer.ecx >>
            answer.edx;
        processors.back().answers[{leaf, subleaf}] = answer;
    }
    for (KnownProcessor& processor : processors) repair(processor);
    return processors;
}

const std::vector<KnownProcessor>& processors() {
    static const std::vector<KnownProcessor> all = read_processors();
    return all;
}

struct Expected {
    const char* name;
    unsigned level;       // the highest, 1 to 4
    const char* missing;  // for the next one
    Components xcr0;      // shown, with --cpu=host
    std::size_t frame;    // bytes
    const char* hidden;   // features, of those that it has
};
constexpr Expected kExpected[] = {
    {"amd-100f2a-k10_barcelona", 1, "ssse3", 0x3, 512, ""},
    {"amd-100fa0-k10_thuban", 1, "ssse3", 0x3, 512, ""},
    {"amd-300f10-k12_llano", 1, "ssse3", 0x3, 512, ""},
    {"amd-500f10-k14_bobcat", 1, "sse4_1", 0x3, 512, ""},
    {"amd-600f12-interlagos", 2, "avx2", 0x7, 832, "lwp"},
    {"amd-600f20-k15_vishera", 2, "avx2", 0x7, 832, "lwp"},
    {"amd-60fb1-k8_brisbane", 1, "popcnt", 0x3, 512, ""},
    {"amd-630f01-k15_kaveri", 2, "avx2", 0x7, 832, "lwp"},
    {"amd-660f01-k15_carrizo", 3, "avx512f", 0x7, 832, "lwp"},
    {"amd-700f01-k16_kabini", 2, "avx2", 0x7, 832, ""},
    {"amd-800f12-k17_zen", 3, "avx512f", 0x7, 832, ""},
    {"amd-830f10-k17_rome", 3, "avx512f", 0x7, 832, ""},
    {"amd-870f10-k17_matisse", 3, "avx512f", 0x7, 832, ""},
    {"amd-a00f11-k19_milan", 3, "avx512f", 0x207, 2440, ""},
    {"amd-a20f10-k19_vermeer", 3, "avx512f", 0x207, 2440, ""},
    {"amd-a40f41-k19_rembrandt_01", 3, "avx512f", 0x207, 2440, ""},
    {"amd-f4a-k8_clawhammer", 1, "cx16", 0x3, 512, ""},
    {"intel-10676-penryn", 1, "popcnt", 0x3, 512, ""},
    {"intel-106a4-bloomfield", 2, "avx", 0x3, 512, ""},
    {"intel-106c2-silverthorne", 1, "popcnt", 0x3, 512, ""},
    {"intel-206c2-gulftown", 2, "avx", 0x3, 512, ""},
    {"intel-206d7-sandybridgee_00", 2, "avx2", 0x7, 832, ""},
    {"intel-30673-silvermont", 2, "avx", 0x3, 512, ""},
    {"intel-306e4-ivybridgee", 2, "avx2", 0x7, 832, ""},
    {"intel-306f2-haswellep", 3, "avx512f", 0x7, 832, "rtm"},
    {"intel-406f1-broadwelle", 3, "avx512f", 0x7, 832, "rtm"},
    {"intel-50654-skylakexeon", 4, "", 0x2e7, 2696, "rtm mpx"},
    {"intel-50657-cascadelakexeon", 4, "", 0x2e7, 2696, "rtm mpx"},
    {"intel-50671-knightslanding", 3, "avx512bw", 0xe7, 2688, ""},
    {"intel-506c9-goldmont", 2, "avx", 0x3, 576, "mpx"},
    {"intel-506e3-skylake", 3, "avx512f", 0x7, 832, "mpx"},
    {"intel-506f1-denverton", 2, "avx", 0x3, 576, "mpx"},
    {"intel-60663-cannonlake", 4, "", 0x2e7, 2696, "mpx"},
    {"intel-606a6-icx", 4, "", 0x2e7, 2696, "rtm"},
    {"intel-6f6-conroe", 1, "popcnt", 0x3, 512, ""},
    {"intel-706a8-goldmontplus", 2, "avx", 0x3, 576, "mpx"},
    {"intel-706e5-icelakey", 4, "", 0x2e7, 2696, ""},
    {"intel-806a1-lakefield", 2, "avx", 0x3, 576, ""},
    {"intel-806c1-tigerlake", 4, "", 0x2e7, 2696, ""},
    {"intel-806ec-cometlake", 3, "avx512f", 0x7, 832, "mpx"},
    {"intel-90661-elkhartlake", 2, "avx", 0x3, 576, ""},
    {"intel-90672-alderlake", 4, "", 0x2e7, 2696, ""},
    {"intel-90672-alderlake_bc_avx512", 4, "", 0x2e7, 2696, ""},
    {"intel-906c0-jasperlake", 2, "avx", 0x3, 576, ""},
    {"intel-906ea-coffeelake", 3, "avx512f", 0x7, 832, "rtm mpx"},
    {"intel-a0671-rocketlake", 4, "", 0x2e7, 2696, "mpx"},
    {"intel-f43-p4_prescott", 1, "lahf_lm", 0x3, 512, ""},
    {"intel-f64-p4_dempsey", 1, "popcnt", 0x3, 512, ""},
};

constexpr CpuLevel kLevels[] = {CpuLevel::kV2, CpuLevel::kV3, CpuLevel::kV4};

// Sizes by the SDM, volume 1, 13.4.
std::uint32_t bytes_of(const ShownProcessor& shown, Components components, bool compacted) {
    std::uint32_t end = 576;
    for (std::uint32_t number = 2; number < 63; ++number) {
        if (!(components >> number & 1)) continue;
        const CpuidAnswer component = shown.cpuid(kStateLeaf, number);
        CHECK(component.eax != 0);
        if (compacted && component.ecx & 2) end = (end + 63) / 64 * 64;
        end = compacted ? end + component.eax : std::max(end, component.ebx + component.eax);
    }
    return end;
}

void check_consistent(const ShownProcessor& shown, const Components real_xcr0, CpuLevel level) {
    const Cpuid cpuid = [&](std::uint32_t leaf, std::uint32_t subleaf) {
        return shown.cpuid(leaf, subleaf);
    };
    const auto has = [&](std::string_view name) {
        const auto feature = std::find_if(features().begin(), features().end(),
                                          [&](const Feature& one) { return one.name == name; });
        return has_feature(*feature, cpuid);
    };
    // The driver and the program only save components that exist.
    CHECK((shown.xcr0() & ~real_xcr0) == 0);
    CHECK((shown.frame_components() & ~shown.xcr0()) == 0);
    CHECK(shown.limits_state() == (shown.xcr0() != real_xcr0));
    CHECK((shown.saved_components() & ~real_xcr0) == 0);
    CHECK(((shown.frame_components() & ~kPkruState) & ~shown.saved_components()) == 0);
    if (shown.saving() == kSavedByFxsave) CHECK(shown.saved_components() == kX87AndSse);

    for (const Feature& feature : features()) {
        if (!has_feature(feature, cpuid)) continue;
        CAPTURE(feature.name);
        CHECK((feature.needs & ~shown.xcr0()) == 0);
    }
    const CpuidAnswer all = shown.cpuid(kStateLeaf, 0), more = shown.cpuid(kStateLeaf, 1);
    if (!has_leaf(kStateLeaf, cpuid)) {
        CHECK_FALSE(has("xsave"));
        CHECK(shown.frame_bytes() == 512);
    } else if (!has("osxsave")) {
        CHECK(all == CpuidAnswer{});
        CHECK(more == CpuidAnswer{});
        CHECK(shown.xcr0() == kX87AndSse);
        CHECK(shown.frame_bytes() == 512);
    } else {
        const Components supported = Components{all.edx} << 32 | all.eax;
        CHECK((shown.xcr0() & ~supported) == 0);
        // With v4 the size is that of Intel's processors.
        const std::uint32_t least = level == CpuLevel::kV4 ? 2688 : 0;
        CHECK(shown.frame_bytes() ==
              std::max(least, bytes_of(shown, shown.frame_components(), false)));
        if (shown.emulates_identification()) {
            CHECK((supported & ~kKeptState) == 0);
            CHECK(all.ebx == std::max(least, bytes_of(shown, shown.xcr0(), false)));
            CHECK(all.ecx == std::max(least, bytes_of(shown, supported, false)));
            CHECK(more.ebx == (has("xsavec") ? bytes_of(shown, shown.xcr0(), true) : 0));
        }
        for (std::uint32_t number = 2; number < 64; ++number) {
            const CpuidAnswer component = shown.cpuid(kStateLeaf, number);
            const Components supervisor = Components{more.edx} << 32 | more.ecx;
            if (component.eax != 0) CHECK(((supported | supervisor) >> number & 1) == 1);
        }
    }
    // Leaves beyond the last ones say no more than those.
    const std::uint32_t last = shown.cpuid(0, 0).eax;
    for (const std::uint32_t beyond : {last + 1, 0x40U, shown.cpuid(kExtendedLeaves, 0).eax + 1})
        CHECK(shown.cpuid(beyond, 0) == shown.cpuid(last, 0));
}

unsigned highest_level(const KnownProcessor& processor, std::string& missing) {
    unsigned highest = 1;
    for (const CpuLevel level : kLevels) {
        missing = processor.shown(level).missing();
        if (!missing.empty()) return highest;
        highest = static_cast<unsigned>(level);
    }
    return highest;
}

}  // namespace

TEST_CASE("known processors: levels, what is hidden, and how much room it takes") {
    REQUIRE(processors().size() == std::size(kExpected));
    for (std::size_t i = 0; i < processors().size(); ++i) {
        const KnownProcessor& processor = processors()[i];
        CAPTURE(processor.name);
        std::string missing;
        const unsigned level = highest_level(processor, missing);
        const ShownProcessor shown = processor.shown();
        const Expected& expected = kExpected[i];
        CHECK(processor.name == expected.name);
        CHECK(level == expected.level);
        CHECK(missing == expected.missing);
        CHECK(shown.xcr0() == expected.xcr0);
        CHECK(shown.frame_bytes() == expected.frame);
        CHECK(hidden_features(shown) == expected.hidden);
    }
}

TEST_CASE("known processors: what is shown is consistent") {
    for (const KnownProcessor& processor : processors()) {
        CAPTURE(processor.name);
        check_consistent(processor.shown(), processor.xcr0(), CpuLevel::kHost);
        for (const CpuLevel level : kLevels)
            if (processor.shown(level).missing().empty())
                check_consistent(processor.shown(level), processor.xcr0(), level);
    }
}

TEST_CASE("known processors: also with any feature hidden") {
    for (const KnownProcessor& processor : processors())
        for (const char* name : {"avx512", "opmask", "zmm_hi256", "hi16_zmm", "avx", "pkru",
                                 "xsave", "xsavec", "xsaveopt", "xsaves", "bmi2", "fsgsbase"}) {
            CAPTURE(processor.name);
            CAPTURE(name);
            Hiding hiding;
            REQUIRE(hiding.add(name).empty());
            check_consistent(processor.shown(CpuLevel::kHost, hiding), processor.xcr0(),
                             CpuLevel::kHost);
        }
}

TEST_CASE("known processors: how registers are saved, and what the driver needs") {
    for (const KnownProcessor& processor : processors()) {
        CAPTURE(processor.name);
        const Saving best = !processor.has("xsave")     ? kSavedByFxsave
                            : processor.has("xsaveopt") ? kSavedIfChanged
                                                        : kSavedPlainly;
        CHECK(processor.shown().saving() == best);
        // Only the first processors with 64 bits lack it.
        const bool is_first =
            processor.name == "amd-f4a-k8_clawhammer" || processor.name == "intel-f43-p4_prescott";
        CHECK(processor.shown().missing_for_driver() == (is_first ? "lahf_lm" : ""));
    }
}

TEST_CASE("known processors: each has a report") {
    for (const KnownProcessor& processor : processors()) {
        CAPTURE(processor.name);
        const std::string report = processor_report(processor.shown());
        for (const char* word : {"family", "level", "state", "registers saved with"})
            CHECK(report.find(word) != std::string::npos);
    }
}

}  // namespace known_processors_test
