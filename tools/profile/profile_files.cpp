#include "tools/profile/profile_files.h"

#include "framework/events/index.h"
#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "framework/support/log.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

namespace assay {
namespace {

std::string whole_path(const std::string& path) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(path, error);
    return error ? path : whole.string();
}

}  // namespace

ProfileFiles profile_files(const std::vector<std::string>& names) {
    ProfileFiles found;
    std::set<std::string> known;  // files that indices must not add again
    for (const std::string& name : names)
        if (!events::begins_as_index(name)) known.insert(whole_path(name));
    for (const std::string& name : names) {
        if (!events::begins_as_index(name)) {
            found.paths.push_back(name);
            continue;
        }
        found.has_index = true;
        const events::Index index = events::read_index(name);
        bool any = false;
        for (const events::IndexedProfile& profile : index.profiles) {
            if (profile.file.empty()) continue;
            any = true;
            // Takes the nearest ancestor with a file.
            std::size_t parent = profile.parent;
            while (parent != events::IndexedProfile::kNone && index.profiles[parent].file.empty())
                parent = index.profiles[parent].parent;
            if (parent != events::IndexedProfile::kNone)
                found.parents[profile.file] = index.profiles[parent].file;
            if (known.insert(whole_path(profile.file)).second) found.paths.push_back(profile.file);
        }
        if (!any) throw Error(fmt::format("{} is an index without events files", name));
    }
    return found;
}

bool FileGroups::is_kind(std::string_view kind) {
    return kind == "program" || kind == "process" || kind == "rank";
}

void FileGroups::add_files() {
    for (const std::string& path : files_.paths) add_file(path);
}

void FileGroups::add_file(const std::string& path) {
    profile_.add_file(
        path, Side::kNew, [&](const events::Header& header, const std::vector<events::Group>& own) {
            std::vector<std::uint32_t> groups;
            for (const std::string& kind : kinds_) {
                if (std::any_of(own.begin(), own.end(),
                                [&](const events::Group& group) { return group.kind == kind; }))
                    continue;
                const std::uint32_t group = group_of(kind, path, header);
                if (group != Groups::kNone) groups.push_back(group);
            }
            return Groups::Whole{std::move(groups), lines_};
        });
}

void FileGroups::check_any() const {
    const std::vector<std::string>& there = profile_.groups().kinds();
    for (const std::string& kind : kinds_)
        if (std::find(there.begin(), there.end(), kind) == there.end())
            throw Error(kind == "rank"
                            ? "--by=rank: no file belongs to a process under mpirun"
                            : fmt::format("--by={}: no file says what it belongs to", kind));
}

std::uint32_t FileGroups::group_of(const std::string& kind, const std::string& path,
                                   const events::Header& header) {
    if (kind == "process") {
        const auto of = files_.parents.find(path);
        const auto parent =
            of == files_.parents.end() ? processes_.end() : processes_.find(of->second);
        const std::uint32_t group = profile_.add_whole_group(
            kind,
            header.pid == 0 ? header.command : fmt::format("{} {}", header.pid, header.command),
            parent == processes_.end() ? Groups::kNone : parent->second);
        processes_[path] = group;
        return group;
    }
    std::string name = kind == "program" ? events::program_of(header.command) : "";
    if (kind == "rank")
        for (const auto& [key, text] : header.descriptions)
            if (key == "Rank") name = text;
    if (name.empty()) return Groups::kNone;
    const auto [found, is_new] = others_.try_emplace({kind, name}, 0);
    if (is_new) found->second = profile_.add_whole_group(kind, name, Groups::kNone);
    return found->second;
}

namespace fs = std::filesystem;

std::string newest_profile() {
    std::vector<std::pair<fs::file_time_type, std::string>> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(".", error)) {
        std::error_code gone;
        const fs::file_time_type time = entry.last_write_time(gone);
        if (entry.is_regular_file(gone) && !gone)
            files.emplace_back(time, entry.path().filename().string());
    }
    std::sort(files.rbegin(), files.rend());
    for (const auto& [time, name] : files) {
        const bool is_index = events::begins_as_index(name);
        if (!is_index && !events::begins_as_events_file(name)) continue;
        log::remark(fmt::format("reading {}, the newest {} of this folder", name,
                                is_index ? "index of a run" : "profile"));
        return name;
    }
    throw Error("no profile in this folder: name the files, or make one with assay --plugin=NAME");
}

}  // namespace assay
