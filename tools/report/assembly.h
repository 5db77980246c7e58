// The instructions below the source lines of a page, if the profile has counts of instructions.
#pragma once

#include "tools/code/object_code.h"
#include "tools/output/formats.h"
#include "tools/profile/profile.h"
#include "tools/report/functions.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {

class Assembly {
  public:
    // Takes the functions with the highest shares, up to `most` instructions. `old` may be null.
    // All arguments must outlive this object.
    Assembly(const Profile& profile, const Profile* old, const FunctionList& functions,
             const DisplayNames& names, std::size_t most);

    // Writes the instructions of a source file by address, or null.
    void write(Strings::Id file, JsonWriter& json);
    // Call it after write() for all files. Writes the objects, the reasons for missing code, the
    // inlining sites, and the number of instructions left out. Writes null if the profile has no
    // counts of instructions.
    void write_summary(JsonWriter& json) const;

  private:
    struct Row {
        const Profile::Instruction* at;
        std::uint32_t function;  // row in the list of functions
    };
    using Address = std::pair<std::uint32_t, std::uint64_t>;  // object and address in it

    void choose(const FunctionList& functions, std::size_t most);
    void disassemble();
    void read_old();
    std::uint64_t number_of_site(std::uint32_t site);

    const DisplayNames& names_;
    const Profile& profile_;
    const Profile* old_;
    std::map<Strings::Id, std::vector<Row>> rows_;  // by file
    std::size_t left_out_ = 0;
    std::map<Address, CodeText> code_;
    std::vector<std::string> problems_;  // by object: the reason for missing code, or ""
    std::vector<bool> is_same_;          // by object: true if the old profile has the same code
    std::map<Address, Column> old_counts_;
    std::vector<std::string> sites_ = {""};                           // texts of inlining sites
    std::map<std::uint32_t, std::uint64_t> site_numbers_ = {{0, 0}};  // index in sites_ by site
};

}  // namespace assay::report
