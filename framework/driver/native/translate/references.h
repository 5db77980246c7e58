// Instrumentation of data references, by one of five strategies, as the specification asks:
//
//   unfiltered   each makes a record
//   filtered     those do whose line is not the most recent one of its set
//   misses       those of these that miss a cache, which is simulated in the thread
//   footprints   as filtered, with the bytes of the lines that were touched
//   runs         those do that are not where a run of their operand expects them
//
// The end of the buffer is a page that cannot be written: the store that begins a record faults
// there, and the handler puts the start of the next buffer into the register it used.
#pragma once

#include "framework/driver/native/translate/unit_writer.h"

#include <memory>

namespace assay::native {

class DataReferences : public UnitPart {
  public:
    using UnitPart::UnitPart;
    virtual ~DataReferences() = default;

    // The check of a group of references, or the records; at Item::position of hot code.
    void emit(const Item& item);

  protected:
    // A group of references, and the registers that check it.
    struct Operands {
        const Item& item;
        const MemoryReference& form;  // of the first reference
        std::uint32_t site;           // of the first; the others follow
        unsigned a = 0, b = 0, c = kNoGpr, next = kNoGpr, cursor = kNoGpr;
    };

    // At an address that is known now, and at one that is not.
    virtual void constant(Operands& operands) = 0;
    virtual void computed(Operands& operands) = 0;

    const PlannedReference& first_of(const Item& item) const {
        return plan_.references[item.first_reference];
    }
    bool is_write(const PlannedReference& reference) const;
    bool is_often_missed(std::uint32_t site) const;
    // Into `a`; `flags_saved`: rax has them.
    void load_operand_address(Assembler& code, const Operands& operands,
                              const PlannedReference& reference, bool flags_saved);
    void load_first_address(Assembler& code, const Operands& operands, bool flags_saved);
    // The record of `a`, in hot code.
    void append_always(const Operands& operands);
    void record_each(const Operands& operands, unsigned count, std::uint64_t back);

  private:
    std::uint32_t new_sites(const Item& item);
};

// The strategy that the specification asks for.
std::unique_ptr<DataReferences> data_references(UnitWriter& writer);
// The five.
std::unique_ptr<DataReferences> unfiltered_references(UnitWriter& writer);
std::unique_ptr<DataReferences> filtered_references(UnitWriter& writer);
std::unique_ptr<DataReferences> miss_references(UnitWriter& writer);
std::unique_ptr<DataReferences> footprint_references(UnitWriter& writer);
std::unique_ptr<DataReferences> run_references(UnitWriter& writer);

}  // namespace assay::native
