// Limits of memory that the program has set for itself.
#pragma once

#include <sys/resource.h>
#include <optional>

namespace assay::native {

class MemoryLimits {
  public:
    // RLIMIT_AS or RLIMIT_DATA; nothing if the program has not set it.
    std::optional<rlimit>& of(long resource) {
        return resource == RLIMIT_AS ? address_space_ : data_;
    }
    const std::optional<rlimit>& of(long resource) const {
        return resource == RLIMIT_AS ? address_space_ : data_;
    }

  private:
    std::optional<rlimit> address_space_, data_;
};

}  // namespace assay::native
