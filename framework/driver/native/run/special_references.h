// References of instructions whose addresses are known only when they run.
#pragma once

#include "framework/driver/native/code_cache/code_watch.h"
#include "framework/driver/native/machine/driver_lock.h"
#include "framework/driver/native/trace/thread_trace.h"

#include <algorithm>
#include <optional>

namespace assay::native {

// Records single references whose addresses C++ code has computed. Uses the same filter of data
// references as translated code, and the first-level cache if it is simulated.
class ReferenceRecorder {
  public:
    // `first_site`: the instruction's first site. Footprints use the site before it, and objects
    // the sites before it: one for each of the form's `references`.
    ReferenceRecorder(const trace::Spec& spec, Context& context, ThreadTrace& trace,
                      std::uint32_t first_site, std::uint32_t references)
        : context_(context),
          trace_(trace),
          line_(spec.data.line_bytes),
          sets_(spec.data.sets),
          span_(std::min(kFilterSpan, line_ * sets_)),
          first_level_(spec.data.ways != 0 ? context.first_level : nullptr),
          footprints_(spec.data.footprints()),
          first_writes_(spec.data.first_writes()),
          footprint_site_(first_site - 1),
          to_object_site_(trace::records_objects(spec) ? references : 0),
          context_number_(trace::tells_contexts(spec) ? context.calls.node->number : 0) {}

    void reference(std::uint64_t address, unsigned bytes, std::uint32_t site) {
        if (sets_ == 0) return trace_.append(address, site);
        if (to_object_site_ != 0) trace_.append(address, site - to_object_site_);
        const std::uint64_t first = address & ~std::uint64_t{line_ - 1};
        const std::uint64_t last = (address + bytes - 1) & ~std::uint64_t{line_ - 1};
        if (footprints_) return footprint(address, bytes, site, first, last);
        if (first_writes_) return first_write(address, site, first, last);
        const bool straddles = first != last;
        if (entry(first) == first && !straddles) return;
        if (first_level_ != nullptr) {
            if (first_level_->refers(address, bytes)) trace_.append(address, site, context_number_);
            return;
        }
        entry(first) = first;
        if (straddles) entry(last) = last;
        trace_.append(address, site);
    }

  private:
    // A reference to any number of lines. See filtered_references.cpp.
    void footprint(std::uint64_t address, unsigned bytes, std::uint32_t site, std::uint64_t first,
                   std::uint64_t last) {
        if (first == last && entry(first) == first) {
            const std::uint64_t bits = ~std::uint64_t{0} >> (64 - bytes) << (address % line_);
            trace_.touched(place(first)) |= bits;
            return;
        }
        const std::uint64_t lines = (last - first) / line_ + 1;
        trace_.make_room(lines + 1);
        std::uint64_t line = first;
        for (std::uint64_t i = 0; i < lines; ++i, line += line_) {
            const std::uint64_t at = place(line);
            trace_.append(trace_.touched(at).exchange(0), footprint_site_,
                          static_cast<std::uint32_t>(at));
            entry(line) = line;
        }
        trace_.append(address, site);
    }

    // The reference is always recorded. See record_stubs.cpp.
    void first_write(std::uint64_t address, std::uint32_t site, std::uint64_t first,
                     std::uint64_t last) {
        for (const std::uint64_t line : {first, last}) {
            (&entry(line))[0] = line;
            (&entry(line))[1] = 0;
        }
        trace_.append(address, site);
    }

    // The place of the line's entry in the filter.
    std::uint64_t place(std::uint64_t line) const {
        return line & (span_ - std::min(span_, line_));
    }
    std::uint64_t& entry(std::uint64_t line) {
        return *reinterpret_cast<std::uint64_t*>(context_.data_filter + place(line));
    }

    Context& context_;
    ThreadTrace& trace_;
    std::uint32_t line_, sets_, span_;
    FirstLevel* first_level_;  // if only its misses are recorded
    bool footprints_, first_writes_;
    std::uint32_t footprint_site_;
    std::uint32_t
        to_object_site_;  // from the site of a reference back to that of its object; 0: none
    std::uint32_t context_number_;  // for `aux` in records of references
};

class RepeatedString;

// The first access of an instruction with a Special: the address of each reference.
struct FirstAccess {
    std::uint64_t address[2] = {0, 0};
};
// To be called before the instruction runs. Returns nullopt if it will access no memory.
std::optional<FirstAccess> first_access(const Context& context, const Instruction& instruction);

// The special references of one thread.
class SpecialReferences {
  public:
    // `lock` is the lock of `watch`; the callers of record() do not hold it.
    SpecialReferences(const TraceTables& tables, ThreadTrace& trace, Context& context,
                      const CodeWatch& watch, DriverLock& lock)
        : tables_(tables), trace_(trace), context_(context), watch_(watch), lock_(lock) {}

    // Records the references of the instruction, right before it runs.
    void record(const Instruction& instruction, std::uint32_t first_site);

  private:
    ReferenceRecorder recorder(const Instruction& instruction, std::uint32_t first_site) {
        return {tables_.spec(), context_, trace_, first_site, instruction.form->reference_count};
    }
    void record_string(const Instruction& instruction, std::uint32_t site);
    void predict_iterations(const Instruction& instruction, const RepeatedString& string,
                            std::uint32_t site);
    void record_gather(const Instruction& instruction, std::uint32_t site);
    void record_single(const Instruction& instruction, std::uint64_t address, unsigned bytes,
                       std::uint32_t site);
    void forget_recent_lines();
    void record_large(const Instruction& instruction, std::uint32_t site);

    const TraceTables& tables_;
    ThreadTrace& trace_;
    Context& context_;
    const CodeWatch& watch_;
    DriverLock& lock_;
};

// Records values of instructions whose references have to be computed when they run. The driver is
// entered before and after such an instruction. Values that cannot be read are left out. Also reads
// values that translated code cannot read, for any instruction. Each thread has one object.
class SpecialValues {
  public:
    SpecialValues(const TraceTables& tables, ThreadTrace& trace, Context& context)
        : tables_(tables), trace_(trace), context_(context) {}

    // read() reads values before the instruction; record() reads the rest and records all.
    void read(const Instruction& instruction);
    void record(const Instruction& instruction, std::uint32_t first_site);
    // Reads the values that are only in the saved state, before or after any instruction.
    // Translated code then records them.
    void read_saved(const Instruction& instruction, bool before);

  private:
    const TraceTables& tables_;
    ThreadTrace& trace_;
    Context& context_;
};

}  // namespace assay::native
