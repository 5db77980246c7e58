// What values are that are addresses in a program's files: functions, variables, sections. Where a
// file was, its profile says (`load` in docs/events-file.md); what is there, the file, if it still
// is what was profiled. An integer that happens to be such a number is taken for an address, too.
#pragma once

#include "framework/events/header.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

class ValueSymbols {
  public:
    // Looks all of the values up at once.
    ValueSymbols(const std::vector<events::Object>& objects, std::vector<std::uint64_t> values);

    // "name", "name+0x8", ".bss+0x10 in libx.so"; "" if the value is no known address. The file is
    // named where it is not the first object, which mostly is the program.
    std::string_view name(std::uint64_t value) const;

  private:
    void add(const events::Object& object, bool is_first, const std::vector<std::uint64_t>& values);

    std::map<std::uint64_t, std::string> names_;
};

}  // namespace assay
