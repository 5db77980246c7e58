#include "framework/collector/run/asked_addresses.h"

#include <algorithm>
#include <cstring>

namespace assay::collector {

// The path, a zero byte, the addresses.
void for_each_message(const symbols::Request& asked, std::size_t most,
                      const std::function<void(std::string_view)>& send) {
    const std::string head = asked.object_path + '\0';
    if (head.size() + sizeof(std::uint64_t) > most) return;
    const std::size_t count = (most - head.size()) / sizeof(std::uint64_t);
    for (std::size_t first = 0; first < asked.addresses.size(); first += count) {
        const std::size_t part = std::min(count, asked.addresses.size() - first);
        std::string message = head;
        message.append(reinterpret_cast<const char*>(asked.addresses.data() + first),
                       part * sizeof(std::uint64_t));
        send(message);
    }
}

symbols::Request request_from(std::string_view message) {
    symbols::Request request{std::string(message.substr(0, message.find('\0'))), {}};
    message.remove_prefix(std::min(message.size(), request.object_path.size() + 1));
    request.addresses.resize(message.size() / sizeof(std::uint64_t));
    if (!request.addresses.empty())
        std::memcpy(request.addresses.data(), message.data(),
                    request.addresses.size() * sizeof(std::uint64_t));
    return request;
}

}  // namespace assay::collector
