// Finds the object, function and line of each instruction of an image.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "framework/symbols/symbolizer.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace assay::tracing {

// Intel SDM volume 2, section 2.3.11.
inline constexpr unsigned kMostInstructionBytes = 15;

// The lengths of instructions in a trace that has only addresses, derived from the addresses of the
// instructions that are executed next.
class Lengths {
  public:
    void learn(std::uint64_t pc, std::uint64_t next) {
        if (next <= pc || next - pc > kMostInstructionBytes) return;
        std::uint8_t& length = known_.try_emplace(pc, std::uint8_t{UINT8_MAX}).first->second;
        length = std::min(length, static_cast<std::uint8_t>(next - pc));
    }
    std::uint8_t of(std::uint64_t pc, std::uint8_t otherwise) const {
        const auto found = known_.find(pc);
        return found == known_.end() ? otherwise : found->second;
    }

  private:
    std::unordered_map<std::uint64_t, std::uint8_t> known_;
};

struct Place {
    std::string_view object;    // the path of the file; "" if the code belongs to no file
    std::string_view function;  // "???" if unknown
    std::string_view file;      // "???" if unknown
    std::uint32_t line = 0;     // 0 if unknown
};

class Places {
  public:
    // `symbolizer` must outlive this object.
    Places(const replay::ImageTrace& image, symbols::Symbolizer& symbolizer);

    // By index in the instruction table.
    const Place& operator[](std::uint32_t instr) const { return places_[instr]; }
    // Objects that are missing or have changed since the recording, one line each.
    const std::vector<std::string>& problems() const { return problems_; }

  private:
    struct Wanted {
        std::uint64_t file_offset;
        std::uint64_t address;  // as in the file's own headers
        std::uint32_t instr;
    };
    void resolve(const replay::ImageTrace& image, const std::string& path,
                 std::vector<Wanted>& wanted, symbols::Symbolizer& symbolizer);

    std::vector<Place> places_;
    std::vector<std::string> paths_;
    std::vector<std::string> problems_;
};

}  // namespace assay::tracing
