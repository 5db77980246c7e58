// Which functions of two profiles are the same one, whatever has become of their names and files.
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

// Functions are compared by file and name. Of those that only one profile has, and of clones and
// copies, which come and go with every change of a program or a compiler, these are one function:
//   - clones of one function, and functions whose names differ in numbers and hashes
//     (function_names.h), unless both profiles have exactly the same of them;
//   - inlined copies, which have no parameters in their names, and the function that has them;
//   - what one profile has no longer and the other has not had before, if only parameters differ,
//     or else only arguments of templates;
//   - the same in another file: one that has become another one, judging by its path's end and by
//     what is in it; or one that is unknown; or if no other function of that name has moved, or
//     none from or to a file whose path ends alike.
// Several in one file that cannot be told apart are added up. Files that cannot are not one.
class FunctionMatching {
  public:
    struct Place {
        std::string_view file, function;
        bool operator==(const Place&) const = default;
    };

    // Of a function that is shown at `place`, what it was before, unless that is no other name: two
    // versions are often built in folders of their own, which makes no other file.
    static std::string former_text(const Place& place, const Place& former);

    // First all functions of both profiles. Returns a number for each, the same for the same file
    // and name. Where files do not matter, they are "".
    std::uint32_t add(Side side, std::string_view file, std::string_view function);
    void match();

    // Then where a function is shown, which is where the new profile has it. Places are valid as
    // long as this object.
    Place shown(std::uint32_t function) const;
    // What the old profile calls a function; nothing in it if that is no other name, or several.
    Place former(std::uint32_t function) const;
    // What a file of the old profile is called in the new one.
    std::string_view file(std::string_view name);

  private:
    struct Entry {
        Strings::Id file, name;
        bool is_old = false, is_new = false;    // which profiles have it
        bool has_old = false, has_new = false;  // of a root: which have one of its group
        std::uint32_t joined;                   // towards the root; a root: itself
        bool is_one_sided() const { return has_old != has_new; }
    };
    using Group = std::vector<std::uint32_t>;  // numbers of functions
    // What a name is without what the levels take away, as a number in keys_.
    enum class Level : std::uint8_t { kClones, kNumbers, kSignature, kArguments };

    std::uint32_t root(std::uint32_t function) const;
    void join(const Group& functions);
    // Those of the roots that only one profile has, joined if both have some.
    void join_one_sided(const Group& roots);
    Group roots(const Group& functions) const;
    Strings::Id key(Level level, std::uint32_t function);
    std::vector<Group> by_key(Level level, const Group& functions);
    bool has_parameters(std::uint32_t function) const;

    void rename_files();
    // Pairs of an old file and its new one. `names_in` has the files that only one profile has.
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
    // By root, of groups of several.
    std::unordered_map<std::uint32_t, Place> shown_, former_;
};

}  // namespace assay
