// The folder in which a unit was compiled, and the full paths of its source files.
#pragma once

#include <elfutils/libdw.h>

#include <string>
#include <string_view>

namespace assay::symbols {

class CompilationDirectory {
  public:
    explicit CompilationDirectory(Dwarf_Die unit);

    // `file` as libdw names it: with its entry of the directory table, which may be relative to
    // the compilation directory. Joined without making it any shorter, as Cachegrind does, so
    // "./elf" and "../include/list.h" are "./elf/../include/list.h".
    std::string path_of(std::string_view file) const;

  private:
    std::string directory_;  // with a final '/', or empty if unknown
    bool may_be_included_ = false;
};

}  // namespace assay::symbols
