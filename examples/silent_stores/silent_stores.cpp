// Finds silent stores, which write the value that is there already (Lepak and Lipasti, "On the
// value locality of store instructions", ISCA 2000).
#include <assay/profiler.hpp>

namespace {

enum Event : std::uint32_t { kStores, kSilent };

class SilentStores final : public assay::Profiler {
  public:
    static constexpr const char* kName = "silent_stores";
    static constexpr const char* kDescription = "counts stores that change nothing";
    static constexpr vp_event_t kEvents[] = {
        {"Stores", "stores of up to 8 bytes", "stores"},
        {"Silent", "stores of what was there already", "stores"},
    };
    static constexpr vp_derived_t kDerived[] = {{"silent stores", "Silent / Stores", "%"}};

    void capture(assay::Captures& wanted) override {
        // Instructions of the one-byte map store at most 8 bytes, except x87 instructions.
        wanted.values({TRACE_STORED, TRACE_STORED | TRACE_BEFORE},
                      [](std::uint16_t opcode, std::uint32_t flags) {
                          const bool x87 = opcode >= 0xD8 && opcode <= 0xDF;
                          return int{opcode < 0x100 && !x87 && (flags & TRACE_INSTR_STORE) != 0};
                      });
    }

    void process(assay::Trace& trace, assay::Samples&) override {
        while (const auto execution = trace.next()) {
            if (!trace.has_value(0)) continue;  // rep stos that stored nothing
            Counts& counts = counts_[execution->instr];
            ++counts.stores;
            counts.silent += execution->values[0] == execution->values[1];
        }
    }

    void finish(assay::Trace& trace, assay::Samples& samples) override {
        for (std::uint32_t i = 0; i < trace.instrs().size(); ++i) {
            samples.count(trace.instrs()[i].pc, kStores, counts_[i].stores);
            samples.count(trace.instrs()[i].pc, kSilent, counts_[i].silent);
        }
    }

  private:
    struct Counts {
        std::uint64_t stores, silent;
    };
    assay::Indexed<Counts> counts_;  // by instruction
};

}  // namespace

extern "C" VP_EXPORT const vp_dispatch_t assay_vp_dispatch = assay::dispatch<SilentStores>();
