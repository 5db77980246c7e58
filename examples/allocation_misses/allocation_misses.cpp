// Misses by allocation site: which blocks of the heap a small direct-mapped cache misses, by where
// they were allocated. For runs with --objects.
#include <assay/profiler.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace {

class AllocationMisses final : public assay::Profiler {
  public:
    static constexpr const char* kName = "allocation_misses";
    static constexpr const char* kDescription = "counts misses of blocks by allocation site";
    static constexpr vp_event_t kEvents[] = {{"Misses", "misses of 32 KiB, direct", "misses"}};

    void capture(assay::Captures& wanted) override { wanted.references(); }

    void process(assay::Trace& trace, assay::Samples& samples) override {
        const auto records = trace.records();
        for (std::size_t i = 0; i < records.size(); ++i) {
            const trace_site_t& site = trace.sites()[records[i].site];
            if (site.kind < TRACE_SITE_READ || site.kind > TRACE_SITE_MODIFY) continue;
            const std::uint64_t line = records[i].value / 64;
            if (std::exchange(lines_[line % lines_.size()], line) == line) continue;
            const std::uint32_t context = trace.has_context() ? trace.contexts()[i] : 0;
            samples.count(trace.instrs()[site.instr].pc, 0, 1, context);
            ++misses_[context];
        }
    }

    void finish(assay::Trace& trace, assay::Samples&) override {
        std::map<std::uint32_t, std::uint64_t> by_site;
        for (const auto& [context, misses] : misses_)
            if (const trace_data_object_t* object = trace.data_object(context))
                if (object->kind == TRACE_DATA_HEAP) by_site[object->context] += misses;
        for (const auto& [context, misses] : by_site) {
            const trace_frame_t& caller = trace.frames(trace.context_table()[context].call)[0];
            lines_of_summary_.push_back(std::to_string(misses) + " " + caller.function + ":" +
                                        std::to_string(caller.line) + "\n");
        }
    }

    std::string summary(std::span<const std::uint64_t>) override {
        std::string text;
        for (const std::string& line : lines_of_summary_) text += line;
        return text;
    }

  private:
    std::vector<std::uint64_t> lines_ = std::vector<std::uint64_t>(512);
    std::map<std::uint32_t, std::uint64_t> misses_;  // by context
    std::vector<std::string> lines_of_summary_;
};

}  // namespace

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = assay::dispatch<AllocationMisses>();
