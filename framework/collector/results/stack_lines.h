// The part of the events file that breaks its counts down by calling context.
//
// The innermost function of a stack is always that of the instruction which counts. Functions that
// were inlined are contexts, too: of the instructions of one context, those of an inlined call are
// in one of its own, and so are the calls from there. The same holds for a function that was jumped
// to, as by a tail call.
#pragma once

#include "framework/collector/results/counted_code.h"

#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace assay::collector {

class StackLines {
  public:
    // The contexts that have counts, or lead to some that have. `others` are there, too. What is
    // given must live longer.
    StackLines(const Profile& profile, CountedCode& code, std::span<const std::uint32_t> others);

    // What resolve() needs the sources of.
    std::vector<ObjectPlace> places() const;
    void resolve(CountedCode& code);
    void write(events::Writer& writer) const;
    // From resolve() on, before write(): the number of the line of a context's function. 0 outside
    // of all calls. One of those that have counts, or that were `others`.
    std::uint32_t line_of(std::uint32_t context);

  private:
    struct Context {
        std::uint32_t number;  // in the context table
        ObjectPlace call, function;
        std::size_t first_counts, end_counts;
    };
    // The counts of an instruction in a context; of the whole context, where it is that of its
    // function.
    struct Counted {
        ObjectPlace place;
        std::uint32_t row;  // of the context counts
        bool whole;
    };
    struct Line {
        std::uint32_t parent;  // number in the file
        events::StackKind kind;
        ObjectPlace call;
        std::uint32_t call_line;
        std::string_view function;
    };
    // A function that was executed in a context of another one.
    struct Other {
        std::string_view function;
        std::string_view from;   // the function that has jumped there, if it is known
        std::uint32_t line = 0;  // its number in the file; 0 as long as it has none
    };
    // A context's function, if it has been called directly or through a stub.
    struct Entry {
        Line line;
        bool through_stub;
        std::uint32_t number;  // of the line in the file; 0 as long as it has none
        std::vector<Other> others;
    };

    bool counts_calls(std::size_t event) const {
        return profile_.header.events[event].unit == "calls";
    }
    bool has_counts(std::uint32_t row, bool calls) const;
    bool has_counts(std::uint32_t row) const {
        return has_counts(row, false) || has_counts(row, true);
    }
    // `frames` are those of the context's counts.
    void follow_jumps(const Context& context, std::string_view called,
                      std::span<const std::span<const symbols::Frame>> frames,
                      const CountedCode::Jumps& jumps);
    void enter(const Context& context, std::span<const symbols::Frame> call,
               std::span<const symbols::Frame> function);
    std::uint32_t add_line(const Line& line);
    void add_counts(std::uint32_t line, std::uint32_t row, bool calls);
    // The number of the line of a context's function; of another function whose code was executed
    // in that context; of the innermost one that was inlined there. 0 outside of all calls.
    std::uint32_t line_of(std::uint32_t context, std::string_view function);
    std::uint32_t innermost(std::uint32_t context, std::span<const symbols::Frame> frames);
    std::uint32_t inlined(std::uint32_t parent, std::uint32_t call_line, std::string_view function);

    static constexpr std::size_t kNoEvent = SIZE_MAX;

    const Profile& profile_;
    std::size_t root_counts_ = 0;      // so many of counted_ are outside of all calls
    std::vector<std::size_t> events_;  // of the file, by column of the database
    std::vector<Counted> counted_;     // by context and place
    std::vector<Context> contexts_;    // by number
    std::vector<Entry> entries_;       // by context
    std::vector<Line> lines_;          // by their number in the file, from 1
    std::vector<std::uint64_t> counts_;
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::string_view>, std::uint32_t> inlined_;
    std::map<std::string_view, std::uint32_t> roots_;  // by function: outside of all calls
};

}  // namespace assay::collector
