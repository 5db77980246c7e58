// A file that is written in pieces, compressed if its name ends in .gz or .zst.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace bbv {

// `path` with ".SUFFIX" appended, before the ending of a compressed file.
std::string with_suffix(const std::string& path, const std::string& suffix);

class OutputFile {
  public:
    virtual ~OutputFile() = default;
    // False, with errno set, if that fails.
    virtual bool write(std::string_view text) = 0;
    // The same; nothing can be written any more.
    virtual bool close() = 0;
};

// A new file, or, to append, one that this has closed before: gzip's and zstd's files may follow
// one another in one (RFC 1952, section 2.2; RFC 8878, section 3.1). Null, with errno set, on
// failure.
std::unique_ptr<OutputFile> open_output(const std::string& path, bool append);

}  // namespace bbv
