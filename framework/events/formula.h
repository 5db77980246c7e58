// The formula of a derived figure: event names, numbers, + - * / and parentheses, evaluated over
// event totals. Multiplication and division bind tighter; operators of the same rank go from left
// to right. A name reaches as far as it still names an event, so `a-b` is the event a-b if there
// is one, else a minus b.
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
    // Throws Error with the offending part. Names are those of `events`.
    Formula(std::string_view text, std::span<const Event> events);

    // No value where something is divided by zero. `totals` is in the order of the events.
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

// True if the formula needs no other events.
bool is_computable(std::string_view text, std::span<const Event> events);

}  // namespace assay::events
