// The part of the events file that says where code was inlined.
#pragma once

#include "framework/events/writer.h"
#include "framework/symbols/symbolizer.h"

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace assay::collector {

class Sites {
  public:
    // For number(): the site of an instruction with these frames, a symbolizer's; 0: it is not
    // inlined code. The calls that lead to the site are known from then on, too.
    std::uint32_t add(std::span<const symbols::Frame> frames);
    // After the last add(): gives sites their numbers in the file, those of one function together,
    // so that the file names it once.
    void sort();
    std::uint32_t number(std::uint32_t added) const { return numbers_[added]; }
    void write(events::Writer& writer) const;

  private:
    struct Site {
        std::uint32_t parent, depth, line;
        std::string_view file, function;
    };
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::string_view, std::string_view>;

    std::vector<Site> sites_ = {{}};  // the first stands for none
    std::map<Key, std::uint32_t> indices_;
    std::vector<std::uint32_t> order_, numbers_;
};

}  // namespace assay::collector
