#include "framework/events/reader.h"

#include "framework/events/callgrind_parser.h"
#include "framework/events/file.h"
#include "framework/support/error.h"

#include <algorithm>
#include <array>

namespace assay::events {

namespace {

// Long enough to tell the formats apart.
constexpr std::size_t kBeginningBytes = 16;

bool begins_as_events(std::string_view beginning) {
    return beginning.starts_with("desc:") || beginning.starts_with("cmd:");
}

// Callgrind's own files begin with the first or, in older releases, the second; others that write
// its format (the specification lets them begin with any line of the header) do as they like.
bool begins_as_callgrind(std::string_view beginning) {
    constexpr std::array<std::string_view, 7> kFirst = {
        "# callgrind", "version:", "creator:", "pid:", "positions:", "event:", "events:"};
    return std::any_of(kFirst.begin(), kFirst.end(),
                       [&](std::string_view first) { return beginning.starts_with(first); });
}

// A parser that is chosen by the first bytes of what it is fed with.
class AnyParser {
  public:
    AnyParser(const std::string& path, Handler& handler, Accept accept)
        : events_(path, handler, accept), callgrind_(path, handler) {}

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

}  // namespace

FileSummary read_events(const std::string& path, Handler& handler, Accept accept) {
    AnyParser parser(path, handler, accept);
    read_file(path, [&parser](std::string_view block) { parser.feed(block); });
    return parser.finish();
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
