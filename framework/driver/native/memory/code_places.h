// Where code of files has been. Counts are kept by address, so that no other code may come there:
// else what one library has executed before dlclose(3) would count for the one opened next.
#pragma once

#include "framework/driver/native/memory/own_memory.h"

#include <sys/types.h>
#include <cstdint>
#include <optional>
#include <vector>

namespace assay::native {

// A file as it is mapped.
struct MappedFile {
    dev_t device = 0;
    ino_t inode = 0;
    std::uint64_t base = 0;  // the address of its first byte

    bool operator==(const MappedFile&) const = default;
};

class CodePlaces {
  public:
    void add(const Range& range, const MappedFile& file);
    bool overlap(const Range& range) const;
    // Whether code that is not this file's, mapped so, has been anywhere there. Nothing: no file.
    bool are_of_others(const Range& range, const std::optional<MappedFile>& file) const;
    // The next lower place of that size where no code of files has been. Nothing: there is none.
    std::optional<Range> below(Range range) const;

  private:
    struct Place {
        Range range;
        MappedFile file;
    };
    std::vector<Place> places_;
};

}  // namespace assay::native
