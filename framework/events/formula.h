// The formula of a derived figure: event names, numbers, + - * / and parentheses, evaluated over
// event totals. Multiplication and division bind tighter. Operators of the same rank are evaluated
// from left to right. A name is as long as possible: `a-b` is the event a-b if there is one,
// otherwise a minus b.
#pragma once

#include "framework/events/header.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace assay::events {

class Formula {
  public:
    // Names are those of `events`. Throws Error with the part that is wrong.
    Formula(std::string_view text, std::span<const Event> events);

    // The factor of each event, if the formula is a sum of events times whole numbers.
    std::optional<std::vector<std::uint32_t>> weights(std::size_t events) const;
    // No value if the formula divides by zero. `totals` is in the order of the events.
    std::optional<double> value(std::span<const std::uint64_t> totals) const;

  private:
    friend class FormulaParser;
    enum class Kind : std::uint8_t {
        kNumber,
        kEvent,
        kAdd,
        kSubtract,
        kMultiply,
        kDivide,
        kNegate
    };
    struct Step {
        Kind kind;
        std::size_t event = 0;
        double number = 0;
    };
    std::vector<Step> steps_;  // in postfix order
};

// True if the formula uses only events of `events`.
bool is_computable(std::string_view text, std::span<const Event> events);

}  // namespace assay::events
