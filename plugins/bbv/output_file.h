// A file that is written in pieces, and compressed if its name ends in .gz or .zst.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace bbv {

// Appends ".SUFFIX" to `path`, before the ending of a compressed file.
std::string with_suffix(const std::string& path, const std::string& suffix);

class OutputFile {
  public:
    virtual ~OutputFile() = default;
    // Returns false and sets errno on failure.
    virtual bool write(std::string_view text) = 0;
    // Ends the file: no write() may follow. Returns false and sets errno on failure.
    virtual bool close() = 0;
};

// Creates a file. With `append`, continues a file that was closed before: gzip and zstd files may
// be concatenated (RFC 1952, section 2.2; RFC 8878, section 3.1). Returns null and sets errno on
// failure.
std::unique_ptr<OutputFile> open_output(const std::string& path, bool append);

}  // namespace bbv
