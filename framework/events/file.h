// Whole files in and out, with every error of the system reported and compression by name or
// content.
#pragma once

#include "framework/events/compression.h"

#include <memory>
#include <string>
#include <string_view>

namespace assay::events {

// A file that appears under its name only once it is complete: see writer.h. It has the
// permissions, and as far as possible the owner and group, of the one that it replaces. The name -
// is standard output. What another user has put into a folder that is everybody's, such as a link
// in /tmp, is neither followed nor replaced: Error.
class OutputFile {
  public:
    explicit OutputFile(const std::string& path);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::string_view text);
    void finish();

  private:
    void open_temporary();
    void write_bytes(std::string_view bytes);
    void close_file();
    [[noreturn]] void fail(int error) const;

    std::string path_;       // as the user named it, for messages
    std::string target_;     // behind symbolic links
    std::string temporary_;  // empty if the target is written directly
    std::unique_ptr<Codec> compressor_;
    int descriptor_ = -1;
};

// Throws Error if an OutputFile of that name could not be written, as far as can be told without
// making or changing one: better before what it is for than after.
void check_writable(const std::string& path);

// The same of a file that is written in place, as fopen(3) does.
void check_writable_in_place(const std::string& path);

// Where the last link leads to, even if nothing is there yet. Still a link if they go in a circle:
// open(2) follows as many.
std::string behind_links(const std::string& link);

// From now on, a signal that ends the process (SIGHUP, SIGINT, SIGTERM) has it remove what it has
// written of files that are not complete.
void remove_incomplete_files_on_signals();

// Passes the content of a file, decompressed if it is gzip or zstd, block by block to `consumer`.
// The name - is standard input.
void read_file(const std::string& path, const Consumer& consumer);

// False for standard input, a pipe or a device. True also if opening will fail, which is the better
// reason to give.
bool can_be_read_again(const std::string& path);

// At most `size` bytes from the beginning of a file, decompressed.
std::string beginning_of_file(const std::string& path, std::size_t size);

}  // namespace assay::events
