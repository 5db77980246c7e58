// What the heads of several events files say of their runs: commands, reasons why counts are not
// those of a whole run, and objects, each once.
#pragma once

#include "framework/events/header.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay {

class Heads {
  public:
    // Of a file, before it is read on. Its objects are those of the file being read from now on.
    void add(const std::string& path, const events::Header& header) {
        if (std::find(commands_.begin(), commands_.end(), header.command) == commands_.end())
            commands_.push_back(header.command);
        if (!header.incomplete.empty()) incomplete_.push_back(path + ": " + header.incomplete);
        read_again(header);
    }
    // The same for a file that has been added.
    void read_again(const events::Header& header) {
        of_file_.clear();
        for (const events::Object& object : header.objects) add_object(object);
    }
    // Another one of the file being read, whose head has not named all.
    void add_object(const events::Object& object) {
        const auto [entry, is_new] = indices_.try_emplace(
            {object.path, object.build_id}, static_cast<std::uint32_t>(objects_.size()));
        if (is_new)
            objects_.push_back(object);
        else if (objects_[entry->second].load != object.load)
            objects_[entry->second].load.reset();
        of_file_.push_back(entry->second);
    }
    // The index in objects() of what has that number in the file being read.
    std::uint32_t object(std::uint32_t number) const { return of_file_[number]; }

    const std::vector<std::string>& commands() const { return commands_; }
    // With the name of the file.
    const std::vector<std::string>& incomplete() const { return incomplete_; }
    const std::vector<events::Object>& objects() const { return objects_; }
    // A sentence that names an object of which the files have several builds; "" if there is no
    // such object. The lines of its builds are added up as if they were the same.
    std::string mixed_builds() const {
        constexpr std::size_t kShownDigits = 12;
        std::map<std::string, std::vector<std::string>> builds;  // by path
        for (const events::Object& object : objects_)
            if (!object.build_id.empty())
                builds[object.path].push_back(object.build_id.substr(0, kShownDigits));
        std::erase_if(builds, [](const auto& each) { return each.second.size() < 2; });
        if (builds.empty()) return {};
        const auto& [path, ids] = *builds.begin();
        const std::string others =
            builds.size() == 1 ? "" : fmt::format(", as {} others are", builds.size() - 1);
        return fmt::format("{} is there in {} builds ({}){}; their counts are added up by line",
                           path, ids.size(), join(ids, " and "), others);
    }

  private:
    std::vector<std::string> commands_, incomplete_;
    std::vector<events::Object> objects_;
    std::map<std::pair<std::string, std::string>, std::uint32_t> indices_;  // by path and build id
    std::vector<std::uint32_t> of_file_;
};

}  // namespace assay
