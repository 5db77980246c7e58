// Counts by function and by source file; and by line and instruction, for chosen files only.
// Memory is needed for what is shown, not for what the files contain. Profile feeds both classes.
#pragma once

#include "framework/events/parser.h"
#include "tools/expressions/expressions.h"
#include "tools/profile/count_store.h"
#include "tools/profile/function_matching.h"
#include "tools/profile/heads.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
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

// A source line of a source file.
struct SourceLine {
    std::uint32_t line;
    Counts counts;
};

// An instruction of a source line.
struct SourceInstruction {
    std::uint32_t line, object;  // an index in the profile's objects
    std::uint64_t address;
    Counts counts;
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
    // files that have been renamed. Returns what file each file is from now on.
    const std::vector<std::uint32_t>& match();

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

// What of files is wanted beyond the counts of functions.
struct Details {
    std::vector<bool> files;  // by index
    bool instructions = false;
};

// Reads files, or is passed on what of a file cannot be read twice.
class DetailTable final : public events::Handler {
  public:
    // Both must outlive it.
    DetailTable(FunctionTable& functions, Heads& heads) : functions_(functions), heads_(heads) {}

    // By file, each file's in ascending order.
    std::vector<std::vector<SourceLine>> lines() const;
    std::vector<std::vector<SourceInstruction>> instructions() const;
    std::size_t instruction_count() const { return instruction_keys_.size(); }

    // Before the first file.
    void set_columns(std::size_t columns);
    // Everything is kept until something is chosen.
    void choose(const Details& wanted);
    // Before a file.
    void begin(const std::string& path, Side side);
    // The file that each is from now on, by index.
    void rename_files(const std::vector<std::uint32_t>& renamed);

    void start(const events::Header& header) override { heads_.read_again(header); }
    void object(const events::Object& object) override { heads_.add_object(object); }
    void location(const events::Location& location) override;
    void line(std::uint32_t line, Counts counts) override;
    // Throws Error if there are more than any program has.
    void instruction(const Instruction& at, Counts counts) override;

  private:
    struct Key {
        std::uint32_t file, line, object;
        std::uint64_t address;
        bool operator==(const Key&) const = default;
    };
    struct Hash {
        std::size_t operator()(const Key& key) const;
    };

    FunctionTable& functions_;
    Heads& heads_;
    std::string path_;  // of the file being read
    Signed signed_;
    bool all_ = true;
    Details chosen_;
    std::uint32_t file_ = 0;  // of the location
    bool is_wanted_ = false;
    CountTable lines_;  // key: file << 32 | line
    std::unordered_map<Key, std::uint32_t, Hash> instruction_rows_;
    std::vector<Key> instruction_keys_;
    CountTable instructions_;  // key: the row
};

}  // namespace assay
