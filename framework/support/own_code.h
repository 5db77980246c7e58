// Tells the user's own code from the code of libraries: the one rule for sites of allocations and
// for views of own code only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

class OwnCode {
  public:
    // Without paths, own code is all code outside of system headers, system libraries and
    // interpreters. With paths, it is the code of sources and binaries that are named or lie below.
    // Relative paths begin at the working directory.
    explicit OwnCode(const std::vector<std::string>& paths = {});

    // `file` is a source, and `binary` a program or library; "" or "???" if unknown. Code of an
    // unknown source belongs to its binary, except what the C and C++ libraries put into every
    // program. Code of unknown origin is own.
    bool has(std::string_view function, std::string_view file, std::string_view binary) const;

  private:
    std::vector<std::string> paths_;
};

}  // namespace assay
