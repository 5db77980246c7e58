// Positions in the source that a profile will need, found while the program still runs: reading
// the debug information of libc alone takes longer than a small program.
#pragma once

#include "framework/collector/trace/address_map.h"
#include "framework/collector/trace/code_tables.h"
#include "framework/symbols/symbolizer.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

namespace assay::collector {

class EarlyPositions {
  public:
    explicit EarlyPositions(symbols::Symbolizer& symbolizer) : symbolizer_(symbolizer) {}

    // To be called now and then while the program runs. Has positions found in what has been
    // translated. Returns at once.
    void prepare(const CodeTables& code, const AddressMap& addresses);
    // At its end, for the rest of it. `executions`: of each instruction, or nothing.
    void prepare_rest(const CodeTables& code, const AddressMap& addresses,
                      std::span<const std::uint64_t> executions);

  private:
    using Clock = std::chrono::steady_clock;
    // A program as short as that is left for its end.
    static constexpr std::chrono::milliseconds kFirst{15};

    void prepare_code(const CodeTables& code, const AddressMap& addresses,
                      std::span<const std::uint64_t> executions);

    symbols::Symbolizer& symbolizer_;
    std::size_t instrs_ = 0;  // that have been asked for
    const Clock::time_point start_ = Clock::now();
    Clock::duration next_ = kFirst;  // since the start
};

}  // namespace assay::collector
