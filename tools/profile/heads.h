// Combines the heads of several events files: commands, descriptions of the runs, reasons for
// incomplete counts, objects and series.
#pragma once

#include "framework/events/header.h"
#include "framework/events/series.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace assay {

using Descriptions = decltype(events::Header::descriptions);

// False for descriptions that tell what a run has found, or where, and not how it was made.
bool is_setting(std::string_view description);

class Heads {
  public:
    // Adds the head of a file that is about to be read. From now on, object() refers to this file.
    void add(const std::string& path, const events::Header& header);
    // Makes object() refer to a file that was added before.
    void read_again(const events::Header& header);
    // Adds an object of the current file that its head does not name.
    void add_object(const events::Object& object);
    // After a file: notes once if an object has several builds.
    void compare_builds();

    // Converts a number of an object in the current file to an index in objects().
    std::uint32_t object(std::uint32_t number) const { return of_file_[number]; }

    const std::vector<std::string>& commands() const { return commands_; }
    // Reasons for incomplete counts, with the name of the file.
    const std::vector<std::string>& incomplete() const { return incomplete_; }
    const std::vector<events::Object>& objects() const { return objects_; }
    // Descriptions with equal values in all files, such as the shapes of the caches.
    const Descriptions& descriptions() const { return descriptions_; }
    // Descriptions that differ from those of the first file, as clauses.
    const std::vector<std::string>& differences() const { return differences_; }
    // Individual descriptions that all files share, and the names of block vector files from any
    // file.
    const Descriptions& common_descriptions() const { return common_; }
    // A sentence that names an object with several builds in the files; or "". Lines of these
    // builds are added up as if the builds were equal.
    std::string mixed_builds() const;

  private:
    void compare_descriptions(const std::string& path, const Descriptions& other);
    void keep_common(const Descriptions& other);

    std::vector<std::string> commands_, incomplete_;
    std::string first_path_;
    Descriptions first_, descriptions_, common_;
    std::vector<std::string> differences_;
    bool says_builds_ = false;
    std::vector<events::Object> objects_;
    std::map<std::pair<std::string, std::string>, std::uint32_t> indices_;  // by path and build id
    std::vector<std::uint32_t> of_file_;
};

// Merges the series of several events files. Series with equal properties are added up. Other
// series are kept side by side, with the names of their files.

class MergedSeries {
  public:
    // Adds the series of a file. Throws Error if a sum exceeds 64 bits.
    void add(const std::string& path, std::span<const events::Series> series);
    // After the last file: names the files of series that some files do not have.
    void finish();

    // At most events::kMostSeries.
    const std::vector<events::Series>& series() const { return series_; }
    // Number of series beyond this limit.
    std::size_t left_out() const { return left_out_; }

  private:
    std::size_t files_ = 0, left_out_ = 0;
    std::vector<events::Series> series_;
    std::vector<std::vector<std::string>> paths_;  // by series: the files in the sum
};

}  // namespace assay
