// A profile of own code only: counts of library code belong to the lines of own code that called
// it, through calling contexts or inlined calls.
#pragma once

#include "framework/support/own_code.h"

#include <string>
#include <vector>

namespace assay {

// Writes the view of these files, added up, as an events file. Contexts are those of own code.
// Library code without a known caller in own code has a row for each binary. Groups, instructions
// and values are left out. Throws Error if a file cannot be read or written, or if its contexts
// count more than its lines.
void write_own_view(const std::vector<std::string>& paths, const OwnCode& own,
                    const std::string& out);

// The view as a file in memory, which tools read like any other.
class OwnView {
  public:
    // Throws Error.
    OwnView(const std::vector<std::string>& paths, const OwnCode& own);
    ~OwnView();
    OwnView(const OwnView&) = delete;
    OwnView& operator=(const OwnView&) = delete;

    const std::string& path() const { return path_; }

  private:
    int descriptor_;
    std::string path_;
};

}  // namespace assay
