// The first event of every log: the command that made the process image.
#pragma once

#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::trace {

struct Command {
    std::string file;  // as execve(2) was given it
    std::vector<std::string> arguments;
};

// Limits the arguments that are kept. Only people read them.
inline constexpr std::size_t kCommandBytes = std::size_t{64} * 1024;

inline std::string command_event(const Command& command) {
    std::string body = command.file + '\0';
    for (const std::string& argument : command.arguments) {
        if (body.size() + argument.size() > kCommandBytes) break;
        body += argument + '\0';
    }
    const EventHeader header{EventType::kCommand, static_cast<std::uint32_t>(body.size())};
    std::string event(reinterpret_cast<const char*>(&header), sizeof header);
    event += body;
    event.resize((event.size() + 7) & ~std::size_t{7});
    return event;
}

// Nothing if the log does not begin with a command.
inline std::optional<Command> command_from(std::string_view log) {
    EventHeader header{};
    if (log.size() < sizeof header) return {};
    std::memcpy(&header, log.data(), sizeof header);
    log.remove_prefix(sizeof header);
    if (header.type != EventType::kCommand || header.bytes > log.size()) return {};
    std::vector<std::string> words;
    for (std::string_view body = log.substr(0, header.bytes); !body.empty();) {
        words.emplace_back(body.substr(0, body.find('\0')));
        body.remove_prefix(std::min(body.size(), words.back().size() + 1));
    }
    if (words.empty()) return {};
    return Command{words.front(), {words.begin() + 1, words.end()}};
}

}  // namespace assay::trace
