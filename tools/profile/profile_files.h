// Finds the events files that a command line names. An index of a run stands for its files.
#pragma once

#include "tools/profile/profile.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct ProfileFiles {
    std::vector<std::string> paths;
    // By path: the file of the parent process, if an index names it.
    std::map<std::string, std::string> parents;
    bool has_index = false;
};

// A file that is named and also listed in an index counts once. Throws Error, also if an index
// lists no files.
ProfileFiles profile_files(const std::vector<std::string>& names);

// Adds groups that consist of whole files: programs, processes, or ranks of MPI.
class FileGroups {
  public:
    static bool is_kind(std::string_view kind);

    // `profile` and `files` must outlive this object. `lines` also gives source lines to the
    // groups.
    FileGroups(Profile& profile, const ProfileFiles& files, std::vector<std::string> kinds,
               bool lines)
        : profile_(profile), files_(files), kinds_(std::move(kinds)), lines_(lines) {}

    // Adds the files to the profile. A file that has groups of a kind gets no group of that kind as
    // a whole. Throws Error.
    void add_files();
    // After the last file: throws Error if a kind has no groups.
    void check_any() const;

  private:
    void add_file(const std::string& path);
    // Returns kNone if the file is in no group of the kind.
    std::uint32_t group_of(const std::string& kind, const std::string& path,
                           const events::Header& header);

    Profile& profile_;
    const ProfileFiles& files_;
    std::vector<std::string> kinds_;
    bool lines_;
    std::map<std::string, std::uint32_t> processes_;                       // by path
    std::map<std::pair<std::string, std::string>, std::uint32_t> others_;  // by kind and name
};

// Finds the profile to read if the user names none: the newest events file or index in the working
// directory. Tells the user its name. Throws Error if there is no profile.
std::string newest_profile();

}  // namespace assay
