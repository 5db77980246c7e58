// Instrumentation of data references, and of fetches that must be in order with them. It decides
// which references are checked together, and where. A strategy of references.h decides how.
#pragma once

#include "framework/driver/native/translate/capture.h"
#include "framework/driver/native/translate/references.h"

namespace assay::native {

class MemoryReferences final : public Capture {
  public:
    explicit MemoryReferences(UnitWriter& writer)
        : Capture(writer), checks_(data_references(writer)) {}

    static bool wanted(const trace::Spec& spec) {
        return spec.captures & (trace::kCaptureReferences | trace::kCaptureCode);
    }

    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override { checks_->emit(item); }

  private:
    // The group that the next references can join, as long as its item is the last one.
    struct Group {
        std::size_t item = 0;  // in UnitPlan::items
        bool open = false;
        bool constant = false;  // the address is known now
        MemoryReference first;
        std::int64_t stack_change = 0;  // since its first reference
    };
    // The fetch of the bytes from `begin` to `end`, all in one line. `instr` has the first byte.
    struct CodePiece {
        std::uint16_t instr;
        std::uint64_t begin, end;
    };

    // --- Of data.
    void place_data(Placer& placer, unsigned instr);
    void place_reference(Placer& placer, unsigned instr, unsigned number);
    bool join(UnitPlan& plan, const PlannedReference& reference, const MemoryReference& form);
    static bool is_last(const UnitPlan& plan, std::size_t item);
    bool continues_series(const Item& item, const PlannedReference& member) const;
    // --- Of code.
    void place_code(Placer& placer, const PlannedBlock& block, unsigned instr);
    void place_piece(Placer& placer, const CodePiece& piece) const;
    void begin_stretch(const PlannedBlock& block, unsigned instr);
    bool ends_stretch(const PlannedBlock& block, unsigned instr) const;

    std::unique_ptr<DataReferences> checks_;
    Group group_;
    std::vector<CodePiece> pieces_;  // of the present stretch
    std::size_t next_piece_ = 0;
    unsigned next_stretch_ = 0;  // its first instruction
};

// Instrumentation of instructions whose references only their execution shows, such as repeated
// strings, gathers and masked moves. The driver is entered before them.

class Specials final : public Capture {
  public:
    using Capture::Capture;

    static bool wanted(const trace::Spec& spec) {
        return spec.captures &
               (trace::kCaptureReferences | trace::kCaptureRepeats | trace::kCapturePredictions);
    }
    // True if the driver makes the instruction's references.
    static bool takes(const trace::Spec& spec, const Form& form);

    void place(Placer& placer, const PlannedBlock& block, unsigned instr) override;
    void emit(const Item& item) override;
};

}  // namespace assay::native
