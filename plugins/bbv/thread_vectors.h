// The block vectors of one thread, and what it has executed in all.
#pragma once

#include "plugins/bbv/output_file.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace bbv {

struct Totals {
    std::uint64_t instructions = 0;
    std::uint64_t repetitions = 0;  // of repeated string instructions, as exp-bbv counts them
    std::uint64_t repeated = 0;     // executions of such instructions
    // By block, for those that have fldcw: instructions of the block that were executed.
    std::map<std::uint32_t, std::uint64_t> with_control_words;
};

class ThreadVectors {
  public:
    explicit ThreadVectors(std::string path) : path_(std::move(path)) {}

    // Writes the line of an interval. False, with errno set, if that fails.
    bool write(std::string_view line);
    // Ends the file, creating it if nothing has been written.
    bool finish(const std::string& text);
    // Goes on later. Bounds the number of open files.
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
