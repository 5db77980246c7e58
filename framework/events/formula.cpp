#include "framework/events/formula.h"

#include "framework/events/lexical.h"
#include "framework/support/error.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace assay::events {

namespace {

// Of an event in a sum. A machine's latencies are lower.
constexpr double kMostWeight = 1e9;
// Nobody writes formulas that are nested more deeply, and they would use up the stack.
constexpr int kMaxDepth = 100;

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name(char c) {
    return is_letter(c) || is_digit(c) || c == '-' || c == '.';
}

}  // namespace

// Recursive descent. Each function consumes the construct in its name and appends the steps in
// postfix order.
class FormulaParser {
  public:
    FormulaParser(std::string_view text, std::span<const Event> events, Formula& formula)
        : text_(text), rest_(text), events_(events), steps_(formula.steps_) {}

    void parse() {
        sum();
        next();
        if (!rest_.empty()) fail("unexpected text", rest_);
    }

  private:
    using Kind = Formula::Kind;

    // The next character that is not blank. 0 at the end; the text may contain a 0 as well.
    char next() {
        rest_ = skip_blanks(rest_);
        return rest_.empty() ? '\0' : rest_.front();
    }

    bool take(char wanted) {
        if (next() != wanted) return false;
        rest_.remove_prefix(1);
        return true;
    }

    void sum() {
        product();
        for (;;) {
            if (take('+')) {
                product();
                steps_.push_back({Kind::kAdd});
            } else if (take('-')) {
                product();
                steps_.push_back({Kind::kSubtract});
            } else {
                return;
            }
        }
    }

    void product() {
        factor();
        for (;;) {
            if (take('*')) {
                factor();
                steps_.push_back({Kind::kMultiply});
            } else if (take('/')) {
                factor();
                steps_.push_back({Kind::kDivide});
            } else {
                return;
            }
        }
    }

    void factor() {
        if (++depth_ > kMaxDepth) fail("nested too deeply", rest_);
        if (take('-')) {
            factor();
            steps_.push_back({Kind::kNegate});
        } else if (take('(')) {
            sum();
            if (!take(')')) fail("missing )", rest_);
        } else if (is_letter(next())) {
            name();
        } else {
            number();
        }
        --depth_;
    }

    void name() {
        const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_name);
        const std::string_view whole(rest_.begin(), end);
        for (std::string_view part = whole;; part = part.substr(0, part.rfind('-'))) {
            const auto event = std::find_if(events_.begin(), events_.end(),
                                            [&](const Event& e) { return e.name == part; });
            if (event != events_.end()) {
                steps_.push_back({Kind::kEvent, static_cast<std::size_t>(event - events_.begin())});
                rest_.remove_prefix(part.size());
                return;
            }
            if (part.find('-') == std::string_view::npos) break;
        }
        fail("unknown event", whole);
    }

    void number() {
        double value = 0;
        if (!is_digit(next())) fail("expected an event, a number or (", rest_);
        const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
        if (error != std::errc()) fail("number out of range", rest_);
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        steps_.push_back({Kind::kNumber, 0, value});
    }

    [[noreturn]] void fail(std::string_view reason, std::string_view at) const {
        throw Error("formula '" + excerpt(text_) + "': " + std::string(reason) +
                    (at.empty() ? " at its end" : " '" + excerpt(at) + "'"));
    }

    std::string_view text_, rest_;
    std::span<const Event> events_;
    std::vector<Formula::Step>& steps_;
    int depth_ = 0;
};

Formula::Formula(std::string_view text, std::span<const Event> events) {
    FormulaParser(text, events, *this).parse();
}

std::optional<double> Formula::value(std::span<const std::uint64_t> totals) const {
    std::vector<double> stack;
    const auto pop = [&stack] {
        const double top = stack.back();
        stack.pop_back();
        return top;
    };
    for (const Step& step : steps_) {
        switch (step.kind) {
            case Kind::kNumber:
                stack.push_back(step.number);
                continue;
            case Kind::kEvent:
                stack.push_back(static_cast<double>(totals[step.event]));
                continue;
            case Kind::kNegate:
                stack.back() = -stack.back();
                continue;
            default:
                break;
        }
        const double right = pop();
        double& left = stack.back();
        switch (step.kind) {
            case Kind::kAdd:
                left += right;
                break;
            case Kind::kSubtract:
                left -= right;
                break;
            case Kind::kMultiply:
                left *= right;
                break;
            default:
                if (right == 0) return std::nullopt;
                left /= right;
                break;
        }
    }
    return std::isfinite(stack.back()) ? std::optional(stack.back()) : std::nullopt;
}

std::optional<std::vector<std::uint32_t>> Formula::weights(std::size_t events) const {
    // The factors of an operand, and the constant after those of the events.
    using Sum = std::vector<double>;
    std::vector<Sum> stack;
    const auto is_constant = [events](const Sum& sum) {
        return std::all_of(sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(events),
                           [](double factor) { return factor == 0; });
    };
    for (const Step& step : steps_) {
        if (step.kind == Kind::kNumber || step.kind == Kind::kEvent) {
            Sum& sum = stack.emplace_back(events + 1);
            (step.kind == Kind::kNumber ? sum.back() : sum[step.event]) =
                step.kind == Kind::kNumber ? step.number : 1;
            continue;
        }
        if (step.kind == Kind::kNegate || step.kind == Kind::kDivide) return std::nullopt;
        Sum right = std::move(stack.back());
        stack.pop_back();
        Sum& left = stack.back();
        if (step.kind == Kind::kMultiply) {
            if (!is_constant(right)) std::swap(left, right);
            if (!is_constant(right)) return std::nullopt;
            for (double& factor : left) factor *= right.back();
            continue;
        }
        const double sign = step.kind == Kind::kAdd ? 1 : -1;
        for (std::size_t i = 0; i <= events; ++i) left[i] += sign * right[i];
    }
    if (stack.back().back() != 0) return std::nullopt;
    std::vector<std::uint32_t> factors;
    for (std::size_t i = 0; i < events; ++i) {
        const double factor = stack.back()[i];
        if (!(factor >= 0 && factor <= kMostWeight) || factor != std::floor(factor))
            return std::nullopt;
        factors.push_back(static_cast<std::uint32_t>(factor));
    }
    return factors;
}

bool is_computable(std::string_view text, std::span<const Event> events) {
    try {
        const Formula formula(text, events);
        return true;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace assay::events
