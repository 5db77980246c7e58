// The values that an option is swept over, as lists and ranges on the command line:
// docs/reference/sweep.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::sweep {

inline constexpr std::size_t kMostValues = 10'000;

// What one value of an option looks like.
struct ValueForm {
    std::string option;    // as it is written, for messages: --D1
    std::string argument;  // what stands for a value in the help: SIZE,WAYS,LINE
    std::uint64_t kilo;    // what K stands for: 1024 of bytes, 1000 of counts

    // Then commas do not separate values, but blanks do.
    bool has_commas() const { return argument.find(',') != std::string::npos; }
};

// All values of what was given, each once, in the order in which they were first named. Throws
// Error with the bad item and what is expected instead.
std::vector<std::string> listed_values(const ValueForm& form, std::span<const std::string> given);

// The size behind a value, for a logarithmic axis: of the first field that is not the same in all
// values, a number that may have K, M or G behind it; or of its only field. Empty if the values
// differ in no such field or have none.
std::vector<std::uint64_t> sizes_of(const ValueForm& form, std::span<const std::string> values);

}  // namespace assay::sweep
