// Finds loads that mostly read zeros: candidates for a sparse representation, for compression, or
// for hardware that treats zeros specially (Dusser, Piquet and Seznec, "Zero-content augmented
// caches", ICS 2009).
#include <assay/profiler.hpp>

namespace {

enum Event : std::uint32_t { kLoads, kZeros };

class ZeroValues final : public assay::Profiler {
  public:
    static constexpr const char* kName = "zero_values";
    static constexpr const char* kDescription = "counts loads that read a zero";
    static constexpr vp_event_t kEvents[] = {
        {"Loads", "loads of values", "loads"},
        {"Zeros", "loads of a zero", "loads"},
    };
    static constexpr vp_derived_t kDerived[] = {{"zeros", "Zeros / Loads", "%"}};

    void capture(assay::Captures& wanted) override {
        // Not of vectors, of which only the low 64 bits would be seen.
        wanted.values({TRACE_LOADED}, [](std::uint16_t opcode, std::uint32_t flags) {
            const bool vector = (opcode >> 8) >= TRACE_MAP_VECTOR;
            return int{!vector && (flags & TRACE_INSTR_LOAD) != 0};
        });
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        while (const auto execution = trace.next()) {
            if (!trace.has_value(0)) continue;  // rep movs that loaded nothing
            Counts& counts = counts_[execution->instr];
            ++counts.loads;
            counts.zeros += execution->values[0] == 0;
        }
    }

    void finish(assay::Trace& trace, assay::Samples& samples) override {
        for (std::uint32_t i = 0; i < trace.instrs().size(); ++i) {
            samples.count(trace.instrs()[i].pc, kLoads, counts_[i].loads);
            samples.count(trace.instrs()[i].pc, kZeros, counts_[i].zeros);
        }
    }

  private:
    struct Counts {
        std::uint64_t loads, zeros;
    };
    assay::Indexed<Counts> counts_;  // by instruction
};

}  // namespace

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = assay::dispatch<ZeroValues>();
