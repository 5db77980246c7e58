#include "framework/support/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <memory>

namespace assay::log {
namespace {

bool is_quiet = false;

// Made at the first line: most runs are silent until their end.
spdlog::logger& logger() {
    static const auto instance = [] {
        auto made = std::make_unique<spdlog::logger>(
            "assay", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        made->set_pattern("assay: %v");
        return made;
    }();
    return *instance;
}

}  // namespace

void set_quiet(bool quiet) {
    is_quiet = quiet;
}

bool quiet() {
    return is_quiet;
}

void remark(std::string_view text) {
    if (!is_quiet) logger().info("{}", text);
}

void problem(std::string_view text) {
    logger().error("{}", text);
}

}  // namespace assay::log
