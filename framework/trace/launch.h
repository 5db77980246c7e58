// What a driver is told when it is started: in an environment variable, which the program does not
// see, so that the arguments of the driver's process are exactly the program's.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

namespace assay::trace {

inline constexpr const char* kLaunchVariable = "ASSAY_DRIVER";

struct Launch {
    int segment_fd = -1;   // the trace segment
    int program_fd = -1;   // the ELF file to load, opened for reading
    int lifeline_fd = -1;  // held until the image's end (process_channel.h)
    int channel_fd = -1;   // where new images are announced; -1: children are not followed
    std::string name;      // of the executed file, as execve(2) was given it
};

inline std::string to_text(const Launch& launch) {
    return std::to_string(launch.segment_fd) + "," + std::to_string(launch.program_fd) + "," +
           std::to_string(launch.lifeline_fd) + "," + std::to_string(launch.channel_fd) + "," +
           launch.name;
}

inline std::optional<Launch> launch_from(const char* text) {
    Launch launch;
    int length = 0;
    if (text == nullptr ||
        std::sscanf(text, "%d,%d,%d,%d,%n", &launch.segment_fd, &launch.program_fd,
                    &launch.lifeline_fd, &launch.channel_fd, &length) != 4 ||
        length == 0)
        return {};
    launch.name = text + length;
    return launch;
}

}  // namespace assay::trace
