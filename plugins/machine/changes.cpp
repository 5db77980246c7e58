#include "plugins/machine/changes.h"

#include "plugins/machine/words.h"

#include <yaml-cpp/yaml.h>
#include <stdexcept>
#include <vector>

namespace machine {
namespace {

// A copy without lines, which would be those of another text.
YAML::Node without_lines(const YAML::Node& node) {
    if (node.IsMap()) {
        YAML::Node copy(YAML::NodeType::Map);
        for (const auto& pair : node)
            copy.force_insert(pair.first.Scalar(), without_lines(pair.second));
        return copy;
    }
    if (!node.IsSequence()) return YAML::Node(node.Scalar());
    YAML::Node copy(YAML::NodeType::Sequence);
    for (const YAML::Node& one : node) copy.push_back(without_lines(one));
    return copy;
}

// Returns the cache or translation buffer of that name.
YAML::Node addressed(const YAML::Node& root, const std::string& name, const Change& change) {
    std::vector<std::string> names;
    for (const char* const group : {"caches", "tlbs"}) {
        const YAML::Node all = root[group];
        if (!all || !all.IsMap()) continue;
        for (const auto& pair : all) {
            if (pair.first.Scalar() == name) return pair.second;
            names.push_back(pair.first.Scalar());
        }
    }
    throw std::runtime_error("--set=" + change.key + "=" + change.value + ": the machine has no " +
                             in_quotes(name) + "; use " + one_of(names));
}

}  // namespace

void apply(const Change& change, YAML::Node root) {
    if (!root.IsMap()) return;  // the reader complains
    YAML::Node value;
    try {
        value = without_lines(YAML::Load(change.value));
    } catch (const YAML::Exception& e) {
        throw std::runtime_error("--set=" + change.key + "=" + change.value + ": " + e.msg);
    }
    const std::size_t dot = change.key.find('.');
    if (dot == std::string::npos) {
        root[change.key] = value;
        return;
    }
    YAML::Node where = addressed(root, change.key.substr(0, dot), change);
    const std::string key = change.key.substr(dot + 1);
    const std::size_t next = key.find('.');
    if (next == std::string::npos) {
        where[key] = value;
        return;
    }
    // A parameter: "prefetch: stride" becomes "prefetch: {kind: stride}" first.
    const std::string outer = key.substr(0, next);
    if (where[outer] && where[outer].IsScalar()) {
        const std::string kind = where[outer].Scalar();
        where[outer] = YAML::Node(YAML::NodeType::Map);
        where[outer][outer == "prefetch" ? "kind" : "policy"] = kind;
    }
    if (!where[outer] || !where[outer].IsMap())
        throw std::runtime_error("--set=" + change.key + "=" + change.value + ": " +
                                 change.key.substr(0, dot) + " has no " + outer +
                                 " with parameters");
    where[outer][key.substr(next + 1)] = value;
}

}  // namespace machine
