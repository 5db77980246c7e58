#include "framework/events/reader.h"

#include "framework/events/callgrind_parser.h"
#include "framework/events/file.h"
#include "framework/events/formula.h"
#include "framework/support/error.h"

#include <algorithm>
#include <array>
#include <utility>

namespace assay::events {

namespace {

__extension__ using Wide = __int128;

// Enough to tell the formats apart.
constexpr std::size_t kBeginningBytes = 16;

bool begins_as_events(std::string_view beginning) {
    return beginning.starts_with("desc:") || beginning.starts_with("cmd:");
}

// Callgrind's own files begin with "# callgrind", those of older releases with "version:". The
// specification lets a file begin with any line of the header, and other programs do so.
bool begins_as_callgrind(std::string_view beginning) {
    constexpr std::array<std::string_view, 7> kFirst = {
        "# callgrind", "version:", "creator:", "pid:", "positions:", "event:", "events:"};
    return std::any_of(kFirst.begin(), kFirst.end(),
                       [&](std::string_view first) { return beginning.starts_with(first); });
}

// Chooses a parser by the first bytes of the file.
class AnyParser {
  public:
    AnyParser(const std::string& path, Handler& handler, Accept accept)
        : events_(path, handler, accept), callgrind_(path, handler, accept) {}

    void feed(std::string_view block) {
        if (beginning_.size() < kBeginningBytes) {
            beginning_ += block;
            if (beginning_.size() < kBeginningBytes) return;
            is_callgrind_ = begins_as_callgrind(beginning_);
            block = beginning_;
        }
        pass(block);
    }

    FileSummary finish() {
        if (beginning_.size() < kBeginningBytes) pass(beginning_);
        if (is_callgrind_) {
            callgrind_.finish();
            return {callgrind_.header(), callgrind_.totals()};
        }
        events_.finish();
        return {events_.header(), events_.totals()};
    }

  private:
    void pass(std::string_view block) {
        if (is_callgrind_)
            callgrind_.feed(block);
        else
            events_.feed(block);
    }

    Parser events_;
    CallgrindParser callgrind_;
    std::string beginning_;
    bool is_callgrind_ = false;
};

// Passes on only the events that were chosen, after the estimate of cycles.
class EventSelector final : public Handler {
  public:
    EventSelector(const std::string& path, Handler& handler, const EventChoice& choice)
        : path_(path), handler_(handler), choice_(choice) {}

    // Takes the header and the totals of the file, which nothing was passed on of.
    FileSummary chosen(FileSummary whole) {
        difference_ = whole.header.difference;
        choose(whole.header);
        const std::span<const std::uint64_t> totals = chosen(whole.totals);
        whole.totals = {totals.begin(), totals.end()};
        return whole;
    }

  private:
    std::span<const std::uint64_t> chosen(std::span<const std::uint64_t> counts) {
        if (columns_.empty() && weights_.empty()) return counts;
        const std::size_t first = weights_.empty() ? 0 : 1;
        const std::size_t size = columns_.empty() ? counts.size() : columns_.size();
        chosen_.resize(first + size);
        for (std::size_t i = 0; i < size; ++i)
            chosen_[first + i] = counts[columns_.empty() ? i : columns_[i]];
        if (!weights_.empty()) chosen_.front() = cycles(std::span(chosen_).subspan(1));
        return chosen_;
    }

    std::uint64_t cycles(std::span<const std::uint64_t> counts) const {
        Wide sum = 0;
        for (std::size_t i = 0; i < counts.size(); ++i)
            sum += Wide{weights_[i]} *
                   (difference_ ? Wide{static_cast<std::int64_t>(counts[i])} : Wide{counts[i]});
        if (difference_ ? sum != static_cast<std::int64_t>(sum)
                        : sum != static_cast<std::uint64_t>(sum))
            throw Error(path_ + ": the estimated cycles exceed 64 bits, which no run takes");
        return static_cast<std::uint64_t>(sum);
    }

    void choose(Header& header) {
        if (!columns_.empty()) {
            const std::vector<Event> all = std::exchange(header.events, {});
            for (const std::size_t column : columns_) header.events.push_back(all[column]);
            std::erase_if(header.derived, [&](const Derived& derived) {
                return !is_computable(derived.formula, header.events);
            });
        }
        if (choice_.estimates_cycles) add_cycles(header);
    }

    void add_cycles(Header& header) {
        const auto figure =
            std::find_if(header.derived.begin(), header.derived.end(),
                         [](const Derived& derived) { return derived.name == kCycles; });
        if (figure == header.derived.end() || header.events.size() >= kMaxEvents ||
            std::any_of(header.events.begin(), header.events.end(),
                        [](const Event& event) { return event.name == kCycles; }))
            return;
        const auto weights = Formula(figure->formula, header.events).weights(header.events.size());
        if (!weights) return;
        weights_ = *weights;
        header.events.insert(header.events.begin(), {std::string(kCycles), "estimated cycles",
                                                     "cycles", "", figure->formula});
        header.derived.erase(figure);
    }

    void find_columns(const Header& header) {
        if (header.events.size() > choice_.names.size() && !choice_.leaves_out_others) return;
        std::vector<std::size_t> columns;
        for (const std::string& name : choice_.names) {
            const auto found = std::find_if(header.events.begin(), header.events.end(),
                                            [&](const Event& event) { return event.name == name; });
            if (found == header.events.end()) return;
            columns.push_back(static_cast<std::size_t>(found - header.events.begin()));
        }
        columns_ = std::move(columns);
    }

    void start(const Header& header) override {
        if (!choice_.names.empty()) find_columns(header);
        difference_ = header.difference;
        Header selected = header;
        choose(selected);
        handler_.start(selected);
    }
    void turns_into_difference() override {
        difference_ = true;
        handler_.turns_into_difference();
    }
    void location(const Location& location) override { handler_.location(location); }
    void line(std::uint32_t line, std::span<const std::uint64_t> counts) override {
        handler_.line(line, chosen(counts));
    }
    void instruction(const Instruction& at, std::span<const std::uint64_t> counts) override {
        handler_.instruction(at, chosen(counts));
    }
    void values(const Instruction& at, const Hotlist& list) override { handler_.values(at, list); }
    void site(const Site& site) override { handler_.site(site); }
    void line_sites(std::uint32_t site, std::uint64_t count) override {
        handler_.line_sites(site, count);
    }
    void instruction_sites(std::uint32_t site, std::uint64_t count) override {
        handler_.instruction_sites(site, count);
    }
    void group(const Group& group) override { handler_.group(group); }
    void binary(std::string_view function, std::uint32_t object) override {
        handler_.binary(function, object);
    }
    void linkage(std::string_view function, std::string_view name) override {
        handler_.linkage(function, name);
    }
    void counts_of(std::uint32_t group, std::uint32_t line,
                   std::span<const std::uint64_t> counts) override {
        handler_.counts_of(group, line, chosen(counts));
    }
    void stack(const Stack& stack, std::span<const std::uint64_t> counts) override {
        handler_.stack(stack, chosen(counts));
    }
    void calls(std::uint32_t context, std::uint64_t number) override {
        handler_.calls(context, number);
    }
    void recursion(const Recursion& recursion, std::uint64_t number) override {
        handler_.recursion(recursion, number);
    }
    void object(const Object& object) override { handler_.object(object); }
    void call(const Call& call, std::span<const std::uint64_t> counts) override {
        handler_.call(call, chosen(counts));
    }

    const std::string path_;
    Handler& handler_;
    const EventChoice choice_;
    bool difference_ = false;
    std::vector<std::size_t> columns_;    // empty: all
    std::vector<std::uint32_t> weights_;  // of the chosen events in kCycles; empty: without it
    std::vector<std::uint64_t> chosen_;
};

// Thrown to stop reading after the header.
struct HeadRead {};

class HeadReader final : public Handler {
  public:
    Header header;

  private:
    void start(const Header& head) override {
        header = head;
        throw HeadRead();
    }
};

FileSummary read_all_events(const std::string& path, Handler& handler, Accept accept) {
    AnyParser parser(path, handler, accept);
    read_file(path, [&parser](std::string_view block) { parser.feed(block); });
    return parser.finish();
}

}  // namespace

EventChoice choice_of(std::span<const Event> events) {
    EventChoice choice;
    for (const Event& event : events)
        if (event.formula.empty())
            choice.names.push_back(event.name);
        else
            choice.estimates_cycles = true;
    return choice;
}

FileSummary read_events(const std::string& path, Handler& handler, Accept accept,
                        const EventChoice& choice) {
    if (choice.names.empty() && !choice.estimates_cycles)
        return read_all_events(path, handler, accept);
    EventSelector selector(path, handler, choice);
    return selector.chosen(read_all_events(path, selector, accept));
}

Header read_header(const std::string& path, const EventChoice& choice) {
    HeadReader reader;
    try {
        read_events(path, reader, Accept::kDifferences, choice);
    } catch (const HeadRead&) {
    }
    return reader.header;
}

bool begins_as_events_file(const std::string& path) {
    try {
        const std::string beginning = beginning_of_file(path, kBeginningBytes);
        return begins_as_events(beginning) || begins_as_callgrind(beginning);
    } catch (const Error&) {
        return false;
    }
}

}  // namespace assay::events
