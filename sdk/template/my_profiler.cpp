// Counts data references that lie across two cache lines.
#include <assay/profiler.hpp>

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace {

enum Event : std::uint32_t { kReferences, kSplits };

class MyProfiler final : public assay::Profiler {
  public:
    static constexpr const char* kName = "my_profiler";
    static constexpr const char* kDescription =
        "counts data references that lie across two cache lines";
    static constexpr vp_event_t kEvents[] = {
        {"Refs", "data references", "references"},
        {"Splits", "data references across two lines", "references"},
    };
    static constexpr vp_derived_t kDerived[] = {{"split rate", "Splits / Refs", "%"}};
    static constexpr vp_option_t kOptions[] = {
        {"line", "BYTES", "64", "Size of a line.", VP_OPTION_UNSIGNED, 0},
    };

    void option(std::string_view, const std::string& value) override {
        line_ = std::stoull(value);
        if (!std::has_single_bit(line_))
            throw std::invalid_argument("--line=" + value + ": use a power of two");
    }

    void capture(assay::Captures& wanted) override { wanted.references(); }

    void process(assay::Trace& trace, assay::Samples&) override {
        const auto sites = trace.sites();
        for (const trace_record_t& record : trace.records()) {
            const trace_site_t& site = sites[record.site];
            if (site.kind < TRACE_SITE_READ || site.kind > TRACE_SITE_MODIFY) continue;
            Counts& counts = counts_[record.site];
            ++counts.references;
            counts.splits += record.value % line_ + site.bytes > line_;
        }
    }

    void finish(assay::Trace& trace, assay::Samples& samples) override {
        for (std::uint32_t i = 0; i < trace.sites().size(); ++i) {
            const std::uint64_t pc = trace.instrs()[trace.sites()[i].instr].pc;
            samples.count(pc, kReferences, counts_[i].references);
            samples.count(pc, kSplits, counts_[i].splits);
        }
    }

  private:
    struct Counts {
        std::uint64_t references, splits;
    };

    std::uint64_t line_ = 64;
    assay::Indexed<Counts> counts_;  // by site
};

}  // namespace

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = assay::dispatch<MyProfiler>();
