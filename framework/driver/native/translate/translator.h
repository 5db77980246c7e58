// Translates units: copies the program's instructions, rewrites those that depend on their
// position, and emits the instrumentation for the trace specification.
#pragma once

#include "framework/driver/native/translate/miss_references.h"
#include "framework/driver/native/translate/unit_writer.h"

#include <string>

namespace assay::native {

class Translator {
  public:
    Translator(const MemoryMap& memory, CodeWatch& watch, CodeCache& cache, const Regions& regions,
               const AllocationFunctions& allocation_functions,
               const driver::Interpreter& interpreter, TraceTables& trace)
        : memory_(memory),
          cache_(cache),
          trace_(trace),
          planner_(decoder_, memory, watch, cache, regions, allocation_functions, interpreter,
                   trace),
          misses_(trace) {}

    // True if the code cache must be flushed before the code at `pc` is translated.
    bool must_flush_for(std::uint64_t pc);
    // Translates the code at `pc`, which must have no translation of this version yet. Returns its
    // block, or nullptr if there is no valid instruction. `landing`: an indirect branch led there.
    Block* translate(std::uint64_t pc, Version version, bool landing);
    // Translates one instruction for a single execution, because the code may change.
    // CodeCache::find() does not know the result.
    Block* translate_alone(std::uint64_t pc, Version version);
    // Looks at a full buffer. Translates units again if the checks of some references fail so often
    // that they are faster without a branch. Such a unit may be executing.
    void adapt(std::span<const trace_record_t> buffer);
    // Forgets all translations; see CodeCache::flush.
    void flush();
    // Forgets the translations of code in [start, end).
    void invalidate(std::uint64_t start, std::uint64_t end);
    // The mnemonic of the instruction at `pc`.
    std::string describe(std::uint64_t pc);

    Planner& planner() { return planner_; }
    Decoder& decoder() { return decoder_; }

  private:
    Unit emit_new_unit();
    bool starts_as(std::uint32_t instr) const;
    bool emit_as_before(Unit& unit);
    bool emit(Unit& unit, const TableRows& rows, TraceTables* trace,
              const TableRows* end = nullptr);
    const Block* find(std::uint32_t id);
    void note_often_missed(Unit& unit);
    void translate_again(std::uint32_t unit_index);

    const MemoryMap& memory_;
    CodeCache& cache_;
    TraceTables& trace_;
    Decoder decoder_;
    Planner planner_;
    UnitPlan plan_;
    UnitWriter::Output output_;
    MissSampler misses_;
};

}  // namespace assay::native
