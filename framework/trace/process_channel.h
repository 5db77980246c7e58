// How a new process image of the profiled program gets a collector.
//
// The driver of the image makes a trace segment (segment_layout.h) and a pipe, the image's
// lifeline, and announces both with one message over a SOCK_SEQPACKET socket that `assay run` has
// made and every driver inherits. Nobody answers. The driver keeps the pipe's writing end, marked
// close-on-exec: the kernel closes it when the process ends, however it does, and when an execve(2)
// succeeds, and the collector sees the pipe's end.
#pragma once

#include <sys/socket.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace assay::trace {

struct Announcement {
    static constexpr std::uint32_t kVersion = 1;
    std::uint32_t version = kVersion;
};

// What travels with it, by SCM_RIGHTS.
enum AnnouncedDescriptor { kAnnouncedSegment, kAnnouncedLifeline, kAnnouncedDescriptors };

// Waits while the channel is full. False if there is nobody any more who receives.
inline bool announce(int channel, const int (&descriptors)[kAnnouncedDescriptors]) {
    Announcement announcement;
    iovec content{&announcement, sizeof announcement};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptors)] = {};
    msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptors);
    std::memcpy(CMSG_DATA(header), descriptors, sizeof descriptors);
    for (;;) {
        if (sendmsg(channel, &message, MSG_NOSIGNAL) >= 0) return true;
        // Too many descriptors of this user are on their way (unix(7)).
        constexpr timespec kPause{0, 1'000'000};
        if (errno == ETOOMANYREFS)
            nanosleep(&kPause, nullptr);
        else if (errno != EINTR)
            return false;
    }
}

}  // namespace assay::trace
