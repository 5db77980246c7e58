// Changes of fields of a machine file, before it is read (--set).
#pragma once

#include <string>

namespace YAML {
class Node;
}

namespace machine {

// A field that gets another value than the file has. `key` is that of the machine, CACHE.KEY, or
// CACHE.KEY.PARAMETER. `value` is YAML.
struct Change {
    std::string key, value;
};

// `root`: the machine file. The new value has no line. Throws std::runtime_error if there is no
// such cache, or if the value is no YAML.
void apply(const Change& change, YAML::Node root);

}  // namespace machine
