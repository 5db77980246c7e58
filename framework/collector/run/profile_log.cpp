#include "framework/collector/run/profile_log.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

namespace assay::collector {
namespace {

using nlohmann::json;

std::string line_of(const ProfileLog::Entry& entry) {
    return json{{"file", entry.profile.file},     {"pid", entry.profile.pid},
                {"image", entry.profile.image},   {"command", entry.profile.command},
                {"rank", entry.profile.rank},     {"incomplete", entry.profile.incomplete},
                {"counts", entry.profile.counts}, {"events", entry.events},
                {"parent", entry.parent_pid},     {"place", entry.place},
                {"earlier", entry.earlier},       {"parts", entry.part_files},
                {"summary", entry.summary}}
               .dump(-1, ' ', false, json::error_handler_t::replace) +
           '\n';
}

ProfileLog::Entry entry_of(const std::string& line) {
    const json read = json::parse(line);
    ProfileLog::Entry entry;
    entry.profile.file = read.at("file");
    entry.profile.pid = read.at("pid");
    entry.profile.image = read.at("image");
    entry.profile.command = read.at("command");
    entry.profile.rank = read.at("rank");
    entry.profile.incomplete = read.at("incomplete");
    entry.profile.counts = read.at("counts").get<std::vector<std::uint64_t>>();
    entry.events = read.at("events").get<std::vector<std::string>>();
    entry.parent_pid = read.at("parent");
    entry.place = read.at("place");
    entry.earlier = read.at("earlier");
    entry.part_files = read.at("parts");
    entry.summary = read.at("summary");
    return entry;
}

// A later image of a process has the same parent as the first image. Several processes can have the
// same id, one after another: the last one before the entry is the parent.
void find_parents(std::vector<ProfileLog::Entry>& entries) {
    constexpr std::size_t kNone = events::IndexedProfile::kNone;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const auto last = [&](int pid) {
            for (std::size_t before = i; before-- > 0;)
                if (entries[before].profile.pid == pid) return before;
            return kNone;
        };
        events::IndexedProfile& profile = entries[i].profile;
        std::size_t previous = profile.image > 1 ? last(profile.pid) : kNone;
        if (previous != kNone && entries[previous].earlier != entries[i].earlier) previous = kNone;
        profile.parent =
            previous == kNone ? last(entries[i].parent_pid) : entries[previous].profile.parent;
    }
}

}  // namespace

ProfileLog::ProfileLog() : file_(memfd_create("assay profiles", MFD_CLOEXEC)) {
    if (file_ < 0 || fcntl(file_, F_SETFL, O_APPEND) != 0)
        throw Error(fmt::format("cannot make a file in memory: {}", system_reason(errno)));
}

ProfileLog::~ProfileLog() {
    close(file_);
}

// Writes with one call, so that the kernel appends the whole line.
void ProfileLog::add(const Entry& entry) const {
    const std::string line = line_of(entry);
    [[maybe_unused]] const ssize_t written = write(file_, line.data(), line.size());
}

std::vector<ProfileLog::Entry> ProfileLog::entries() const {
    std::string text;
    std::array<char, 65536> block;
    for (ssize_t got = 0;
         (got = pread(file_, block.data(), block.size(), static_cast<off_t>(text.size()))) > 0;)
        text.append(block.data(), static_cast<std::size_t>(got));
    std::vector<Entry> entries;
    for (const std::string& line : split(text, '\n')) {
        if (line.empty()) continue;
        try {
            entries.push_back(entry_of(line));
        } catch (const json::exception&) {
            // a collector was killed while it wrote this line
        }
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.place < b.place; });
    find_parents(entries);
    return entries;
}

// The name of the program can contain any character. It ends at the last parenthesis: proc(5).
int parent_of(int pid) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string line;
    std::getline(file, line);
    const std::size_t behind = line.rfind(") ");
    if (behind == std::string::npos || line.size() < behind + 4) return 0;
    return std::atoi(line.c_str() + behind + 4);
}

}  // namespace assay::collector
