// Other layouts of a struct that may be better, to be tried: its members in another order, or in
// two structs.
#pragma once

#include "plugins/struct_layout/structs.h"

#include <cstdint>
#include <string>
#include <vector>

namespace struct_layout {

struct Layout {
    struct Part {
        std::vector<std::uint32_t> units;  // in their order
        std::uint64_t bytes = 0, alignment = 1;
        bool padded = false;   // at its end, to be as large as it is
        bool aligned = false;  // to more than its members need
    };
    std::string name;
    std::vector<Part> parts;             // two: an instance is an element of two arrays
    std::vector<std::uint32_t> part_of;  // by unit
    std::vector<std::uint64_t> offsets;  // by unit, in its part

    // Whether instances are where they were, so that arrays need not be known.
    bool keeps_places(const Struct& of) const {
        return parts.size() == 1 && parts[0].bytes == of.bytes;
    }
};

// Those to try, each once. What is used together comes together, in lines of that size.
std::vector<Layout> layouts(const Struct& of, std::uint64_t line);

// As C, with offsets.
std::string text(const Layout& layout, const Struct& of);

}  // namespace struct_layout
