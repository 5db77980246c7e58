// How `assay run` starts a driver, and how a driver announces new images. The driver gets its
// settings by an environment variable, which it hides from the program. The arguments of its
// process are thus exactly those of the program.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace assay::trace {

// The processor that a program sees: the real one, or an x86-64 level (psABI, section 3.1.1,
// "Micro-architecture levels") without further features.

// In order: each level has all features of the levels before it.
enum class CpuLevel : std::uint32_t { kHost = 0, kV2 = 2, kV3 = 3, kV4 = 4 };

struct CpuLevelName {
    std::string_view name;
    CpuLevel level;
};
inline constexpr std::array kCpuLevels{
    CpuLevelName{"host", CpuLevel::kHost}, CpuLevelName{"x86-64-v2", CpuLevel::kV2},
    CpuLevelName{"x86-64-v3", CpuLevel::kV3}, CpuLevelName{"x86-64-v4", CpuLevel::kV4}};

constexpr std::string_view name_of(CpuLevel level) {
    for (const CpuLevelName& known : kCpuLevels)
        if (known.level == level) return known.name;
    return "an unknown level";
}

inline constexpr std::string_view kLaunchVariable = "ASSAY_DRIVER=";

struct Launch {
    int segment_fd = -1;            // the trace segment
    int program_fd = -1;            // the ELF file to load, opened for reading
    int lifeline_fd = -1;           // open until the image ends
    int channel_fd = -1;            // announces new images; -1: children are not followed
    std::uint64_t signal_mask = 0;  // of the program's first thread
    // The program sees that addresses are not randomised: not only assay has asked for this.
    bool fixed_addresses = false;
    unsigned restarts = 0;  // how often the driver has executed itself to get other addresses
    std::string name;       // of the executed file, as execve(2) was given it
};

// The variable as NAME=VALUE.
inline std::string to_variable(const Launch& launch) {
    return std::string(kLaunchVariable) + std::to_string(launch.segment_fd) + "," +
           std::to_string(launch.program_fd) + "," + std::to_string(launch.lifeline_fd) + "," +
           std::to_string(launch.channel_fd) + "," + std::to_string(launch.signal_mask) + "," +
           (launch.fixed_addresses ? "1," : "0,") + std::to_string(launch.restarts) + "," +
           launch.name;
}

inline std::optional<Launch> launch_from(const char* variable) {
    Launch launch;
    int length = 0;
    if (!std::string_view(variable).starts_with(kLaunchVariable)) return {};
    variable += kLaunchVariable.size();
    unsigned long long mask = 0;
    int fixed = 0;
    if (std::sscanf(variable, "%d,%d,%d,%d,%llu,%d,%u,%n", &launch.segment_fd, &launch.program_fd,
                    &launch.lifeline_fd, &launch.channel_fd, &mask, &fixed, &launch.restarts,
                    &length) != 7 ||
        length == 0)
        return {};
    launch.signal_mask = mask;
    launch.fixed_addresses = fixed != 0;
    launch.name = variable + length;
    return launch;
}

// The driver renames these variables for its own start, because only the program's dynamic linker
// and C library may read them.
inline constexpr std::string_view kHiddenPrefix = "ASSAY_HIDDEN_";

inline bool concerns_libc(std::string_view variable) {
    return variable.starts_with("LD_") || variable.starts_with("GLIBC_TUNABLES=") ||
           variable.starts_with("MALLOC_");
}

// The environment of a driver's process. The launch variable comes first, because the program may
// have a variable of the same name. `texts` owns the texts of the variables that were changed.
struct DriverEnvironment {
    std::vector<char*> pointers;
    std::deque<std::string> texts;
};

inline DriverEnvironment driver_environment(const std::vector<char*>& environment,
                                            const Launch& launch) {
    DriverEnvironment made;
    const auto add = [&](std::string text) {
        made.texts.push_back(std::move(text));
        made.pointers.push_back(made.texts.back().data());
    };
    add(to_variable(launch));
    for (char* variable : environment) {
        if (concerns_libc(variable) || std::string_view(variable).starts_with(kHiddenPrefix))
            add(std::string(kHiddenPrefix) + variable);
        else
            made.pointers.push_back(variable);
    }
    made.pointers.push_back(nullptr);
    return made;
}

// In the driver's process: its settings, and the environment for the program.
struct ProgramEnvironment {
    std::optional<Launch> launch;
    std::vector<char*> pointers;
};

inline ProgramEnvironment program_environment(char** environment) {
    ProgramEnvironment made;
    if (*environment) made.launch = launch_from(*environment);
    for (char** variable = environment + (made.launch ? 1 : 0); *variable; ++variable) {
        const bool hidden = std::string_view(*variable).starts_with(kHiddenPrefix);
        made.pointers.push_back(*variable + (hidden ? kHiddenPrefix.size() : 0));
    }
    made.pointers.push_back(nullptr);
    return made;
}

// How a new process image of the profiled program gets a collector.
//
// The image's driver makes a trace segment (segment_layout.h) and a pipe, the lifeline. It
// announces both with one message over a SOCK_SEQPACKET socket, which `assay run` has made and
// every driver inherits. The driver expects no answer. It keeps the pipe's writing end, marked
// close-on-exec. The kernel closes this end when the process ends in any way, or when an execve(2)
// succeeds. The collector then sees the end of the pipe.

struct Announcement {
    static constexpr std::uint32_t kVersion = 1;
    std::uint32_t version = kVersion;
};

// The descriptors of the message, sent by SCM_RIGHTS.
enum AnnouncedDescriptor { kAnnouncedSegment, kAnnouncedLifeline, kAnnouncedDescriptors };

// Waits while the channel is full. False if no process receives any more.
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
        // Too many descriptors of this user are in transit (unix(7)).
        constexpr timespec kPause{0, 1'000'000};
        if (errno == ETOOMANYREFS)
            nanosleep(&kPause, nullptr);
        else if (errno != EINTR)
            return false;
    }
}

// A driver gives its descriptors high numbers, so that they do not meet those of the program.

// Returns the new number, or the old one if no high number is free. Marks the descriptor
// close-on-exec.
inline int move_high(int descriptor) {
    // A low limit, because fork(2) copies the descriptor table up to the highest open descriptor.
    constexpr rlim_t kHighest = 1024;
    constexpr rlim_t kRoom = 8;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t highest = std::min(limit.rlim_cur, kHighest);
    const int moved = highest <= kRoom
                          ? -1
                          : fcntl(descriptor, F_DUPFD_CLOEXEC, static_cast<int>(highest - kRoom));
    if (moved < 0) return descriptor;
    close(descriptor);
    return moved;
}

}  // namespace assay::trace
