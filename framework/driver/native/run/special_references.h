// What instructions refer to whose addresses only their execution tells.
#pragma once

#include "framework/driver/native/code_cache/code_watch.h"
#include "framework/driver/native/machine/driver_lock.h"
#include "framework/driver/native/run/reference_recorder.h"

#include <optional>

namespace assay::native {

class RepeatedString;

// The first access of an instruction with a Special: the address for each of its references.
struct FirstAccess {
    std::uint64_t address[2] = {0, 0};
};
// Before the instruction is executed; nothing if it will make no access.
std::optional<FirstAccess> first_access(const Context& context, const Instruction& instruction);

// Of one thread.
class SpecialReferences {
  public:
    // `lock`, which the callers of record() do not hold, is that of `watch`.
    SpecialReferences(const TraceTables& tables, ThreadTrace& trace, Context& context,
                      const CodeWatch& watch, DriverLock& lock)
        : tables_(tables), trace_(trace), context_(context), watch_(watch), lock_(lock) {}

    // Records those of such an instruction, as it is about to be executed.
    void record(const Instruction& instruction, std::uint32_t first_site);

  private:
    ReferenceRecorder recorder(std::uint32_t first_site) {
        return {tables_.spec(), context_, trace_, first_site};
    }
    void record_string(const Instruction& instruction, std::uint32_t site);
    void predict_iterations(const Instruction& instruction, const RepeatedString& string,
                            std::uint32_t site);
    void record_gather(const Instruction& instruction, std::uint32_t site);
    void record_single(std::uint64_t address, unsigned bytes, std::uint32_t site);
    void forget_recent_lines();
    void record_large(const Instruction& instruction, std::uint32_t site);

    const TraceTables& tables_;
    ThreadTrace& trace_;
    Context& context_;
    const CodeWatch& watch_;
    DriverLock& lock_;
};

}  // namespace assay::native
