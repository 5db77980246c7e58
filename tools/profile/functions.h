// Counts by function and by source file, whatever lines they are of. Profile feeds it.
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

// Counts with the sign of their side: those of the old one are subtracted.
class Signed {
  public:
    void set(Side side) { side_ = side; }
    // Valid until the next ones.
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
    // The names of files and functions are those after the replacements.
    FunctionTable(std::vector<Replacement> file_names, std::vector<Replacement> function_names)
        : file_replacements_(std::move(file_names)),
          function_replacements_(std::move(function_names)) {}

    std::size_t size() const { return functions_.size(); }
    // By index: the source file, the name, the counts.
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
    // The lines of a file together; empty if there are no counts of any.
    Counts file_counts(std::uint32_t file) const { return file_counts_.find(file); }
    // What a file was called before replacements; several names if those made one of them.
    std::vector<std::string> original_names(std::uint32_t file) const;
    // The number of a file as files name it.
    std::uint32_t file_id(std::string_view name);

    // --- While files are read.

    void set_columns(std::size_t columns);
    void location(const events::Location& location, Side side);
    // Of a line of that location.
    void add(Counts counts) {
        functions_.add_to_row(function_row_, counts);
        file_counts_.add_to_row(file_row_, counts);
    }
    // After the last one: has the same function of both sides be one, whatever its names are, and
    // files that have been renamed.
    void match();

  private:
    std::uint32_t raw_file_id(std::string_view name);
    std::uint32_t name_id(std::string_view function);

    std::vector<Replacement> file_replacements_, function_replacements_;
    Strings files_, names_;
    // Only if there are replacements: the names before them, and what became of these.
    Strings raw_files_, raw_names_;
    std::vector<std::uint32_t> raw_file_ids_, raw_name_ids_;
    std::vector<std::vector<std::string>> originals_;  // by file
    std::vector<std::uint32_t> renamed_files_;         // by file, if functions are matched
    CountTable functions_;                             // key: file << 32 | name
    struct Origin {
        bool is_old = false, is_new = false;
    };
    std::vector<Origin> origins_;  // by row of functions_: which sides have it
    CountTable file_counts_;       // key: file
    std::size_t function_row_ = 0, file_row_ = 0;
};

}  // namespace assay
