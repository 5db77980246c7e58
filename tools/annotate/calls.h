// Functions with what they and all that they called count, their callers and their callees.
#pragma once

#include "tools/output/json_writer.h"
#include "tools/output/output.h"
#include "tools/profile/whole_profile.h"
#include "tools/table/sort.h"
#include "tools/table/table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::annotate {

class CallTable {
  public:
    CallTable(const WholeProfile& profile, const Columns& columns,
              const std::vector<SortColumn>& sort);

    void write(Output& output) const;
    // Under the key "calls".
    void write_json(JsonWriter& json) const;

  private:
    struct Call {
        std::string_view file, function;  // of the caller, or of the callee
        std::uint64_t number;             // 0 if unknown
        std::vector<std::uint64_t> counts;
    };
    struct Function {
        std::string_view file, name;
        std::vector<std::uint64_t> exclusive, inclusive;
        std::vector<Call> callers, callees;
    };

    bool is_shown(Counts counts) const;
    bool is_call_shown(Counts counts) const;
    void put_in_order(std::vector<Call>& calls) const;
    void write_calls(std::string_view mark, const std::vector<Call>& calls, const Table& table,
                     Output& output) const;
    void write_json_calls(std::string_view key, const std::vector<Call>& calls,
                          JsonWriter& json) const;

    const Columns& columns_;
    const std::vector<SortColumn>& sort_;
    std::vector<Function> functions_;  // those above the threshold, the most important first
};

}  // namespace assay::annotate
