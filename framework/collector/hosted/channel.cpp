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
// No message is longer. The longest ones have the series of a profiler.
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
        throw Error(fmt::format("it has {} bytes to send at once, and {} are possible",
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

// Whether anything has arrived.
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

}  // namespace assay::collector
