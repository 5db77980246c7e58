// The events files that a command line names, where an index stands for those of its run.
#pragma once

#include "tools/profile/profile.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct ProfileFiles {
    std::vector<std::string> paths;
    // Of the process that started this one's, where an index says so: by path.
    std::map<std::string, std::string> parents;
    bool has_index = false;
};

// A file of an index that is named as well does not count twice. Throws Error, also if an index
// names none.
ProfileFiles profile_files(const std::vector<std::string>& names);

// Groups that are whole files: those of a program, of a process, or of a rank among the processes
// of MPI.
class FileGroups {
  public:
    static bool is_kind(std::string_view kind);

    // Both must live longer. `lines`: the groups have them, too.
    FileGroups(Profile& profile, const ProfileFiles& files, std::vector<std::string> kinds,
               bool lines)
        : profile_(profile), files_(files), kinds_(std::move(kinds)), lines_(lines) {}

    // Adds the files to the profile, with the groups that they have themselves, which may be of
    // these kinds already: then a file is no group as a whole. Throws Error.
    void add_files();
    // Behind the last one: throws Error if there is no group of a kind.
    void check_any() const;

  private:
    void add_file(const std::string& path);
    // kNone if it is of none.
    std::uint32_t group_of(const std::string& kind, const std::string& path,
                           const events::Header& header);

    Profile& profile_;
    const ProfileFiles& files_;
    std::vector<std::string> kinds_;
    bool lines_;
    std::map<std::string, std::uint32_t> processes_;                       // by path
    std::map<std::pair<std::string, std::string>, std::uint32_t> others_;  // by kind and name
};

// The profile that is meant where none is named.

// The events file of the working directory that was written last, or the index of a run if that
// was; which is told to the user. Throws Error if there is none.
std::string newest_profile();

}  // namespace assay
