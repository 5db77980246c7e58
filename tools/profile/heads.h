// What the heads of several events files say of their runs: commands, how they were made, reasons
// why counts are not those of a whole run, objects, each once, and series.
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

class Heads {
  public:
    // Of a file, before it is read on. Its objects are those of the file being read from now on.
    void add(const std::string& path, const events::Header& header);
    // The same for a file that has been added.
    void read_again(const events::Header& header);
    // Another one of the file being read, whose head has not named all.
    void add_object(const events::Object& object);
    // Behind a file: notes if an object has several builds, once.
    void compare_builds();

    // The index in objects() of what has that number in the file being read.
    std::uint32_t object(std::uint32_t number) const { return of_file_[number]; }

    const std::vector<std::string>& commands() const { return commands_; }
    // With the name of the file.
    const std::vector<std::string>& incomplete() const { return incomplete_; }
    const std::vector<events::Object>& objects() const { return objects_; }
    // What all files say under a name, such as the shapes of the caches.
    const Descriptions& descriptions() const { return descriptions_; }
    // What one of the files says otherwise than the first, or does not say, in a clause.
    const std::vector<std::string>& differences() const { return differences_; }
    // The single descriptions that all files have; and the files of block vectors that any of them
    // names.
    const Descriptions& common_descriptions() const { return common_; }
    // A sentence that names an object of which the files have several builds; "" if there is no
    // such object. The lines of its builds are added up as if they were the same.
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

// The series of several events files: those that add up become one, others stand side by side, with
// the name of the file that they come from.

class MergedSeries {
  public:
    // The series of another file. Throws Error if a sum exceeds 64 bits.
    void add(const std::string& path, std::span<const events::Series> series);
    // After the last one: says where series are from that are not of all files.
    void finish();

    // At most events::kMostSeries.
    const std::vector<events::Series>& series() const { return series_; }
    // How many more there would be.
    std::size_t left_out() const { return left_out_; }

  private:
    std::size_t files_ = 0, left_out_ = 0;
    std::vector<events::Series> series_;
    std::vector<std::vector<std::string>> paths_;  // that each is the sum of
};

}  // namespace assay
