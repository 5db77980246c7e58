#include "tools/diff/programs.h"

#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "tools/profile/profile_files.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

namespace fs = std::filesystem;

namespace assay::diff {
namespace {

// The folder that a program is in is another one for each version.
std::string command_of(const Options& options, const std::string& path) {
    const std::string command = events::read_header(path).command;
    const std::size_t end = std::min(command.find(' '), command.size());
    const std::size_t slash = command.rfind('/', end);
    const std::string name =
        slash == std::string::npos || slash > end ? command : command.substr(slash + 1);
    return replaced(name, options.commands);
}

bool is_folder(const std::string& path) {
    std::error_code error;
    return fs::is_directory(path, error);
}

// The events files in a folder, by command, each command's in the order of their names.
using Folder = std::map<std::string, std::vector<std::string>>;
Folder read_folder(const Options& options, const std::string& path) {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator file(path, error); !error && file != fs::directory_iterator();
         file.increment(error))
        if (file->is_regular_file(error) && events::begins_as_events_file(file->path()))
            names.push_back(file->path());
    if (error) throw Error(fmt::format("cannot read folder {}: {}", path, error.message()));
    if (names.empty()) throw Error(fmt::format("folder {} has no events files", path));
    std::sort(names.begin(), names.end());
    Folder folder;
    for (std::string& name : names) folder[command_of(options, name)].push_back(std::move(name));
    return folder;
}

// A limit of what is in no program says nothing: most probably it is misspelt.
void check_limits(const Options& options, const Programs& programs) {
    for (std::size_t i = 0; i < options.limits.size(); ++i) {
        const Limit& limit = options.limits[i];
        if (std::none_of(
                programs.all.begin(), programs.all.end(),
                [&](const Programs::Program& each) { return each.comparison->has_subjects(i); }))
            throw Error(fmt::format("--fail-on='{}': neither side has a {} called {}", limit.text,
                                    limit.kind, limit.pattern));
    }
}

}  // namespace

bool Programs::are_exceeded() const {
    return std::any_of(all.begin(), all.end(),
                       [](const Program& each) { return each.comparison->is_exceeded(); });
}

Programs compare_programs(const Options& options) {
    Programs programs;
    const bool is_old_folder = is_folder(options.old_path),
               is_new_folder = is_folder(options.new_path);
    if (is_old_folder != is_new_folder)
        throw Error(fmt::format("{} is a folder and {} is none: give two files, or two folders",
                                is_old_folder ? options.old_path : options.new_path,
                                is_old_folder ? options.new_path : options.old_path));
    programs.are_many = is_old_folder;
    const auto add = [&](const std::vector<std::string>& before,
                         const std::vector<std::string>& after, std::string command) {
        auto comparison = std::make_unique<Comparison>(options, before, after);
        if (command.empty()) command = comparison->after().header().command;
        programs.all.push_back({std::move(command), std::move(comparison)});
    };
    if (!is_old_folder) {
        add(profile_files({options.old_path}).paths, profile_files({options.new_path}).paths, "");
    } else {
        const Folder before = read_folder(options, options.old_path),
                     after = read_folder(options, options.new_path);
        for (const auto& [command, paths] : before) {
            const auto found = after.find(command);
            if (found == after.end())
                programs.only_old.push_back(command);
            else
                add(paths, found->second, command);
        }
        for (const auto& entry : after)
            if (!before.contains(entry.first)) programs.only_new.push_back(entry.first);
        if (programs.all.empty())
            throw Error(
                fmt::format("no command is in {} and in {}; --mod-command=s/A/B/ makes "
                            "different ones equal",
                            options.old_path, options.new_path));
    }
    check_limits(options, programs);
    return programs;
}

}  // namespace assay::diff
