#include "framework/collector/profilers/host.h"

#include "framework/version.h"

#include <algorithm>
#include <utility>

namespace assay::collector {

std::uint32_t part_number(std::vector<std::string>& named, const std::string& name) {
    constexpr std::size_t kMost = 1000;
    const auto known = std::find(named.begin(), named.end(), name);
    const auto index = static_cast<std::uint32_t>(known - named.begin());
    if (index == kMost) return 0;
    if (known == named.end()) named.push_back(name);
    return index + 1;
}

Host::Host(std::string command) : command_(std::move(command)) {
    table_.size = sizeof table_;
    table_.abi_version = VP_ABI_VERSION;
    table_.version = kVersion;
    table_.command = command_.c_str();
    table_.error = [](const vp_host_t* table, const char* message) {
        self(table).take_error(message);
    };
    table_.warning = [](const vp_host_t* table, const char* message) {
        self(table).take_warning(message);
    };
    table_.describe = [](const vp_host_t* table, const char* name, const char* text) {
        self(table).take_description(name, text);
    };
    table_.part = [](const vp_host_t* table, const char* name) {
        return self(table).take_part(name);
    };
    table_.leave_out = [](const vp_host_t* table, std::uint32_t event) {
        self(table).take_left_out(event);
    };
    table_.unscaled = [](const vp_host_t* table, std::uint32_t event) {
        self(table).take_unscaled(event);
    };
    table_.no_error = [](const vp_host_t* table, std::uint32_t event, const char* why) {
        self(table).take_no_error(event, why);
    };
    table_.series = [](const vp_host_t* table, const vp_series_t* series) {
        return self(table).take_series(series);
    };
    table_.library = [](const vp_host_t* table, const char* path) {
        return self(table).take_library(path);
    };
    table_.reserved = this;
}

void Host::say_command(std::string command) {
    command_ = std::move(command);
    table_.command = command_.c_str();
}

}  // namespace assay::collector
