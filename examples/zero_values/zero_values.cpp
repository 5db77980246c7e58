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
        {"Loads", "loads of integers", "loads"},
        {"Zeros", "loads of a zero", "loads"},
    };
    static constexpr vp_derived_t kDerived[] = {{"zeros", "Zeros / Loads", "%"}};

    void capture(assay::Captures& wanted) override {
        // Leaves out vectors and the x87, because only 64 bits of each value arrive. In the map 0F,
        // instructions other than SSE are at 40 to 4F and from A0 to C1.
        wanted.values({TRACE_LOADED}, [](std::uint16_t opcode, std::uint32_t flags) {
            const bool one_byte = opcode < 0xD8 || (opcode > 0xDF && opcode < 0x100);
            const bool two_bytes =
                (opcode & ~0xFU) == TRACE_OPCODE(1, 0x40) ||
                (opcode >= TRACE_OPCODE(1, 0xA0) && opcode <= TRACE_OPCODE(1, 0xC1) &&
                 opcode != TRACE_OPCODE(1, 0xAE));  // fxrstor and the like
            return int{(one_byte || two_bytes) && (flags & TRACE_INSTR_LOAD) != 0};
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
