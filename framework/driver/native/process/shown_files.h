// The contents of the files of /proc that describe the process: what the program reads there is
// about itself. The descriptors are the kernel's own; only what is read from them is not.
#pragma once

#include <sys/types.h>
#include <map>
#include <string>
#include <utility>

namespace assay::native {

enum class ProcFile { kOther, kExecutable, kMaps, kSmaps, kEnvironment, kAuxiliaryVector };

struct ShownFile {
    ProcFile file = ProcFile::kOther;
    std::string text;  // as it was at the last read from its beginning
};

// By what they are, not by descriptor: those are copied, inherited and passed on.
class ShownFiles {
  public:
    // Nothing happens if the descriptor's file is not of /proc.
    void add(int descriptor, ProcFile file);
    // nullptr if the descriptor is not of such a file.
    ShownFile* find(long descriptor);

  private:
    std::map<std::pair<dev_t, ino_t>, ShownFile> files_;
};

}  // namespace assay::native
