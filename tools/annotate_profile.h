// The sum of one or more events files, by function and by source line.
#pragma once

#include "framework/events/reader.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace assay::annotate {

using Counts = std::span<const std::uint64_t>;
using Descriptions = decltype(events::Header::descriptions);

// Rows of counts, found by a 64-bit key: an open hash table over blocks of rows that never move,
// so that millions of rows cost neither an allocation each nor a copy of them all.
class CountTable {
  public:
    void set_columns(std::size_t columns) { columns_ = columns; }
    std::size_t size() const { return keys_.size(); }
    std::uint64_t key(std::size_t row) const { return keys_[row]; }
    Counts counts(std::size_t row) const { return {row_start(row), columns_}; }
    void add(std::uint64_t key, Counts counts);

  private:
    static constexpr std::size_t kBlockRows = 4096;

    void grow();
    std::size_t slot_of(std::uint64_t key) const;
    std::uint64_t* row_start(std::size_t row) const {
        return &blocks_[row / kBlockRows][row % kBlockRows * columns_];
    }

    std::size_t columns_ = 0;
    std::vector<std::uint32_t> slots_;  // row + 1, or 0; a power of two of them
    std::vector<std::uint64_t> keys_;
    std::vector<std::unique_ptr<std::uint64_t[]>> blocks_;
};

// A source line of a source file.
struct SourceLine {
    std::uint32_t line;
    Counts counts;
};

class Profile final : public events::Handler {
  public:
    // Counts by source line take most of the memory.
    explicit Profile(bool with_lines) : with_lines_(with_lines) {}

    // Throws Error if the file is malformed, or if its events are not those of the others.
    void add_file(const std::string& path);

    // Of the first file.
    const events::Header& header() const { return header_; }
    // What all files say of how they were made, such as the shapes of the caches.
    const Descriptions& descriptions() const { return descriptions_; }
    // What one of the files says otherwise than the first, or does not say, in a clause.
    const std::vector<std::string>& differences() const { return differences_; }
    // What makes a file incomplete, with its name.
    const std::vector<std::string>& incomplete() const { return incomplete_; }
    const std::vector<std::string>& commands() const { return commands_; }
    Counts totals() const { return totals_; }

    struct Function {
        std::string_view name;  // FILE:FUNCTION
        std::uint32_t file;     // index in files()
    };
    std::span<const Function> functions() const { return functions_; }
    Counts function_counts(std::size_t function) const {
        return Counts(function_counts_).subspan(function * columns_, columns_);
    }

    std::span<const std::string_view> files() const { return files_; }
    // The lines of the files wanted, each file's in ascending order; one element per file.
    std::vector<std::vector<SourceLine>> lines(const std::vector<bool>& wanted_files) const;

  private:
    void start(const events::Header& header) override;
    void location(const events::Location& location) override;
    void line(std::uint32_t line, Counts counts) override;

    std::uint32_t file_index(std::string_view name);
    void compare_descriptions(const Descriptions& other);
    void add_totals(const std::string& path, Counts totals);

    bool with_lines_;
    std::string path_, first_path_;  // of the file being read, and of the first
    events::Header header_;
    Descriptions descriptions_;
    std::vector<std::string> commands_, differences_, incomplete_;
    std::size_t columns_ = 0;
    std::vector<std::uint64_t> totals_;

    // Nodes of the maps own the names that the vectors refer to.
    std::unordered_map<std::string, std::uint32_t> file_indices_, function_indices_;
    std::vector<std::string_view> files_;
    std::vector<Function> functions_;
    std::vector<std::uint64_t> function_counts_;
    CountTable line_counts_;  // key: index of the file << 32 | line

    std::uint32_t current_file_ = 0, current_function_ = 0;
    std::string name_;  // scratch
};

}  // namespace assay::annotate
