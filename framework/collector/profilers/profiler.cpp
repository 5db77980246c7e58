#include "framework/collector/profilers/profiler.h"

#include "framework/support/log.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>

namespace assay::collector {

Profiler::Profiler(const std::string& path) : path_(path) {
    facts_.name = std::filesystem::path(path).stem();
}

const ProfilerOption* Profiler::option(std::string_view name) const {
    const auto found = std::find_if(options().begin(), options().end(),
                                    [&](const ProfilerOption& o) { return o.name == name; });
    return found == options().end() ? nullptr : &*found;
}

void Profiler::lose(const std::string& why) {
    if (lost_) return;
    lost_ = true;
    if (tell_loss_) return tell_loss_(why);
    log::problem(fmt::format("the profiler {} is lost{}: {}", name(),
                             written_ ? "" : ", and its columns with it", why));
}

}  // namespace assay::collector
