// Which events are of references to data.
#pragma once

#include <string_view>

namespace assay::collector {

// False for events that executions of an instruction have, whatever they refer to.
inline bool is_of_data(std::string_view unit) {
    return unit != "instructions" && unit != "branches" && unit != "mispredictions" &&
           unit != "calls" && unit != "executions";
}

}  // namespace assay::collector
