#include "plugins/syscalls/names.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace syscalls {
namespace {

struct Named {
    std::uint64_t number;
    const char* name;
};
// In the order of their numbers.
constexpr Named kNames[] = {
#include "system_call_names.inc"
};

}  // namespace

std::string name_of_call(std::uint64_t number) {
    const Named* const found = std::lower_bound(
        std::begin(kNames), std::end(kNames), number,
        [](const Named& each, std::uint64_t wanted) { return each.number < wanted; });
    if (found != std::end(kNames) && found->number == number) return found->name;
    return "number " + std::to_string(number);
}

std::string name_of_error(std::uint32_t error) {
    const char* const name = strerrorname_np(static_cast<int>(error));
    return name != nullptr ? name : "error " + std::to_string(error);
}

}  // namespace syscalls
