// What lies in a falsely shared line, and what would part those who share it.
#pragma once

#include "plugins/effective_address/sharing.h"

#include <cstdint>
#include <functional>
#include <string>

namespace effective_address {

// What the references of an operand to an address are to, as far as it is known.
struct Field {
    std::string type;         // the outermost one; "" if it is not known
    std::string member;       // the path to it in that, as "inner.count"; "" if there is none
    std::string aligned;      // the first member of that path
    bool is_struct = false;   // of type
    std::uint64_t start = 0;  // of the object of that type; 0 if it is not known
    std::uint64_t bytes = 0;  // of the type
    std::string name() const { return member.empty() ? type : type + "." + member; }
};
using NamedField = std::function<Field(std::uint32_t operand, std::uint64_t address)>;

// What is to be declared differently, as "alignas(64) for counters.second (counters: 16 -> 128
// bytes)"; several with commas between them. `data` tells a variable or block by its address, as
// "table + 8", or "".
std::string parting(const FalselyShared& line, const NamedField& field,
                    const std::function<std::string(std::uint64_t)>& data);

}  // namespace effective_address
