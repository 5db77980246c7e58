// Which object, function and line each instruction of an image is of.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/symbols/symbolizer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::tracing {

struct Place {
    std::string_view object;    // the path of the file; "" if the code is of none
    std::string_view function;  // "???" if unknown
    std::string_view file;      // "???" if unknown
    std::uint32_t line = 0;     // 0 if unknown
};

class Places {
  public:
    // `symbolizer` must live longer.
    Places(const replay::ImageTrace& image, symbols::Symbolizer& symbolizer);

    // By index in the instruction table.
    const Place& operator[](std::uint32_t instr) const { return places_[instr]; }
    // What objects are gone, or are no longer those that were recorded: a line for each.
    const std::vector<std::string>& problems() const { return problems_; }

  private:
    struct Wanted {
        std::uint64_t file_offset;
        std::uint64_t address;  // as the file's own headers have it
        std::uint32_t instr;
    };
    void resolve(const replay::ImageTrace& image, const std::string& path,
                 std::vector<Wanted>& wanted, symbols::Symbolizer& symbolizer);

    std::vector<Place> places_;
    std::vector<std::string> paths_;
    std::vector<std::string> problems_;
};

}  // namespace assay::tracing
