// The block vectors of one thread, the numbers of their blocks, and the lines and files that they
// are written to. Files are compressed if their names end in .gz or .zst.
#pragma once

#include "assay/trace_types.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bbv {

// Numbers of basic blocks for block vectors: from 1, in the order of their first executions. The
// address identifies a block, however often and with however many instructions it is translated.

struct NumberedBlock {
    std::uint64_t pc;
    std::uint32_t number;
};

class BlockNumbers {
  public:
    // The number of the block with that index in the block table.
    std::uint32_t number(std::uint32_t index, std::span<const trace_block_t> blocks);
    std::uint32_t count() const { return static_cast<std::uint32_t>(known_.size()); }
    // In ascending order of addresses. Valid until the next new number.
    std::span<const NumberedBlock> by_address();

  private:
    std::vector<std::uint32_t> by_index_;  // 0: no number yet
    std::unordered_map<std::uint64_t, std::uint32_t> known_;
    std::vector<NumberedBlock> sorted_;
};

// Makes the line of an interval for a file of block vectors.
class VectorLine {
  public:
    // Writes the blocks in ascending order of their addresses. Valid until the next call.
    std::string_view write(std::span<const trace_interval_block_t> interval, BlockNumbers& numbers,
                           std::span<const trace_block_t> blocks);

  private:
    struct Part {
        std::uint64_t pc, instructions;
        std::uint32_t block;
    };

    // Contains only the blocks of the interval, because intervals can be short and programs large.
    std::vector<Part> parts_;
    std::string text_;
};

// A file that is written in pieces, and compressed if its name ends in .gz or .zst.

// Appends ".SUFFIX" to `path`, before the ending of a compressed file.
std::string with_suffix(const std::string& path, const std::string& suffix);

class OutputFile {
  public:
    virtual ~OutputFile() = default;
    // Returns false and sets errno on failure.
    virtual bool write(std::string_view text) = 0;
    // Ends the file. Returns false and sets errno on failure.
    virtual bool close() = 0;
};

// Opens a new file, or with `append`, one that was opened here and closed before: gzip and zstd
// files may be concatenated (RFC 1952, section 2.2; RFC 8878, section 3.1). Returns null and sets
// errno on failure.
std::unique_ptr<OutputFile> open_output(const std::string& path, bool append);

struct Totals {
    std::uint64_t instructions = 0;
    std::uint64_t repetitions = 0;  // of repeated string instructions, as exp-bbv counts them
    std::uint64_t repeated = 0;     // executions of such instructions
    // By block with fldcw: the executed instructions of the block.
    std::map<std::uint32_t, std::uint64_t> with_control_words;
};

class ThreadVectors {
  public:
    explicit ThreadVectors(std::string path) : path_(std::move(path)) {}

    // Writes the line of an interval. Returns false and sets errno on failure.
    bool write(std::string_view line);
    // Ends the file, and creates it if nothing has been written.
    bool finish(const std::string& text);
    // Closes the file until the next write, to limit the number of open files.
    bool suspend();
    bool is_open() const { return file_ != nullptr; }
    const std::string& path() const { return path_; }

    Totals totals;

  private:
    bool open();

    std::string path_;
    bool created_ = false;
    std::unique_ptr<OutputFile> file_;
};

}  // namespace bbv
