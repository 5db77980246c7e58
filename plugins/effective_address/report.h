// Writes the results for people: a summary, and a report of every instruction.
#pragma once

#include "plugins/effective_address/operand.h"
#include "plugins/effective_address/sharing.h"
#include "plugins/effective_address/tracker.h"

#include <functional>
#include <string>

namespace effective_address {

// The place of an instruction in the source, such as "walk.c:12 (by_rows)".
using Place = std::function<std::string(std::uint64_t pc)>;

// The data at an address, such as "table + 8"; "" if unknown.
using NamedData = std::function<std::string(std::uint64_t address)>;

struct Results {
    const Tracker& tracker;
    const SharingResult& sharing;
    Place place;
    NamedData data;
    NamedField field;
    double scale = 1;  // of counts: trace_parser_scale
};

// Includes the lines with the most false sharing.
std::string summarise(const Results& results);
// Writes all operands, the most executed first, and all falsely shared lines. Returns false on
// failure.
bool write_report(const Results& results, const std::string& file);

// The instructions for which summary and report call Place.
std::vector<std::uint64_t> instructions_of_summary(const Results& results);
std::vector<std::uint64_t> instructions_of_report(const Results& results);

// "constant 8", "few: 8 90%, -720 10%" or "irregular".
std::string describe_strides(const Operand& operand);

}  // namespace effective_address
