// How long loads take, in ticks of the time-stamp counter.
#include <assay/profiler.hpp>

namespace {

enum Event : std::uint32_t { kLoads, kTicks };

class LoadLatency final : public assay::Profiler {
  public:
    static constexpr const char* kName = "load_latency";
    static constexpr const char* kDescription = "measures how long each load takes";
    static constexpr vp_event_t kEvents[] = {
        {"Loads", "loads that were timed", "loads"},
        {"Ticks", "time-stamp counter ticks that they took", "ticks"},
    };
    static constexpr vp_derived_t kDerived[] = {{"mean latency", "Ticks / Loads", "ticks"}};

    void capture(assay::Captures& wanted) override {
        wanted.values({TRACE_LATENCY}, [](std::uint16_t opcode, std::uint32_t flags) {
            return int{opcode == TRACE_OPCODE(0, 0x8B) && (flags & TRACE_INSTR_LOAD) != 0};
        });
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        while (const auto execution = trace.next()) {
            Counts& counts = counts_[execution->instr];
            ++counts.loads;
            counts.ticks += execution->values[0];
        }
    }

    void finish(assay::Trace& trace, assay::Samples& samples) override {
        for (std::uint32_t i = 0; i < trace.instrs().size(); ++i) {
            samples.count(trace.instrs()[i].pc, kLoads, counts_[i].loads);
            samples.count(trace.instrs()[i].pc, kTicks, counts_[i].ticks);
        }
    }

  private:
    struct Counts {
        std::uint64_t loads, ticks;
    };
    assay::Indexed<Counts> counts_;  // by instruction
};

}  // namespace

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = assay::dispatch<LoadLatency>();
