#include "framework/events/index.h"

#include "framework/events/file.h"
#include "framework/support/error.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace assay::events {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr unsigned kVersion = 1;
constexpr std::string_view kBeginning = "{\"assay index\":";
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

std::string text_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_below(const fs::path& relative) {
    return !relative.empty() && *relative.begin() != "..";
}

Json json_of(const IndexedProfile& profile, const fs::path& folder) {
    Json json;
    if (!profile.file.empty()) {
        const fs::path whole = fs::absolute(profile.file).lexically_normal();
        const fs::path relative = whole.lexically_relative(folder);
        json["file"] = (is_below(relative) ? relative : whole).string();
    }
    json["pid"] = profile.pid;
    json["image"] = profile.image;
    if (profile.parent != IndexedProfile::kNone) json["parent"] = profile.parent;
    if (!profile.rank.empty()) json["rank"] = profile.rank;
    json["command"] = profile.command;
    if (!profile.incomplete.empty()) json["incomplete"] = profile.incomplete;
    json["counts"] = profile.counts;
    return json;
}

IndexedProfile profile_of(const Json& json, const fs::path& folder) {
    IndexedProfile profile;
    if (const std::string file = json.value("file", ""); !file.empty())
        profile.file = (folder / file).lexically_normal();
    profile.pid = json.at("pid");
    profile.image = json.at("image");
    profile.parent = json.value("parent", IndexedProfile::kNone);
    profile.rank = json.value("rank", "");
    profile.command = json.at("command");
    profile.incomplete = json.value("incomplete", "");
    profile.counts = json.at("counts").get<std::vector<std::uint64_t>>();
    return profile;
}

}  // namespace

std::string program_of(const std::string& command) {
    const std::string word = command.substr(0, command.find(' '));
    return word.substr(word.rfind('/') + 1);
}

// Each profile has its own line, so that people can read the file.
void write_index(const std::string& path, const Index& index) {
    const fs::path folder = fs::absolute(path).lexically_normal().parent_path();
    OutputFile file(path);
    file.write(std::string(kBeginning) + " " + std::to_string(kVersion) +
               ", \"command\": " + text_of(index.command) +
               ", \"events\": " + text_of(index.events) + ", \"profiles\": [\n");
    for (std::size_t i = 0; i < index.profiles.size(); ++i)
        file.write(text_of(json_of(index.profiles[i], folder)) +
                   (i + 1 < index.profiles.size() ? ",\n" : "\n"));
    file.write("]}\n");
    file.finish();
}

bool begins_as_index(const std::string& path) {
    try {
        return can_be_read_again(path) && beginning_of_file(path, kBeginning.size()) == kBeginning;
    } catch (const Error&) {
        return false;
    }
}

Index read_index(const std::string& path) {
    std::string text;
    read_file(path, [&](std::string_view block) {
        if (text.size() + block.size() > kMostBytes) throw Error(path + ": too long for an index");
        text += block;
    });
    Index index;
    try {
        const Json json = Json::parse(text);
        if (const unsigned version = json.at("assay index"); version != kVersion)
            throw Error(path + ": an index of version " + std::to_string(version) +
                        "; this assay knows version " + std::to_string(kVersion));
        const fs::path folder = fs::path(path).parent_path();
        index.command = json.at("command");
        index.events = json.at("events").get<std::vector<std::string>>();
        for (const Json& profile : json.at("profiles"))
            index.profiles.push_back(profile_of(profile, folder));
    } catch (const Json::exception& wrong) {
        throw Error(path + ": not an index of profiles: " + wrong.what());
    }
    for (std::size_t i = 0; i < index.profiles.size(); ++i) {
        const IndexedProfile& profile = index.profiles[i];
        if (profile.counts.size() > index.events.size() ||
            (profile.parent != IndexedProfile::kNone && profile.parent >= i))
            throw Error(path + ": profile " + std::to_string(i) + " of the index makes no sense");
    }
    return index;
}

}  // namespace assay::events
