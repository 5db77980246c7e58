// Reads and writes whole files. Reports every error of the system, and compresses by name or
// decompresses by content.
#pragma once

#include "framework/events/compression.h"
#include "framework/support/descriptor.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace assay::events {

// A file that appears under its name only when it is complete: see writer.h. It gets the
// permissions, and if possible the owner and group, of the file that it replaces. The name - is
// standard output. In a folder that everybody may write, such as /tmp, a file or link of another
// user is neither followed nor replaced: Error.
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
    std::string target_;     // after all symbolic links
    std::string temporary_;  // empty if the target is written directly
    std::unique_ptr<Codec> compressor_;
    int descriptor_ = -1;
};

// Throws Error if an OutputFile of that name surely cannot be written. Makes and changes no file.
// Call it before the work whose result the file will hold.
void check_writable(const std::string& path);

// The same for a file that is written in place, as fopen(3) does.
void check_writable_in_place(const std::string& path);

// The target of the last link, which need not exist. The result is still a link if the links form a
// circle or are more than open(2) follows.
std::string behind_links(const std::string& link);

// From now on, a signal that ends the process (SIGHUP, SIGINT, SIGTERM) first removes the
// incomplete files that the process has written.
void remove_incomplete_files_on_signals();

// Reads a file, decompressed if it is gzip, zstd or xz. The name - is standard input.
class InputFile {
  public:
    static constexpr std::size_t kBlock = std::size_t{256} * 1024;

    // Reads at most `block` bytes at once, before decompression. Throws Error.
    explicit InputFile(const std::string& path, std::size_t block = kBlock);

    // Reads on, and passes what it has read to `consumer`. False after the end. Throws Error.
    bool next(const Consumer& consumer);

  private:
    const std::string path_;
    const Descriptor file_;
    std::vector<char> buffer_;
    std::unique_ptr<Codec> decompressor_;
    bool has_begun_ = false;
};

// Passes the content of a file to `consumer` block by block, as InputFile reads it.
void read_file(const std::string& path, const Consumer& consumer);

// False for standard input, a pipe or a device. True if the file cannot be opened: opening it then
// gives the better message.
bool can_be_read_again(const std::string& path);

// Returns at most `size` bytes from the beginning of a file, decompressed.
std::string beginning_of_file(const std::string& path, std::size_t size);

}  // namespace assay::events
