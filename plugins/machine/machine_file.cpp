#include "plugins/machine/machine_file.h"

#include "plugins/common/geometry.h"
#include "plugins/machine/changes.h"
#include "plugins/machine/checks.h"
#include "plugins/machine/prefetcher.h"
#include "plugins/machine/replacement.h"
#include "plugins/machine/words.h"

#include <assay/text.hpp>

#include <yaml-cpp/yaml.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace machine {
namespace {

class Reader {
  public:
    explicit Reader(std::string name) : name_(std::move(name)) {}

    Machine machine(const YAML::Node& root);

  private:
    // A value of a change has no line.
    [[noreturn]] void fail(const YAML::Node& node, const std::string& what) const {
        throw std::runtime_error(
            name_ +
            (node.Mark().is_null() ? " with --set" : ":" + std::to_string(node.Mark().line + 1)) +
            ": " + what);
    }
    template <typename Take>
    void each(const YAML::Node& map, const std::string& what, const Take& take) const {
        if (!map.IsMap()) fail(map, what + ": write one \"key: value\" per line");
        for (const auto& pair : map) take(pair.first.Scalar(), pair.first, pair.second);
    }
    [[noreturn]] void unknown(const YAML::Node& key, const std::vector<std::string>& known) const;

    std::string text(const YAML::Node& node, const std::string& key) const;
    std::uint64_t size(const YAML::Node& node, const std::string& key) const;
    std::uint64_t address(const YAML::Node& node, const std::string& key) const;
    std::uint32_t number(const YAML::Node& node, const std::string& key, std::uint32_t least,
                         std::uint32_t most) const;
    // Accepts one of the words. Its index becomes the value.
    template <typename Value>
    void choose(const YAML::Node& node, const std::string& key,
                const std::vector<std::string>& words, Value& value) const;
    void choose(const YAML::Node& node, const std::string& key, bool& value) const;

    void take(Machine& machine, const std::string& key, const YAML::Node& at,
              const YAML::Node& value) const;
    void take_threads(Machine& machine, const YAML::Node& node) const;
    Cache cache(const std::string& name, const YAML::Node& node) const;
    bool take(Cache& cache, const std::string& key, const YAML::Node& value) const;
    Tlb tlb(const std::string& name, const YAML::Node& node) const;
    Uncached uncached(const YAML::Node& node) const;
    std::vector<std::uint64_t> page_sizes(const YAML::Node& node) const;
    Replacement replacement(const YAML::Node& node) const;
    std::vector<Prefetch> prefetchers(const YAML::Node& node) const;
    Prefetch prefetcher(const YAML::Node& node) const;
    // The path of a library. A relative path starts at the machine file's folder.
    std::string library(const std::string& path) const;

    std::string name_;
};

const std::vector<std::string> kMachineKeys = {
    "machine", "cores",   "clusters", "threads", "line",   "page", "transparent", "coherence",
    "sharers", "sharing", "memory",   "walk",    "caches", "tlbs", "uncached"};
const std::vector<std::string> kCacheKeys = {
    "level",  "holds",    "of",          "size",     "ways", "hash",     "inclusion",
    "writes", "allocate", "replacement", "prefetch", "late", "classify", "latency"};
const std::vector<std::string> kTlbKeys = {"level", "holds",       "entries", "ways",
                                           "pages", "replacement", "latency"};
const std::vector<std::string> kHolds = {"instructions", "data", "both"};

void Reader::unknown(const YAML::Node& key, const std::vector<std::string>& known) const {
    const std::string near = assay::similar_word(key.Scalar(), known);
    fail(key, "unknown key " + in_quotes(key.Scalar()) +
                  (near.empty() ? "; use " + one_of(known) : "; did you mean " + near + "?"));
}

std::string Reader::text(const YAML::Node& node, const std::string& key) const {
    if (!node.IsScalar()) fail(node, key + " needs one plain value");
    return node.Scalar();
}

std::uint64_t Reader::size(const YAML::Node& node, const std::string& key) const {
    std::uint64_t found = 0;
    const std::string value = text(node, key);
    if (!cache::parse_size(value, found))
        fail(node, key + ": " + in_quotes(value) + " is not a size; write bytes, 32K or 8M");
    return found;
}

std::uint64_t Reader::address(const YAML::Node& node, const std::string& key) const {
    const std::string value = text(node, key);
    const std::size_t prefix = value.starts_with("0x") ? 2 : 0;
    std::uint64_t found = 0;
    const auto [end, error] = std::from_chars(value.data() + prefix, value.data() + value.size(),
                                              found, prefix == 0 ? 10 : 16);
    if (error != std::errc{} || end != value.data() + value.size())
        fail(node, key + ": " + in_quotes(value) + " is not an address; write 0x20000000");
    return found;
}

std::uint32_t Reader::number(const YAML::Node& node, const std::string& key, std::uint32_t least,
                             std::uint32_t most) const {
    const std::string value = text(node, key);
    std::uint32_t found = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), found);
    if (error != std::errc{} || end != value.data() + value.size() || found < least || found > most)
        fail(node, key + ": " + in_quotes(value) + "; use " + std::to_string(least) + " to " +
                       std::to_string(most));
    return found;
}

template <typename Value>
void Reader::choose(const YAML::Node& node, const std::string& key,
                    const std::vector<std::string>& words, Value& value) const {
    const std::string given = text(node, key);
    const auto found = std::find(words.begin(), words.end(), given);
    if (found == words.end()) fail(node, key + ": " + in_quotes(given) + "; use " + one_of(words));
    value = static_cast<Value>(found - words.begin());
}

void Reader::choose(const YAML::Node& node, const std::string& key, bool& value) const {
    int which = 0;
    choose(node, key, {"no", "yes"}, which);
    value = which == 1;
}

std::string Reader::library(const std::string& path) const {
    if (path.starts_with('/')) return path;
    const std::size_t folder = name_.rfind('/');
    return (folder == name_.npos ? "./" : name_.substr(0, folder + 1)) + path;
}

Replacement Reader::replacement(const YAML::Node& node) const {
    Replacement found;
    const auto policy = [&](const YAML::Node& value) {
        found.policy = text(value, "replacement");
        if (is_policy(found.policy)) return;
        if (!found.policy.ends_with(".so"))
            fail(value, "replacement: " + in_quotes(found.policy) + "; use " +
                            one_of(policy_names()) + ", or a library, ./mine.so");
        found.policy = library(found.policy);
    };
    if (!node.IsMap()) {
        policy(node);
        return found;
    }
    if (node["policy"]) policy(node["policy"]);
    each(node, "replacement",
         [&](const std::string& key, const YAML::Node& at, const YAML::Node& value) {
             if (key == "policy") return;
             if (key == "seed")
                 found.seed = number(value, key, 0, UINT32_MAX);
             else if (!is_policy(found.policy))
                 found.parameters.emplace_back(key, text(value, key));
             else
                 unknown(at, {"policy", "seed"});
         });
    return found;
}

Prefetch Reader::prefetcher(const YAML::Node& node) const {
    Prefetch found;
    const auto kind = [&](const YAML::Node& value) {
        found.kind = text(value, "prefetch");
        if (is_prefetcher(found.kind)) return;
        if (!found.kind.ends_with(".so"))
            fail(value, "prefetch: " + in_quotes(found.kind) + "; use " +
                            one_of(prefetcher_names()) + ", or a library, ./mine.so");
        found.kind = library(found.kind);
    };
    if (!node.IsMap()) {
        kind(node);
        return found;
    }
    if (!node["kind"]) fail(node, "prefetch needs a kind");
    kind(node["kind"]);
    each(node, "prefetch",
         [&](const std::string& key, const YAML::Node& at, const YAML::Node& value) {
             if (key == "kind") return;
             if (key == "degree")
                 found.degree = number(value, key, 1, Prefetcher::kMostLines);
             else if (key == "distance")
                 found.distance = number(value, key, 1, 1024);
             else if (!is_prefetcher(found.kind))
                 found.parameters.emplace_back(key, text(value, key));
             else
                 unknown(at, {"kind", "degree", "distance"});
         });
    return found;
}

std::vector<Prefetch> Reader::prefetchers(const YAML::Node& node) const {
    std::vector<Prefetch> found;
    if (node.IsSequence())
        for (const YAML::Node& one : node) found.push_back(prefetcher(one));
    else
        found.push_back(prefetcher(node));
    return found;
}

bool Reader::take(Cache& cache, const std::string& key, const YAML::Node& value) const {
    if (key == "level")
        cache.level = number(value, key, 1, kMostLevels);
    else if (key == "holds")
        choose(value, key, kHolds, cache.holds);
    else if (key == "of")
        choose(value, key, {"core", "cluster", "machine"}, cache.of);
    else if (key == "size")
        cache.size = size(value, key);
    else if (key == "ways")
        cache.ways = number(value, key, 1, cache::kMostWays);
    else if (key == "hash")
        choose(value, key, {"modulus", "xor"}, cache.hash);
    else if (key == "inclusion")
        choose(value, key, {"none", "inclusive", "exclusive"}, cache.inclusion);
    else if (key == "writes") {
        int which = 0;
        choose(value, key, {"back", "through"}, which);
        cache.counts_writes = true;
        cache.write_back = which == 0;
    } else if (key == "allocate")
        choose(value, key, cache.write_allocate);
    else if (key == "replacement")
        cache.replacement = replacement(value);
    else if (key == "prefetch")
        cache.prefetch = prefetchers(value);
    else if (key == "late")
        cache.late = number(value, key, 0, 1'000'000'000);
    else if (key == "classify")
        choose(value, key, cache.classify);
    else if (key == "latency")
        cache.latency = number(value, key, 0, 1'000'000);
    else
        return false;
    return true;
}

Cache Reader::cache(const std::string& name, const YAML::Node& node) const {
    Cache found;
    found.name = name;
    each(node, name, [&](const std::string& key, const YAML::Node& at, const YAML::Node& value) {
        if (!take(found, key, value)) unknown(at, kCacheKeys);
    });
    return found;
}

std::vector<std::uint64_t> Reader::page_sizes(const YAML::Node& node) const {
    std::vector<std::uint64_t> found;
    const auto take = [&](const YAML::Node& one) {
        found.push_back(size(one, "pages"));
        const std::string wrong = complaint_of_page("pages", found.back());
        if (!wrong.empty()) fail(one, wrong);
    };
    if (node.IsSequence())
        for (const YAML::Node& one : node) take(one);
    else
        take(node);
    if (found.empty()) fail(node, "pages: the list is empty");
    return found;
}

Tlb Reader::tlb(const std::string& name, const YAML::Node& node) const {
    Tlb found;
    found.name = name;
    each(node, name, [&](const std::string& key, const YAML::Node& at, const YAML::Node& value) {
        if (key == "level")
            found.level = number(value, key, 1, kMostLevels);
        else if (key == "holds")
            choose(value, key, kHolds, found.holds);
        else if (key == "entries")
            found.entries = number(value, key, 1, 1 << 20);
        else if (key == "ways")
            found.ways = number(value, key, 1, cache::kMostWays);
        else if (key == "pages")
            found.pages = page_sizes(value);
        else if (key == "replacement")
            found.replacement = replacement(value);
        else if (key == "latency")
            found.latency = number(value, key, 0, 1'000'000);
        else
            unknown(at, kTlbKeys);
    });
    if (found.ways == 0) found.ways = found.entries;
    return found;
}

Uncached Reader::uncached(const YAML::Node& node) const {
    Uncached found;
    each(node, "uncached",
         [&](const std::string& key, const YAML::Node& at, const YAML::Node& value) {
             if (key == "from")
                 found.from = address(value, key);
             else if (key == "size")
                 found.size = size(value, key);
             else
                 unknown(at, {"from", "size"});
         });
    if (found.size == 0)
        fail(node, "uncached: each range needs a size: {from: 0x20000000, size: 64K}");
    return found;
}

void Reader::take_threads(Machine& machine, const YAML::Node& node) const {
    if (!node.IsSequence())
        return choose(node, "threads", {"as-they-come", "round-robin"}, machine.placement);
    machine.placement = Placement::kList;
    for (const YAML::Node& one : node)
        machine.core_of_thread.push_back(number(one, "threads", 0, kMostCores - 1));
    if (machine.core_of_thread.empty()) fail(node, "threads: the list is empty");
}

void Reader::take(Machine& machine, const std::string& key, const YAML::Node& at,
                  const YAML::Node& value) const {
    const auto complain = [&](const YAML::Node& node, const std::string& what) {
        if (!what.empty()) fail(node, what);
    };
    if (key == "machine") {
        machine.name = text(value, key);
    } else if (key == "cores") {
        machine.cores = text(value, key) == "threads" ? 0 : number(value, key, 1, kMostCores);
    } else if (key == "clusters") {
        machine.clusters = number(value, key, 1, kMostCores);
    } else if (key == "threads") {
        take_threads(machine, value);
    } else if (key == "line") {
        machine.line =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(size(value, key), 1 << 30));
        complain(value, complaint_of_line(machine.line));
    } else if (key == "page") {
        machine.page = 0;
        if (text(value, key) == "mapped") return;
        machine.page = size(value, key);
        complain(value, complaint_of_page(key, machine.page));
    } else if (key == "transparent") {
        choose(value, key, {"always", "madvise", "never"}, machine.transparent);
    } else if (key == "coherence") {
        choose(value, key, {"none", "mesi", "moesi"}, machine.protocol);
    } else if (key == "sharers") {
        choose(value, key, {"snooping", "directory"}, machine.directory);
    } else if (key == "sharing") {
        choose(value, key, machine.sharing);
    } else if (key == "memory") {
        machine.memory_latency = number(value, key, 0, 1'000'000);
    } else if (key == "walk") {
        machine.walk_latency = number(value, key, 0, 1'000'000);
    } else if (key == "caches") {
        each(value, key,
             [&](const std::string& name, const YAML::Node& where, const YAML::Node& node) {
                 machine.caches.push_back(cache(name, node));
                 complain(where, complaint_of_name(machine, name));
             });
    } else if (key == "tlbs") {
        each(value, key,
             [&](const std::string& name, const YAML::Node& where, const YAML::Node& node) {
                 machine.tlbs.push_back(tlb(name, node));
                 complain(where, complaint_of_name(machine, name));
             });
    } else if (key == "uncached") {
        if (!value.IsSequence())
            fail(value, "uncached: write a list, [{from: 0x20000000, size: 64K}]");
        for (const YAML::Node& one : value) machine.uncached.push_back(uncached(one));
    } else {
        unknown(at, kMachineKeys);
    }
}

Machine Reader::machine(const YAML::Node& root) {
    Machine found;
    each(root, "a machine",
         [&](const std::string& key, const YAML::Node& at, const YAML::Node& value) {
             take(found, key, at, value);
         });
    if (root["transparent"] && found.page != 0)
        fail(root["transparent"], "transparent needs page: mapped");
    for (const Complaint& complaint : complaints(found)) {
        const YAML::Node group = root[complaint.of_tlb ? "tlbs" : "caches"];
        fail(complaint.name.empty() ? root : group[complaint.name], complaint.why);
    }
    const auto by_level = [](const auto& a, const auto& b) {
        return std::pair(a.level, a.holds) < std::pair(b.level, b.holds);
    };
    std::stable_sort(found.caches.begin(), found.caches.end(), by_level);
    std::stable_sort(found.tlbs.begin(), found.tlbs.end(), by_level);
    return found;
}

// Opening a FIFO would block until another process writes to it.
std::string contents(const std::string& path) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
        throw std::runtime_error("cannot read the machine file " + path +
                                 ": it is not a regular file; name a file that is one");
    std::ifstream file(path);
    if (file) return {std::istreambuf_iterator<char>(file), {}};
    throw std::runtime_error("cannot read the machine file " + path +
                             (error ? ": " + error.message() : ""));
}

}  // namespace

Machine parse_machine(const std::string& text, const std::string& name,
                      const std::vector<Change>& changes) {
    try {
        const YAML::Node root = YAML::Load(text);
        for (const Change& change : changes) apply(change, root);
        return Reader(name).machine(root);
    } catch (const YAML::Exception& e) {
        throw std::runtime_error(name + ":" + std::to_string(e.mark.line + 1) + ": " + e.msg);
    }
}

Machine read_machine(const std::string& file_or_name, const std::vector<Change>& changes) {
    const bool is_file = file_or_name.find('/') != file_or_name.npos ||
                         file_or_name.ends_with(".yaml") || file_or_name.ends_with(".yml");
    if (is_file) return parse_machine(contents(file_or_name), file_or_name, changes);
    for (const ShippedMachine& machine : kShippedMachines)
        if (machine.name == file_or_name)
            return parse_machine(std::string(machine.text), file_or_name, changes);
    const std::vector<std::string> names = machine_names();
    const std::string near = assay::similar_word(file_or_name, names);
    throw std::runtime_error(
        "no machine is named " + in_quotes(file_or_name) +
        (near.empty() ? "; the machines are " + one_of(names) : "; did you mean " + near + "?") +
        " (a file needs a / or the ending .yaml)");
}

std::vector<std::string> machine_names() {
    std::vector<std::string> names(kShippedMachines.size());
    std::transform(kShippedMachines.begin(), kShippedMachines.end(), names.begin(),
                   [](const ShippedMachine& machine) { return std::string(machine.name); });
    return names;
}

}  // namespace machine
