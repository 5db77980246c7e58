// Keeps the frames that locations point to for as long as the symbolizer lives.
#pragma once

#include "framework/symbols/names.h"
#include "framework/symbols/symbolizer.h"

#include <memory_resource>
#include <span>
#include <string_view>

namespace assay::symbols {

class FrameStore {
  public:
    Location unknown() const { return {std::span(&unknown_, 1)}; }
    // A function of which no more is known; unknown() if its name is empty.
    Location without_source(std::string_view function);
    // Copies the frames; their strings must be kept by names() already.
    Location keep(std::span<const Frame> frames);
    Names& names() { return names_; }

  private:
    Names names_;
    Frame unknown_{kUnknown, kUnknown, 0};
    std::pmr::monotonic_buffer_resource memory_;
};

}  // namespace assay::symbols
