// Messages between the collector and the process of a profiler, over a socket.
//
// Each side must expect that the other one fails. A send fails if the other end is closed. Received
// bytes are decoded with checks that throw GarbledMessage.
#pragma once

#include "assay/vprofiler.h"
#include "framework/collector/profilers/crash_guard.h"
#include "framework/collector/profilers/profiler_handle.h"
#include "framework/support/error.h"

#include <sys/types.h>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace assay::collector {

enum class MessageKind : std::uint32_t {
    // Messages to the profiler's process: content, then the answer.
    kOptions,  // command, samples, number of settings, names and values; answer: kDone or kRefused
    kStart,    // answer: kSpec or kRefused
    kCollect,  // see HostedProfiler::Collected; carries the segment's descriptor; no answer
    kTake,     // the slot whose next buffer is to be processed; answer: kTaken
    kRest,     // process the rest of all slots; no answer
    kFinish,   // duration of the run in ns; answer: all samples, then kFacts
    kSummary,  // totals; answer: kText
    kPreface,  // instruction, list; answer: kText
    kFormat,   // instruction, value; answer: kText
    kStop,     // answer: kDone
    kRelease,  // the process ends

    // Messages from the profiler's process.
    kFacts,    // see ProfilerFacts; also the first message of all
    kRefused,  // why the run cannot start
    kSpec,     // specification, then lists of values if there are any; follows kFacts
    kTaken,
    kSamples,  // any number of PlacedSample
    kTotals,   // of each event, at the end of a burst
    kDamaged,  // why the trace cannot be read any further
    kText,     // 1 and a text, or 0
    kDone,
    kRemark,  // a line for the user
    kProblem,
};

class Message {
  public:
    explicit Message(MessageKind kind) : kind_(kind) {}

    MessageKind kind() const { return kind_; }
    const std::string& body() const { return body_; }

    void add_body(std::string_view bytes) { body_ += bytes; }
    Message& add(std::uint64_t number) { return add_raw(number); }
    Message& add(std::string_view text) {
        add(std::uint64_t{text.size()});
        body_ += text;
        return *this;
    }
    template <typename T>
    Message& add_raw(const T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        body_.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }

  private:
    MessageKind kind_;
    std::string body_;
};

struct GarbledMessage : Error {
    using Error::Error;
};

// Reads the parts of a message in the order in which they were added.
class Fields {
  public:
    explicit Fields(std::string_view body) : left_(body) {}

    bool any_left() const { return !left_.empty(); }
    std::uint64_t number() { return raw<std::uint64_t>(); }
    std::string text() { return std::string(take(number())); }
    template <typename T>
    T raw() {
        T value;
        into(value);
        return value;
    }
    template <typename T>
    void into(T& value) {
        static_assert(std::is_trivially_copyable_v<T>);
        std::memcpy(&value, take(sizeof value).data(), sizeof value);
    }

  private:
    std::string_view take(std::uint64_t bytes) {
        if (bytes > left_.size()) throw GarbledMessage("its process has sent garbage");
        const std::string_view taken = left_.substr(0, bytes);
        left_.remove_prefix(bytes);
        return taken;
    }

    std::string_view left_;
};

class Channel {
  public:
    Channel() = default;
    // Takes the descriptor of a stream socket.
    explicit Channel(int descriptor) : descriptor_(descriptor) {}
    Channel(Channel&& other) noexcept;
    Channel& operator=(Channel&& other) noexcept;
    ~Channel() { close(); }

    int descriptor() const { return descriptor_; }
    void close();
    // Gives the descriptor to the caller.
    int release();

    // Waits for room and calls `go_on` from time to time meanwhile. Returns false if the other end
    // is gone, or if `go_on` returns false. `descriptor` is sent with the message, unless it is -1.
    bool send(const Message& message, int descriptor, const std::function<bool()>& go_on);
    // Waits for data or for the end of the channel, at most for `patience`.
    void wait(std::chrono::milliseconds patience) const;
    // Returns the next complete message, without waiting. Throws GarbledMessage if the header has
    // an impossible length.
    std::optional<Message> receive();
    // True if only a part of the next message has arrived.
    bool has_part() const { return taken_ != arrived_.size(); }
    // True if the other end is gone and everything that it sent has been received.
    bool ended() const { return ended_; }
    // Returns the last descriptor that has arrived and gives it to the caller; -1 if there is no
    // descriptor.
    int take_descriptor();
    // From now on, SIGIO is sent when data arrives.
    void signal_arrivals() const;

  private:
    struct Header {
        MessageKind kind;
        std::uint32_t bytes;
    };

    bool fill();
    std::optional<Message> cut();

    int descriptor_ = -1, arrived_descriptor_ = -1;
    std::string arrived_;
    std::size_t taken_ = 0;  // bytes of arrived_
    bool ended_ = false;
};

// Both ends of a channel, closed on exec. make_channel() throws Error.
struct ChannelPair {
    Channel near, far;
};
ChannelPair make_channel();

// Parts of messages.

// A sample, and the mapping that contained its pc when the profiler returned it.
struct PlacedSample {
    vsample_t sample;
    std::uint64_t mapping;
};

void add(Message& message, const ProfilerFacts& facts);
// Throws GarbledMessage.
ProfilerFacts take_facts(Fields& fields);

struct GuestSettings {
    std::string path, command;        // see LoadedProfiler
    std::chrono::milliseconds limit;  // see CrashGuard
    std::string debug_cache;          // see Symbolizer
};

// Loads the profiler and obeys the collector until it sends kRelease or is gone. Called in a
// process that was just forked for the profiler. `state` is shared with the collector, which reads
// there why this process ends.
[[noreturn]] void run_guest(const GuestSettings& settings, Channel channel, CallState& state,
                            pid_t collector);

}  // namespace assay::collector
