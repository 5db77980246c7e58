// Translates units: copies the target's instructions, rewrites what depends on their position,
// and emits the instrumentation that the trace specification asks for.
#pragma once

#include "framework/driver/native/emitter.h"
#include "framework/driver/native/miss_sampler.h"

#include <string>

namespace assay::native {

// The target's state at a fault in translated code.
struct FaultState {
    bool known = false;
    std::uint64_t pc = 0;  // of the faulting instruction
    Scratch::State scratch;
    std::uint32_t block = 0;     // in the trace's block table
    std::uint32_t executed = 0;  // instructions of the block, the faulting one included
    bool counted = false;        // whether the block's counter has been incremented
    bool rcx_is_target = false;  // the target's rcx is in Context::indirect_rcx
};

class Translator {
  public:
    Translator(const MemoryMap& memory, CodeCache& cache, TraceWriter& trace)
        : memory_(memory),
          cache_(cache),
          trace_(trace),
          planner_(decoder_, memory, cache, trace),
          misses_(trace) {}

    // Translates the code at `pc`, which has no translation yet. Returns its block, or nullptr
    // if there is no valid instruction. `landing`: because an indirect branch went there.
    Block* translate(std::uint64_t pc, bool landing);
    // What the target's state is when translated code faults at `host_pc`: the unit is
    // translated again, aside, up to there.
    FaultState recover(std::uint64_t host_pc);
    // After a buffer has become full: translates units again in which the checks of some
    // references fail so often that they had better have no branch. Translated code may be
    // executing, C++ code may not.
    void adapt();
    // Forgets all translations.
    void flush();
    // The mnemonic of the instruction at `pc`.
    std::string describe(std::uint64_t pc);

    Planner& planner() { return planner_; }
    Decoder& decoder() { return decoder_; }

  private:
    void emit(Unit& unit, const Emitter::Numbers& numbers, TraceWriter* trace,
              Emitter::Output& output);
    void translate_again(std::uint32_t unit_index);

    const MemoryMap& memory_;
    CodeCache& cache_;
    TraceWriter& trace_;
    Decoder decoder_;
    Planner planner_;
    UnitPlan plan_;
    MissSampler misses_;
};

}  // namespace assay::native
