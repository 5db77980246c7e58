// Parses a Callgrind profile (Valgrind's manual, "Callgrind Format Specification", version 1) and
// passes it to a Handler as the parser of events files does: self costs as lines, calls as calls,
// and costs of instructions if the file has them. Jumps are checked and ignored. Code of an unknown
// file gets the file name "[OBJECT]". Negative costs, which other programs write, make the profile
// a difference. The caller reads the file.
//
// Memory use is bounded by the names in the file: at most kMostNameBytes.
#pragma once

#include "framework/events/parser.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace assay::events {

class CallgrindParser {
  public:
    static constexpr std::size_t kMostNameBytes = std::size_t{1} << 28;

    // `path` appears in messages: every function throws Error("PATH:LINE: reason (value)").
    CallgrindParser(std::string path, Handler& handler, Accept accept = Accept::kProfiles);

    void feed(std::string_view block);
    // The file has ended. Throws Error if it ended too early, or if the totals that it states
    // differ from the sums of its counts.
    void finish();

    const Header& header() const { return header_; }
    const std::vector<std::uint64_t>& totals() const { return totals_; }

  private:
    enum NameKind : std::uint8_t { kObject, kFile, kFunction };
    // The owner of the next line of costs.
    enum class Costs : std::uint8_t { kSelf, kCall, kJump };
    // Both are relative to the last line of costs.
    struct Positions {
        std::uint64_t instruction = 0, line = 0;
    };
    // The names of one kind, and the number in parentheses that stands for each.
    struct Names {
        std::unordered_map<std::uint64_t, std::string> by_number;
    };

    void parse_line(std::string_view line);
    void parse_header_line(std::string_view key, std::string_view text);
    void parse_event(std::string_view text);
    void parse_events(std::string_view text);
    void parse_positions(std::string_view text);
    void parse_specification(std::string_view key, std::string_view text);
    void parse_calls(std::string_view text);
    void parse_jump(std::string_view text);
    void parse_costs(std::string_view line);
    void parse_totals(std::string_view text);
    std::string_view parse_name(NameKind kind, std::string_view text);
    Positions parse_position_list(std::string_view& rest);
    std::uint64_t parse_position(std::string_view word, std::uint64_t last);
    void parse_counts(std::string_view text);
    std::uint64_t parse_cost(std::string_view word);
    void turn_into_difference(std::string_view cost);
    void add_cost(std::uint64_t& total, std::size_t event) const;
    std::uint64_t parse_number(std::string_view text);

    void start_body();
    void pass_location();
    void pass_self();
    void pass_call();
    std::uint32_t line_number(std::uint64_t line);
    std::uint32_t object_index();
    [[noreturn]] void fail(std::string_view reason, std::string_view value) const;

    std::string path_;
    Handler& handler_;
    Accept accept_;
    LineCutter lines_;
    std::uint64_t line_number_ = 0;
    Header header_;
    bool has_instructions_ = false, has_lines_ = true, in_body_ = false, has_events_ = false;
    bool has_function_ = false, location_changed_ = false;
    // Callgrind ends each part with its totals. Other programs that write the format may omit them.
    bool is_callgrinds_ = false, behind_totals_ = false;
    std::array<Names, 3> names_;
    std::size_t name_bytes_ = 0;
    std::unordered_map<std::string, std::uint32_t> object_indices_;

    std::string object_, file_, function_file_, function_, callee_object_, callee_file_, callee_;
    Costs next_costs_ = Costs::kSelf;
    std::uint64_t calls_ = 0;
    Positions last_;
    std::vector<std::uint64_t> counts_, totals_;
    std::optional<std::vector<std::uint64_t>> stated_totals_;
};

}  // namespace assay::events
