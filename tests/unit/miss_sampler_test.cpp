#include "framework/driver/native/translate/miss_references.h"

#include "tests/unit/driver_parts.h"

namespace miss_sampler_test {

using namespace assay;
using namespace assay::native;

namespace {

constexpr std::size_t kPart = 64;  // one record of so many is looked at

// A block of one instruction that makes two references.
class TwoSites {
  public:
    explicit TwoSites(const trace::Spec& spec = kEverything) : parts_(spec) {
        Instruction instruction;
        REQUIRE(parts_.translator.decoder().decode(
            std::span(reinterpret_cast<const std::uint8_t*>(parts_.code(0, {{"movsb", {0xa4}}})),
                      15),
            parts_.start, instruction));
        const std::uint32_t instr = parts_.trace.next().instr;
        parts_.trace.add_instr(assay::native::row_of(instruction));
        parts_.trace.add_site(instr, 1, TRACE_SITE_READ, 0);
        parts_.trace.add_site(instr, 1, TRACE_SITE_WRITE, 1);
        parts_.trace.add_block(parts_.start);
    }
    void executed(std::uint64_t times) {
        std::memcpy(reinterpret_cast<unsigned char*>(parts_.context) + kCountersInContext, &times,
                    sizeof times);
    }
    // Both are of one operand, or each of its own.
    void belong_to_runs(std::uint8_t second) {
        for (const std::uint32_t site : {0U, 1U}) {
            const std::uint8_t number = site == 0 ? std::uint8_t{0} : second;
            parts_.trace.note_run(site,
                                  parts_.trace.run_of({parts_.start, 1, TRACE_SITE_READ, number}));
        }
    }
    // A buffer whose sampled part holds so many records of the site.
    std::vector<std::uint32_t> sample(std::uint32_t site, std::size_t records,
                                      std::uint32_t left_out = 0) {
        const std::vector<trace_record_t> buffer(records * kPart, {0x1000, site, left_out});
        const auto found = sampler.sample(buffer);
        return {found.begin(), found.end()};
    }

  private:
    DriverParts parts_;

  public:
    MissSampler sampler{parts_.trace};
};

}  // namespace

TEST_CASE("a site that misses often is found, at each doubling") {
    TwoSites sites;
    sites.executed(1000);
    CHECK(sites.sample(0, 127).empty());
    CHECK_FALSE(sites.sampler.misses_often(0));
    CHECK(sites.sample(0, 1) == std::vector<std::uint32_t>{0});
    CHECK(sites.sampler.misses_often(0));
    CHECK_FALSE(sites.sampler.misses_often(1));
    CHECK(sites.sample(0, 127).empty());
    CHECK(sites.sample(0, 1) == std::vector<std::uint32_t>{0});
    CHECK(sites.sample(1, 256) == std::vector<std::uint32_t>{1, 1});
}

TEST_CASE("a site that is executed far more often than it misses is not found") {
    TwoSites sites;
    // 128 sampled misses stand for 64 times as many, of which one in eight executions is often.
    sites.executed(128 * kPart * 8);
    CHECK(sites.sample(0, 128).empty());
    CHECK_FALSE(sites.sampler.misses_often(0));
    sites.executed(128 * kPart * 8 - 1);
    CHECK(sites.sampler.misses_often(0));
}

TEST_CASE("only a part of the buffer is looked at") {
    TwoSites sites;
    std::vector<trace_record_t> buffer(200 * kPart, {0x1000, 0, 0});
    std::fill_n(buffer.begin(), 200, trace_record_t{0x1000, 1, 0});
    const auto found = sites.sampler.sample(buffer);
    CHECK(std::vector<std::uint32_t>(found.begin(), found.end()) == std::vector<std::uint32_t>{1});
    CHECK_FALSE(sites.sampler.misses_often(0));
    CHECK(sites.sampler.sample({}).empty());
}

TEST_CASE("sampled misses do not overflow") {
    TwoSites sites;
    for (unsigned i = 0; i < 70; ++i) sites.sample(0, 1000);
    CHECK(sites.sampler.misses_often(0));
    CHECK(sites.sample(0, 1000).empty());
}

TEST_CASE("sites that nothing is known of do not miss often") {
    TwoSites sites;
    CHECK_FALSE(sites.sampler.misses_often(0));
    CHECK_FALSE(sites.sampler.misses_often(12345));
}

TEST_CASE("runs: an operand that begins one at half of its references is found, with its sites") {
    constexpr trace::Spec kRuns{.captures = trace::kCaptureReferences,
                                .data = {.kind = trace::Filter::kRuns}};
    TwoSites one(kRuns);
    one.belong_to_runs(0);
    CHECK(one.sample(0, 100, 4).empty());
    // 256 records of 656 references, then 512 of 912.
    CHECK(one.sample(1, 156).empty());
    CHECK(one.sample(1, 256) == std::vector<std::uint32_t>{0, 1});
    CHECK(one.sampler.misses_often(0));

    TwoSites two(kRuns);
    two.belong_to_runs(1);
    CHECK(two.sample(0, 128) == std::vector<std::uint32_t>{0});
    CHECK(two.sample(1, 128, 1).empty());
    CHECK_FALSE(two.sampler.misses_often(1));
}

}  // namespace miss_sampler_test
