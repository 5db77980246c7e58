// Matches functions of two profiles even if their names or files have changed.
#pragma once

#include "tools/profile/count_store.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay {

enum class Side : std::uint8_t { kOld, kNew };

// The last part of a path.
std::string_view base_name(std::string_view path);

// Functions with equal files and names match. Clones and inlined copies come and go with every
// change of a program or a compiler, and names and files change. Therefore these also match:
//   - clones of a function, and functions whose names differ only in numbers and hashes
//     (function_names.h), unless both profiles have exactly the same ones;
//   - inlined copies, whose names have no parameters, and the function with parameters;
//   - a removed function and an added function if only their parameters differ, or else only
//     their arguments of templates;
//   - a function and one in another file, if the file was renamed (judged by the end of its path
//     and its functions), or if a file is unknown, or if no other function of that name moved, or
//     if no other pair of files has paths that end as much alike.
// Functions of one file that cannot be told apart are added up. Ambiguous files are not matched.
class FunctionMatching {
  public:
    struct Place {
        std::string_view file, function;
        bool operator==(const Place&) const = default;
    };

    // The former name of a function shown at `place`, for messages. "" if only the folder differs:
    // two versions are often built in different folders.
    static std::string former_text(const Place& place, const Place& former);

    // Step 1: call add() for all functions of both profiles. Returns a number, which is the same
    // for equal files and names. Use "" as the file if files do not matter.
    std::uint32_t add(Side side, std::string_view file, std::string_view function);
    void match();

    // Step 2, after match(): the place where a function is shown, which is its place in the new
    // profile. Places are valid as long as this object.
    Place shown(std::uint32_t function) const;
    // The place of a function in the old profile. Empty if it is the same, or if there are several.
    Place former(std::uint32_t function) const;
    // The new name of a file of the old profile.
    std::string_view file(std::string_view name);

  private:
    struct Entry {
        Strings::Id file, name;
        bool is_old = false, is_new = false;  // profiles that have the function
        bool has_old = false,
             has_new = false;  // of a root: profiles that have a function of its group
        std::uint32_t joined;  // next function towards the root; a root has itself
        bool is_one_sided() const { return has_old != has_new; }
    };
    using Group = std::vector<std::uint32_t>;  // numbers of functions
    // Parts of names to ignore. key() returns the rest of a name as a number in keys_.
    enum class Level : std::uint8_t { kClones, kNumbers, kSignature, kArguments };

    std::uint32_t root(std::uint32_t function) const;
    void join(const Group& functions);
    // Joins the roots that only one profile has, if both profiles have such roots.
    void join_one_sided(const Group& roots);
    Group roots(const Group& functions) const;
    Strings::Id key(Level level, std::uint32_t function);
    std::vector<Group> by_key(Level level, const Group& functions);
    bool has_parameters(std::uint32_t function) const;

    void rename_files();
    // Pairs of old and new files. `names_in` has the names in files that only one profile has.
    std::vector<std::pair<Strings::Id, Strings::Id>> files_with_same_ends(
        const std::map<Strings::Id, std::set<Strings::Id>>& names_in,
        const std::vector<bool>& is_old) const;
    void match_family(const Group& family);
    void join_copies(const Group& roots);
    void match_across_files();
    void match_moved(const Group& gone, const Group& come);
    void name_groups();
    void name_group(const Group& group);

    Strings files_, names_, keys_;
    std::vector<Entry> entries_;
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;   // by file and name
    std::unordered_map<std::uint64_t, Strings::Id> known_keys_;  // by level and name
    std::vector<Strings::Id> renamed_;                           // by file
    // By root, for groups of several functions.
    std::unordered_map<std::uint32_t, Place> shown_, former_;
};

}  // namespace assay
