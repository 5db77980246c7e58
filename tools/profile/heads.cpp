#include "tools/profile/heads.h"

#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace assay {
namespace {

// All values of each name.
std::map<std::string_view, std::string> texts_by_name(const Descriptions& descriptions) {
    std::map<std::string_view, std::string> texts;
    for (const auto& [name, text] : descriptions) {
        std::string& all = texts[name];
        all += (all.empty() ? "\"" : "; ") + text;
    }
    for (auto& [name, all] : texts) all += '"';
    return texts;
}

// True for descriptions that name a separate file of the profile. A merged profile keeps them all.
bool names_file(std::string_view description) {
    return description == "block vectors" || description == "block addresses";
}

}  // namespace

bool is_setting(std::string_view description) {
    // Different ranks of an MPI program are no difference between runs.
    return description != "Rank" && description != "Types" &&
           description != events::kSamplingError && !names_file(description);
}

void Heads::add(const std::string& path, const events::Header& header) {
    if (commands_.empty()) {
        first_path_ = path;
        first_ = descriptions_ = common_ = header.descriptions;
    } else {
        compare_descriptions(path, header.descriptions);
        keep_common(header.descriptions);
    }
    if (std::find(commands_.begin(), commands_.end(), header.command) == commands_.end())
        commands_.push_back(header.command);
    if (!header.incomplete.empty()) incomplete_.push_back(path + ": " + header.incomplete);
    read_again(header);
}

void Heads::read_again(const events::Header& header) {
    of_file_.clear();
    for (const events::Object& object : header.objects) add_object(object);
}

void Heads::add_object(const events::Object& object) {
    const auto [entry, is_new] = indices_.try_emplace({object.path, object.build_id},
                                                      static_cast<std::uint32_t>(objects_.size()));
    if (is_new)
        objects_.push_back(object);
    else if (objects_[entry->second].load != object.load)
        objects_[entry->second].load.reset();
    of_file_.push_back(entry->second);
}

void Heads::compare_descriptions(const std::string& path, const Descriptions& other) {
    Descriptions either = first_;
    either.insert(either.end(), other.begin(), other.end());
    const auto first = texts_by_name(first_), here = texts_by_name(other);
    const auto text_of = [](const auto& texts, std::string_view name) {
        const auto found = texts.find(name);
        return found == texts.end() ? std::string("not given") : found->second;
    };
    std::set<std::string_view> seen, different;
    for (const auto& description : either) {
        const std::string& name = description.first;
        if (!seen.insert(name).second) continue;
        const std::string one = text_of(first, name), another = text_of(here, name);
        if (one == another) continue;
        if (is_setting(name))
            differences_.push_back(
                fmt::format("{}: {} in {}, {} in {}", name, one, first_path_, another, path));
        different.insert(name);
    }
    std::erase_if(descriptions_,
                  [&](const auto& entry) { return different.contains(entry.first); });
}

void Heads::keep_common(const Descriptions& other) {
    // A sum with sampled counts is an estimate, even if only one file was sampled.
    constexpr const char* kSampled = "Sampled";
    const auto is_sampled = [](const Descriptions& of) {
        return std::any_of(of.begin(), of.end(),
                           [](const auto& description) { return description.first == kSampled; });
    };
    const bool sampled = is_sampled(common_) || is_sampled(other);
    const std::set here(other.begin(), other.end());
    std::erase_if(common_, [&](const auto& description) {
        return !names_file(description.first) && !here.contains(description);
    });
    std::set before(common_.begin(), common_.end());
    for (const auto& description : other)
        if (names_file(description.first) && before.insert(description).second)
            common_.push_back(description);
    if (sampled && !is_sampled(common_))
        common_.emplace_back(kSampled, "some of what was added up; see the files");
}

void Heads::compare_builds() {
    if (says_builds_) return;
    if (std::string builds = mixed_builds(); !builds.empty()) {
        differences_.push_back(std::move(builds));
        says_builds_ = true;
    }
}

std::string Heads::mixed_builds() const {
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
    return fmt::format("{} has {} builds ({}){}; their counts are added up by line", path,
                       ids.size(), join(ids, " and "), others);
}

namespace {

// Joins names, up to the longest text of a series.
std::string names_of(const std::vector<std::string>& paths) {
    std::string names = join(paths, ", ");
    if (names.size() <= events::kMostSeriesText) return names;
    const std::string rest = fmt::format(" ... ({} files)", paths.size());
    names.resize(events::kMostSeriesText - rest.size());
    return names + rest;
}

}  // namespace

void MergedSeries::add(const std::string& path, std::span<const events::Series> series) {
    ++files_;
    // Joins each series with at most one of the current file, so that equal series of a file stay
    // separate.
    std::vector<bool> taken(series_.size());
    for (const events::Series& each : series) {
        bool added = false;
        for (std::size_t i = 0; i < taken.size() && !added; ++i) {
            if (taken[i] || series_[i].from != each.from) continue;
            try {
                added = events::add(series_[i], each);
            } catch (const Error& error) {
                throw Error(fmt::format("{}: with it, {}", path, error.what()));
            }
            if (!added) continue;
            taken[i] = true;
            paths_[i].push_back(path);
        }
        if (added) continue;
        if (series_.size() == events::kMostSeries) {
            ++left_out_;
            continue;
        }
        series_.push_back(each);
        paths_.push_back({path});
    }
}

void MergedSeries::finish() {
    for (std::size_t i = 0; i < series_.size(); ++i)
        if (paths_[i].size() < files_ && series_[i].from.empty())
            series_[i].from = names_of(paths_[i]);
}

}  // namespace assay
