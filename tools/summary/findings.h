// What is slow in a profile, and why: the contents of the first screen. Both `assay summary` and
// `assay report` show them.
#pragma once

#include "tools/profile/display_names.h"
#include "tools/profile/profile.h"
#include "tools/sources/source_finder.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::summary {

// A row of a section. Names are short. Texts come from files: a writer escapes them.
struct Finding {
    double share = 0;                    // percent of the total of its section
    std::string name;                    // a function, or data
    std::string file;                    // as in the profile; "" if unknown
    std::uint32_t line = 0;              // 0 if unknown
    std::string text;                    // the reason, or the source line
    std::optional<std::uint32_t> group;  // index in the groups of the profile
};

enum class Of { kFunctions, kLines, kData };

struct Section {
    Of of;
    std::string title;
    std::string remark;  // a sentence above the rows; may be empty
    std::vector<Finding> rows;
};

struct CycleShare {
    double share;
    std::string name;  // "data cache misses"
};

struct Step {
    std::string command, purpose;
};

struct Findings {
    std::vector<std::string> commands;
    bool are_cycles_estimated;
    std::uint64_t total;               // estimated cycles, or the first event
    std::string total_name;            // "estimated cycles", or the name of the event
    std::string meaning;               // formula of the cycles, or description of the event
    std::vector<CycleShare> cycles;    // by cause; empty without estimated cycles
    std::vector<std::string> remarks;  // sentences about the whole program
    std::vector<std::string> incomplete;
    std::vector<Section> sections;
    std::vector<Step> next;  // commands that show more
};

// `paths` are the files as the user named them. The profile needs lines and contexts. `groups` are
// those of the profile, or of the profile that it is a view of.
Findings findings(const Profile& profile, const Groups& groups, const DisplayNames& names,
                  const std::vector<std::string>& paths, const SourceOptions& where = {});

}  // namespace assay::summary
