#include "framework/collector/hosted/channel.h"

#include "framework/support/text.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace assay::collector {
namespace {

constexpr std::size_t kPart = std::size_t{64} * 1024;
// The longest messages contain the series of a profiler.
constexpr std::uint32_t kMostBytes = 256 * 1024 * 1024;

bool wait_for(int descriptor, short what, std::chrono::milliseconds patience) {
    pollfd source{descriptor, what, 0};
    const int ready = poll(&source, 1, static_cast<int>(patience.count()));
    return ready > 0 || (ready < 0 && errno == EINTR);
}

void attach(msghdr& message, char* control, std::size_t bytes, int descriptor) {
    message.msg_control = control;
    message.msg_controllen = bytes;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
}

}  // namespace

Channel::Channel(Channel&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      arrived_descriptor_(std::exchange(other.arrived_descriptor_, -1)),
      arrived_(std::move(other.arrived_)),
      taken_(other.taken_),
      ended_(other.ended_) {}

Channel& Channel::operator=(Channel&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(arrived_descriptor_, other.arrived_descriptor_);
    std::swap(arrived_, other.arrived_);
    std::swap(taken_, other.taken_);
    std::swap(ended_, other.ended_);
    return *this;
}

void Channel::close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    if (arrived_descriptor_ >= 0) ::close(std::exchange(arrived_descriptor_, -1));
}

int Channel::release() {
    return std::exchange(descriptor_, -1);
}

bool Channel::send(const Message& message, int descriptor, const std::function<bool()>& go_on) {
    constexpr std::chrono::milliseconds kPatience{100};
    if (message.body().size() > kMostBytes)
        throw Error(fmt::format("its message has {} bytes, but the limit is {}",
                                message.body().size(), kMostBytes));
    const Header header{message.kind(), static_cast<std::uint32_t>(message.body().size())};
    std::string all(reinterpret_cast<const char*>(&header), sizeof header);
    all += message.body();
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    for (std::size_t sent = 0; sent < all.size();) {
        iovec content{all.data() + sent, all.size() - sent};
        msghdr part{};
        part.msg_iov = &content;
        part.msg_iovlen = 1;
        if (descriptor >= 0 && sent == 0) attach(part, control.data(), control.size(), descriptor);
        const ssize_t now = sendmsg(descriptor_, &part, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (now >= 0)
            sent += static_cast<std::size_t>(now);
        else if (errno != EAGAIN && errno != EINTR)
            return false;
        else if (!wait_for(descriptor_, POLLOUT, kPatience) && !go_on())
            return false;
    }
    return true;
}

void Channel::wait(std::chrono::milliseconds patience) const {
    wait_for(descriptor_, POLLIN, patience);
}

std::optional<Message> Channel::receive() {
    for (;;) {
        if (auto message = cut()) return message;
        if (ended_ || !fill()) return std::nullopt;
    }
}

// Returns true if data has arrived.
bool Channel::fill() {
    arrived_.erase(0, std::exchange(taken_, 0));
    const std::size_t before = arrived_.size();
    arrived_.resize(before + kPart);
    iovec content{arrived_.data() + before, kPart};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr part{};
    part.msg_iov = &content;
    part.msg_iovlen = 1;
    part.msg_control = control.data();
    part.msg_controllen = control.size();
    const ssize_t got = recvmsg(descriptor_, &part, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const int error = errno;
    arrived_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got <= 0) {
        ended_ = got == 0 || (error != EAGAIN && error != EINTR);
        return false;
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&part); header; header = CMSG_NXTHDR(&part, header)) {
        if (header->cmsg_type != SCM_RIGHTS) continue;
        if (arrived_descriptor_ >= 0) ::close(arrived_descriptor_);
        std::memcpy(&arrived_descriptor_, CMSG_DATA(header), sizeof arrived_descriptor_);
    }
    return true;
}

std::optional<Message> Channel::cut() {
    Header header;
    const std::string_view left = std::string_view(arrived_).substr(taken_);
    if (left.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, left.data(), sizeof header);
    if (header.bytes > kMostBytes) throw GarbledMessage("its process has sent garbage");
    if (left.size() - sizeof header < header.bytes) return std::nullopt;
    Message message(header.kind);
    message.add_body(left.substr(sizeof header, header.bytes));
    taken_ += sizeof header + header.bytes;
    return message;
}

int Channel::take_descriptor() {
    return std::exchange(arrived_descriptor_, -1);
}

void Channel::signal_arrivals() const {
    fcntl(descriptor_, F_SETOWN, getpid());
    fcntl(descriptor_, F_SETFL, O_ASYNC);
}

ChannelPair make_channel() {
    std::array<int, 2> ends{-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
        throw Error(fmt::format("cannot create a socket for a profiler's process: {}",
                                system_reason(errno)));
    return {Channel(ends[0]), Channel(ends[1])};
}

namespace {

template <typename List, typename AddOne>
void add_list(Message& message, const List& list, AddOne add_one) {
    message.add(list.size());
    for (const auto& element : list) add_one(element);
}

template <typename TakeOne>
void take_list(Fields& fields, TakeOne take_one) {
    for (std::uint64_t left = fields.number(); left > 0; --left) take_one();
}

void add_tables(Message& to, const ProfilerFacts& facts) {
    add_list(to, facts.events, [&](const ProfilerEvent& event) {
        to.add(event.name).add(event.description).add(event.unit);
    });
    add_list(to, facts.derived, [&](const ProfilerDerived& figure) {
        to.add(figure.name).add(figure.formula).add(figure.unit);
    });
    add_list(to, facts.options, [&](const ProfilerOption& option) {
        to.add(option.name).add(option.argument).add(option.help);
        to.add(option.default_value ? 1 : 0)
            .add(option.default_value.value_or(""))
            .add(option.type);
    });
    add_list(to, facts.value_lists, [&](const std::string& list) { to.add(list); });
}

void take_tables(Fields& from, ProfilerFacts& facts) {
    take_list(from, [&] {
        ProfilerEvent& event = facts.events.emplace_back();
        for (std::string* text : {&event.name, &event.description, &event.unit})
            *text = from.text();
    });
    take_list(from, [&] {
        ProfilerDerived& figure = facts.derived.emplace_back();
        for (std::string* text : {&figure.name, &figure.formula, &figure.unit}) *text = from.text();
    });
    take_list(from, [&] {
        ProfilerOption& option = facts.options.emplace_back();
        for (std::string* text : {&option.name, &option.argument, &option.help})
            *text = from.text();
        const bool has_default = from.number() != 0;
        const std::string value = from.text();
        if (has_default) option.default_value = value;
        option.type = static_cast<vp_option_type>(from.number());
    });
    take_list(from, [&] { facts.value_lists.push_back(from.text()); });
}

void add_series(Message& to, const events::Series& series) {
    to.add(series.name).add(series.description).add(series.profiler).add(series.phase);
    to.add(series.thread).add(series.log_x ? 1 : 0).add(series.adds ? 1 : 0).add(series.each);
    to.add(series.x.name).add(series.x.unit);
    add_list(to, series.columns,
             [&](const events::Axis& column) { to.add(column.name).add(column.unit); });
    add_list(to, series.numbers, [&](std::uint64_t number) { to.add(number); });
}

// The limits of the events file apply, but a profiler may have overwritten the data.
events::Series take_series(Fields& from) {
    events::Series series;
    for (std::string* text : {&series.name, &series.description, &series.profiler, &series.phase})
        *text = from.text();
    series.thread = static_cast<std::uint32_t>(from.number());
    series.log_x = from.number() != 0;
    series.adds = from.number() != 0;
    series.each = from.number();
    for (std::string* text : {&series.x.name, &series.x.unit}) *text = from.text();
    take_list(from, [&] {
        std::string name = from.text();
        series.columns.push_back({std::move(name), from.text()});
    });
    take_list(from, [&] { series.numbers.push_back(from.number()); });
    if (events::defect(series)) throw GarbledMessage("its process has sent garbage");
    return series;
}

}  // namespace

void add(Message& to, const ProfilerFacts& facts) {
    to.add(facts.name).add(facts.description);
    add_tables(to, facts);
    to.add(facts.has_preface ? 1 : 0).add(facts.warms_up ? 1 : 0);
    for (const auto* events : {&facts.left_out, &facts.unscaled})
        add_list(to, *events, [&](std::uint32_t event) { to.add(event); });
    add_list(to, facts.no_error, [&](const auto& entry) { to.add(entry.first).add(entry.second); });
    add_list(to, facts.descriptions,
             [&](const auto& entry) { to.add(entry.first).add(entry.second); });
    add_list(to, facts.parts, [&](const std::string& part) { to.add(part); });
    add_list(to, facts.told_totals, [&](bool told) { to.add(told ? 1 : 0); });
    add_list(to, facts.series, [&](const events::Series& series) { add_series(to, series); });
}

ProfilerFacts take_facts(Fields& from) {
    ProfilerFacts facts;
    facts.name = from.text();
    facts.description = from.text();
    take_tables(from, facts);
    facts.has_preface = from.number() != 0;
    facts.warms_up = from.number() != 0;
    for (auto* events : {&facts.left_out, &facts.unscaled})
        take_list(from, [&] { events->insert(static_cast<std::uint32_t>(from.number())); });
    take_list(from, [&] {
        const auto event = static_cast<std::uint32_t>(from.number());
        facts.no_error[event] = from.text();
    });
    take_list(from, [&] {
        std::string name = from.text();
        facts.descriptions.emplace_back(std::move(name), from.text());
    });
    take_list(from, [&] { facts.parts.push_back(from.text()); });
    take_list(from, [&] { facts.told_totals.push_back(from.number() != 0); });
    take_list(from, [&] {
        if (facts.series.size() == events::kMostSeries)
            throw GarbledMessage("its process has sent garbage");
        facts.series.push_back(take_series(from));
    });
    return facts;
}

}  // namespace assay::collector
