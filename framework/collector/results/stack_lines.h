// The section of the events file that breaks counts down by calling context.
//
// The innermost function of a stack is always the function of the instruction that counts. An
// inlined function has a context of its own inside the context of its caller, and calls from the
// inlined function start there. A function that was reached by a jump, such as a tail call, is
// treated in the same way.
#pragma once

#include "framework/collector/results/counted_code.h"

#include <deque>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace assay::collector {

class StackLines {
  public:
    // Takes the contexts that have counts, their callers, and `others`. All arguments must live
    // longer.
    StackLines(const Profile& profile, CountedCode& code, std::span<const std::uint32_t> others);

    // Returns the places whose sources resolve() needs.
    std::vector<ObjectPlace> places() const;
    void resolve(CountedCode& code);
    void write(events::Writer& writer) const;
    // Called after resolve() and before write(), for a context that has counts or is one of
    // `others`. Returns the number of the line of its function; 0 outside of all calls.
    std::uint32_t line_of(std::uint32_t context);

  private:
    struct Context {
        std::uint32_t number;  // in the context table
        ObjectPlace call, function;
        std::size_t first_counts, end_counts;
    };
    // The counts of an instruction in a context. With GroupCounts::kAnyRow, those of the whole
    // context, at the place of its function.
    struct Counted {
        std::uint32_t instruction;  // row of the sample database
        std::uint32_t row;          // row of the context counts
        bool whole() const { return instruction == GroupCounts::kAnyRow; }
    };
    struct Line {
        std::uint32_t parent;  // number in the file
        events::StackKind kind;
        ObjectPlace call;
        std::uint32_t call_line;
        std::string_view function;
    };
    // A function that was executed in the context of another function.
    struct Other {
        std::string_view function;
        std::string_view from;   // the function that jumped here, or "" if that is not known
        std::uint32_t line = 0;  // number in the file, or 0 if not yet numbered
    };
    // The function of a context, which was called directly or through a stub.
    struct Entry {
        Line line;
        bool through_stub;
        std::uint32_t number;  // of the line in the file, or 0 if not yet numbered
        std::vector<Other> others;
    };

    const ObjectPlace& place_of(const Counted& counted, const ObjectPlace& function) const {
        return counted.whole() ? function : instructions_[counted.instruction];
    }
    bool counts_calls(std::size_t event) const {
        return profile_.header.events[event].unit == "calls";
    }
    bool has_counts(std::uint32_t row, bool calls) const;
    bool has_counts(std::uint32_t row) const {
        return has_counts(row, false) || has_counts(row, true);
    }
    // `frames` belong to the counts of the context.
    void count_calls(CountedCode& code);
    // Returns the number of the line that the calls of a context enter; 0 without one.
    std::uint32_t entered_by_calls(std::uint32_t context) const;
    void follow_jumps(const Context& context, std::string_view called,
                      std::span<const std::span<const symbols::Frame>> frames,
                      const CountedCode::Jumps& jumps);
    void enter(const Context& context, std::span<const symbols::Frame> call,
               std::span<const symbols::Frame> function);
    std::uint32_t add_line(const Line& line);
    void add_counts(std::uint32_t line, std::uint32_t row, bool calls);
    // Each returns the number of a line, or 0 outside of all calls. line_of() gives the line of a
    // function whose code was executed in the context. innermost() gives the line of the innermost
    // inlined function.
    std::uint32_t line_of(std::uint32_t context, std::string_view function);
    std::uint32_t innermost(std::uint32_t context, std::span<const symbols::Frame> frames);
    std::uint32_t inlined(std::uint32_t parent, std::uint32_t call_line, std::string_view function);

    static constexpr std::size_t kNoEvent = SIZE_MAX;

    const Profile& profile_;
    const std::vector<ObjectPlace> instructions_;  // by row of the sample database
    std::size_t root_counts_ = 0;  // the first root_counts_ of counted_ are outside of all calls
    std::vector<std::size_t> events_;  // event of the file, by column of the database
    std::vector<Counted> counted_;     // by context and place
    std::vector<Context> contexts_;    // by number
    std::vector<Entry> entries_;       // by context
    // By their number in the file, from 1. There can be millions: a vector would copy them as it
    // grows, and take up to three times the memory.
    std::deque<Line> lines_;
    std::deque<std::uint64_t> counts_;  // by line and event
    std::vector<std::uint64_t> calls_;  // by line
    std::map<std::tuple<std::uint32_t, std::uint32_t, ObjectPlace, std::uint32_t>, std::uint64_t>
        recursions_;  // by line, line of the caller, and place and source line of the call
    std::vector<ObjectPlace> sites_, jumped_;  // of the profile's recursive calls, and jumps
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::string_view>, std::uint32_t> inlined_;
    std::map<std::string_view, std::uint32_t> roots_;  // by function, for code outside of all calls
};

}  // namespace assay::collector
