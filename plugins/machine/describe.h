// A machine in words, for the header of a profile.
#pragma once

#include "plugins/machine/machine.h"

#include <string>
#include <utility>
#include <vector>

namespace machine {

// For the machine, and each cache and translation buffer: a name and what it is.
std::vector<std::pair<std::string, std::string>> describe(const Machine& machine);

}  // namespace machine
