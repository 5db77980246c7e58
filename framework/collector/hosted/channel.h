// What the collector and the process of a profiler say to one another: messages over a socket.
//
// Neither trusts the other to go on: a send to an end that is gone fails, and what has arrived is
// decoded with checks, which throw GarbledMessage.
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
    // To the profiler's process; each line answers by the message behind it.
    kOptions,  // command, samples, number of settings, names and values: kDone or kRefused
    kStart,    // kSpec or kRefused
    kCollect,  // see HostedProfiler::Collected; with the segment's descriptor: nothing
    kTake,     // a slot, whose next buffer is to be processed: kTaken
    kRest,     // what the slots have left: nothing
    kFinish,   // how long the run took, in ns: kFacts, behind all samples
    kSummary,  // totals: kText
    kPreface,  // instruction, list: kText
    kFormat,   // instruction, value: kText
    kStop,     // kDone
    kRelease,  // the process ends

    // From there.
    kFacts,    // see ProfilerFacts; also first of all
    kRefused,  // why the run cannot start
    kSpec,     // specification, and lists of values if there are any; kFacts stands before it
    kTaken,
    kSamples,  // PlacedSample, as many as there are
    kTotals,   // by event, at the end of a burst
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

// Takes a message apart, in the order in which it was put together.
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
    // Gives the descriptor up to the caller.
    int release();

    // Waits for room; false if nobody is there any more, or if `go_on`, which is asked now and then
    // meanwhile, says so. A descriptor can go with it.
    bool send(const Message& message, int descriptor, const std::function<bool()>& go_on);
    // Waits at most so long for anything that can be received, or for the end.
    void wait(std::chrono::milliseconds patience) const;
    // The next message that has arrived as a whole, without waiting. Throws GarbledMessage if the
    // beginning of one gives an impossible length.
    std::optional<Message> receive();
    // Whether only a part of the next message has arrived.
    bool has_part() const { return taken_ != arrived_.size(); }
    // Whether the other end is gone, and all that it has sent received.
    bool ended() const { return ended_; }
    // Of the last descriptor that has arrived; the caller's from now on. -1 if there is none.
    int take_descriptor();
    // From now on SIGIO says when something can be received.
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
    std::size_t taken_ = 0;  // of what has arrived
    bool ended_ = false;
};

// Both ends, closed on exec. Throws Error.
struct ChannelPair {
    Channel near, far;
};
ChannelPair make_channel();

// What is passed between the collector and the process of a profiler, as parts of messages.

// With the mapping that its pc was in when it was returned.
struct PlacedSample {
    vsample_t sample;
    std::uint64_t mapping;
};

void add(Message& message, const ProfilerFacts& facts);
// Throws GarbledMessage.
ProfilerFacts take_facts(Fields& fields);

// The process that a profiler has to itself.

struct GuestSettings {
    std::string path, command;        // as LoadedProfiler has them
    std::chrono::milliseconds limit;  // see CrashGuard
    std::string debug_cache;          // see Symbolizer
};

// Loads the profiler and does what the collector says (channel.h), until that says that it shall
// end, or is gone. In a process that fork(2) has just made for it; `state` is shared with the
// collector, which reads there how it ends.
[[noreturn]] void run_guest(const GuestSettings& settings, Channel channel, CallState& state,
                            pid_t collector);

}  // namespace assay::collector
