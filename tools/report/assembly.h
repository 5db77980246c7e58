// The instructions of a page's sources, of a profile that has counts of instructions.
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
    // Of the functions with the highest shares, as many as a page can hold. `old` may be null. All
    // must outlive this.
    Assembly(const Profile& profile, const Profile* old, const FunctionList& functions);

    // Those of the lines of a source file, by address; null if it has none.
    void write(Strings::Id file, JsonWriter& json);
    // What is known of all files, behind them: objects and why their code is not there, the places
    // where code was inlined, and how many instructions are left out. Null if the profile has no
    // counts of instructions.
    void write_summary(JsonWriter& json) const;

  private:
    struct Row {
        const Profile::Instruction* at;
        std::uint32_t function;  // row in the list of functions
    };
    using Address = std::pair<std::uint32_t, std::uint64_t>;  // object and address in it

    void choose(const FunctionList& functions);
    void disassemble();
    void read_old();
    std::uint64_t number_of_site(std::uint32_t site);

    const Profile& profile_;
    const Profile* old_;
    std::map<Strings::Id, std::vector<Row>> rows_;  // by file
    std::size_t left_out_ = 0;
    std::map<Address, CodeText> code_;
    std::vector<std::string> problems_;  // by object: why there is no code; "" if there is
    std::vector<bool> is_same_;          // by object: the old profile is of the same code
    std::map<Address, Column> old_counts_;
    std::vector<std::string> sites_ = {""};                           // as texts
    std::map<std::uint32_t, std::uint64_t> site_numbers_ = {{0, 0}};  // in sites_, by site
};

}  // namespace assay::report
