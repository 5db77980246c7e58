#include "tools/sweep/folder.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <libdeflate.h>
#include <sys/file.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

namespace assay::sweep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr unsigned kVersion = 1;
// Follows the name of a point.
constexpr std::string_view mark_of(Folder::Use use) {
    return use == Folder::Use::kTask ? ".task-" : ".part-";
}
constexpr std::string_view kRemedy =
    "choose another folder with -o, or remove this one to begin anew";

std::string host_name() {
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return name.data();
}

// Identifies the file by its content, because times of change can be equal or set.
Json json_of_file(const std::string& path) {
    const auto refuse = [&] {
        throw Error(fmt::format("cannot read '{}': {}", path, system_reason(errno)));
    };
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number() < 0) refuse();
    std::vector<char> block(1 << 20);
    std::uint64_t size = 0;
    std::uint32_t checksum = 0;
    for (;;) {
        const ssize_t count = read(file.number(), block.data(), block.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) refuse();
        if (count == 0) break;
        size += static_cast<std::uint64_t>(count);
        checksum = libdeflate_crc32(checksum, block.data(), static_cast<std::size_t>(count));
    }
    return {{"path", path}, {"size", size}, {"crc32", fmt::format("{:08x}", checksum)}};
}

Json json_of(const Options& options, const Plan& plan) {
    Json files = Json::array();
    for (const std::string& path : plan.files()) files.push_back(json_of_file(path));
    return {{"assay sweep", kVersion},
            {"folder", fs::current_path().string()},
            {"status", options.accepted_status},
            {"command", options.words},
            {"files", files}};
}

std::string text_of(const Json& json) {
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The content of plan.json. Throws Error.
Json read_plan(const fs::path& path) {
    std::string text;
    events::read_file(path, [&](std::string_view block) { text += block; });
    try {
        Json plan = Json::parse(text);
        if (plan.at("assay sweep") != kVersion)
            throw Error(fmt::format("{} belongs to a sweep by another version of assay; {}",
                                    path.string(), kRemedy));
        return plan;
    } catch (const Json::exception& wrong) {
        throw Error(fmt::format("{}: damaged ({}); {}", path.string(), wrong.what(), kRemedy));
    }
}

}  // namespace

Folder::Folder(const std::string& path, Use use)
    : path_(fs::absolute(path).lexically_normal()), use_(use) {
    if (path_.filename().empty()) path_ = path_.parent_path();
    std::error_code error;
    fs::create_directories(points(), error);
    if (error)
        throw Error(
            fmt::format("cannot make the folder {}: {}", points().string(), error.message()));
}

fs::path Folder::unfinished(const std::string& name) const {
    return points() / fmt::format("{}{}{}-{}", name, mark_of(use_), host_name(), getpid());
}

void Folder::lock() {
    const fs::path file = path_ / "lock";
    lock_ = std::make_unique<Descriptor>(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (lock_->number() < 0)
        throw Error(fmt::format("cannot write '{}': {}", file.string(), system_reason(errno)));
    if (flock(lock_->number(), LOCK_EX | LOCK_NB) == 0) return;
    if (errno == EWOULDBLOCK)
        throw Error(
            fmt::format("{}: another assay sweep is using this folder; wait for it, or choose "
                        "another folder with -o",
                        path_.string()));
    throw Error(fmt::format("cannot lock '{}': {}", file.string(), system_reason(errno)));
}

void Folder::claim(const Options& options, const Plan& plan) const {
    // Parsed again, so that it compares equal to the content of the file.
    const Json own = Json::parse(text_of(json_of(options, plan)));
    if (!fs::exists(plan_file())) {
        events::OutputFile file(plan_file());
        file.write(text_of(own));
        file.finish();
        return;
    }
    const auto refuse = [&](std::string_view why) {
        throw Error(fmt::format("{}: {}; {}", path_.string(), why, kRemedy));
    };
    const Json before = read_plan(plan_file());
    try {
        for (const std::string_view key : {"command", "status", "folder"})
            if (before.at(key) != own.at(key))
                refuse(
                    fmt::format("belongs to another sweep, begun in {} as: assay sweep {}",
                                before.at("folder").get<std::string>(),
                                shell_line(before.at("command").get<std::vector<std::string>>())));
        for (const Json& file : own.at("files")) {
            const Json& known = before.at("files");
            if (std::find(known.begin(), known.end(), file) == known.end())
                refuse(fmt::format("{} has changed since the sweep began",
                                   file.at("path").get<std::string>()));
        }
    } catch (const Json::exception& wrong) {
        throw Error(
            fmt::format("{}: damaged ({}); {}", plan_file().string(), wrong.what(), kRemedy));
    }
}

std::pair<std::vector<std::string>, fs::path> Folder::call() const {
    const Json plan = read_plan(plan_file());
    try {
        std::vector<std::string> words{fmt::format("--status={}", plan.at("status").get<int>())};
        for (const Json& word : plan.at("command")) words.push_back(word.get<std::string>());
        return {words, plan.at("folder").get<std::string>()};
    } catch (const Json::exception& wrong) {
        throw Error(
            fmt::format("{}: damaged ({}); {}", plan_file().string(), wrong.what(), kRemedy));
    }
}

std::set<std::string> Folder::entries() const {
    std::set<std::string> names;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(points(), error))
        names.insert(entry.path().filename());
    return names;
}

void Folder::remove_unfinished(Use use) const {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(points(), error)) {
        const std::string name = entry.path().filename();
        if (name.find(mark_of(use)) != std::string::npos && entry.is_directory(error))
            fs::remove_all(entry.path(), error);
    }
}

}  // namespace assay::sweep
