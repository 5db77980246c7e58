// Counts by function and by source file. Profile adds the counts.
#pragma once

#include "framework/events/parser.h"
#include "tools/expressions/expressions.h"
#include "tools/profile/count_store.h"
#include "tools/profile/function_matching.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay {

// Gives counts the sign of their side: counts of the old side are negated.
class Signed {
  public:
    void set(Side side) { side_ = side; }
    // The result is valid until the next call.
    Counts operator()(Counts counts) {
        if (side_ == Side::kNew) return counts;
        negated_.resize(counts.size());
        for (std::size_t i = 0; i < counts.size(); ++i) negated_[i] = 0 - counts[i];
        return negated_;
    }

  private:
    Side side_ = Side::kNew;
    std::vector<std::uint64_t> negated_;
};

class FunctionTable {
  public:
    // The table has the names after these replacements.
    FunctionTable(std::vector<Replacement> file_names, std::vector<Replacement> function_names)
        : file_replacements_(std::move(file_names)),
          function_replacements_(std::move(function_names)) {}

    std::size_t size() const { return functions_.size(); }
    std::uint32_t file(std::size_t function) const {
        return static_cast<std::uint32_t>(functions_.key(function) >> 32);
    }
    std::uint32_t name(std::size_t function) const {
        return static_cast<std::uint32_t>(functions_.key(function));
    }
    std::string_view file_text(std::size_t function) const { return files_[file(function)]; }
    std::string_view name_text(std::size_t function) const { return names_[name(function)]; }
    Counts counts(std::size_t function) const { return functions_.counts(function); }

    const Strings& files() const { return files_; }
    const Strings& names() const { return names_; }
    // Counts of all lines of a file; empty if the file has no counts.
    Counts file_counts(std::uint32_t file) const { return file_counts_.find(file); }
    // The names of a file before replacements. Several names if replacements made them equal.
    std::vector<std::string> original_names(std::uint32_t file) const;
    // The number of a file by its name in events files.
    std::uint32_t file_id(std::string_view name);

    // --- While files are read.

    void set_columns(std::size_t columns);
    void location(const events::Location& location, Side side);
    // Adds counts of a line of the current location.
    void add(Counts counts) {
        functions_.add_to_row(function_row_, counts);
        file_counts_.add_to_row(file_row_, counts);
    }
    // After the last file: joins functions of the two sides that match, even if they or their files
    // were renamed.
    void match();

  private:
    std::uint32_t raw_file_id(std::string_view name);
    std::uint32_t name_id(std::string_view function);

    std::vector<Replacement> file_replacements_, function_replacements_;
    Strings files_, names_;
    // Used only with replacements: names before them, and their numbers after them.
    Strings raw_files_, raw_names_;
    std::vector<std::uint32_t> raw_file_ids_, raw_name_ids_;
    std::vector<std::vector<std::string>> originals_;  // by file
    std::vector<std::uint32_t> renamed_files_;         // by file, if functions are matched
    CountTable functions_;                             // key: file << 32 | name
    struct Origin {
        bool is_old = false, is_new = false;
    };
    std::vector<Origin> origins_;  // by row of functions_: sides that have the function
    CountTable file_counts_;       // key: file
    std::size_t function_row_ = 0, file_row_ = 0;
};

}  // namespace assay
