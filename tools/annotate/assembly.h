// The text of the instructions that are shown below source lines.
#pragma once

#include "tools/profile/function_profile.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay::annotate {

struct Assembly {
    // By object and address. What is missing here has no code that could be read.
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> text;
    // Why objects have none, with remedies.
    std::vector<std::string> problems;
};

// Of all instructions that the profile has read details of.
Assembly assembly_of(const FunctionProfile& profile);

}  // namespace assay::annotate
