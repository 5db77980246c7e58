// Instrumentation of data references. The specification selects one of five strategies:
//
//   unfiltered   records each reference
//   filtered     records references whose line is not the most recent one of its set
//   misses       of these, records only those that miss a cache, which is simulated in the thread
//   footprints   like filtered, with the bytes of the lines that were touched
//   runs         records references that are not where a run of their operand expects them
//
// The buffer ends with a page that cannot be written. The store that begins a record faults there,
// and the handler puts the start of the next buffer into the register of the store.
#pragma once

#include "framework/driver/native/translate/unit_writer.h"

#include <memory>

namespace assay::native {

class DataReferences : public UnitPart {
  public:
    using UnitPart::UnitPart;
    virtual ~DataReferences() = default;

    // Emits the check of a group of references, or its records, at Item::position of hot code.
    void emit(const Item& item);

  protected:
    // A group of references, and the registers that check it.
    struct Operands {
        const Item& item;
        const MemoryReference& form;  // of the first reference
        std::uint32_t site;           // of the first reference; those of the others follow
        unsigned a = 0, b = 0, c = kNoGpr, next = kNoGpr, cursor = kNoGpr;
    };

    // For an address that is known now, and for another one.
    virtual void constant(Operands& operands) = 0;
    virtual void computed(Operands& operands) = 0;

    const PlannedReference& first_of(const Item& item) const {
        return plan_.references[item.first_reference];
    }
    bool is_write(const PlannedReference& reference) const;
    bool is_often_missed(std::uint32_t site) const;
    // Loads the address into `a`. `flags_saved`: rax has the flags.
    void load_operand_address(Assembler& code, const Operands& operands,
                              const PlannedReference& reference, bool flags_saved);
    void load_first_address(Assembler& code, const Operands& operands, bool flags_saved);
    // Appends a record of `a`, in hot code.
    void append_always(const Operands& operands);
    void record_each(const Operands& operands, unsigned count, std::uint64_t back);

  private:
    std::uint32_t new_sites(const Item& item);
};

// The strategy that the specification asks for.
std::unique_ptr<DataReferences> data_references(UnitWriter& writer);
// The five strategies.
std::unique_ptr<DataReferences> unfiltered_references(UnitWriter& writer);
std::unique_ptr<DataReferences> filtered_references(UnitWriter& writer);
std::unique_ptr<DataReferences> miss_references(UnitWriter& writer);
std::unique_ptr<DataReferences> footprint_references(UnitWriter& writer);
std::unique_ptr<DataReferences> run_references(UnitWriter& writer);

}  // namespace assay::native
