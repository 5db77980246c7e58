#include "framework/collector/results/generated_names.h"

#include "framework/support/descriptor.h"
#include "framework/support/log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace assay::collector {
namespace {

// The program may still write to it.
std::optional<std::string> read_file(const std::string& path, std::time_t begin) {
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    if (file.number() < 0 || fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_mtime < begin || (status.st_uid != geteuid() && status.st_uid != 0))
        return std::nullopt;
    std::string bytes(
        std::min(static_cast<std::size_t>(status.st_size), symbols::GeneratedCode::kMostBytes),
        '\0');
    std::size_t size = 0;
    while (size < bytes.size()) {
        const ssize_t got = read(file.number(), bytes.data() + size, bytes.size() - size);
        if (got <= 0) break;
        size += static_cast<std::size_t>(got);
    }
    bytes.resize(size);
    return bytes;
}

bool is_jitdump(std::string_view path) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name.starts_with("jit-") && name.ends_with(".dump");
}

void remark(const std::string& path, const std::string& problem) {
    if (!problem.empty()) log::remark(fmt::format("{}: {}", path, problem));
}

}  // namespace

symbols::GeneratedCode read_generated_names(pid_t pid, const AddressMap& addresses,
                                            std::time_t begin) {
    symbols::GeneratedCode code;
    const std::string map = fmt::format("/tmp/perf-{}.map", pid);
    if (const auto text = read_file(map, begin)) remark(map, code.add_perf_map(map, *text));
    std::set<std::string> dumps;
    for (const Mapping& mapping : addresses.mappings()) {
        const std::string& path = *mapping.path;
        if (!is_jitdump(path) || !dumps.insert(path).second) continue;
        if (const auto bytes = read_file(path, begin)) remark(path, code.add_jitdump(path, *bytes));
    }
    return code;
}

void LinkageNames::add(std::span<const symbols::Frame> frames) {
    if (last_.size() < frames.size()) last_.resize(frames.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const std::string_view name = frames[frames.size() - 1 - i].linkage;
        // Mostly it is what it was.
        if (name.empty() || last_[i] == name.data()) continue;
        last_[i] = name.data();
        if (!known_.insert(name.data()).second) continue;
        const auto [known, is_new] =
            names_.try_emplace(frames[frames.size() - 1 - i].function, name);
        if (!is_new && name < known->second) known->second = name;
    }
}

void LinkageNames::write(events::Writer& writer) const {
    for (const auto& [function, name] : names_) writer.linkage(function, name);
}

}  // namespace assay::collector
