#include "framework/collector/profilers/profiler_handle.h"

#include "framework/support/log.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>

namespace assay::collector {

ProfilerHandle::ProfilerHandle(const std::string& path) : path_(path) {
    facts_.name = std::filesystem::path(path).stem();
}

const ProfilerOption* ProfilerHandle::option(std::string_view name) const {
    const auto found = std::find_if(options().begin(), options().end(),
                                    [&](const ProfilerOption& o) { return o.name == name; });
    return found == options().end() ? nullptr : &*found;
}

void ProfilerHandle::lose(const std::string& why) {
    if (lost_) return;
    lost_ = true;
    if (tell_loss_) return tell_loss_(why);
    log::problem(fmt::format("the profiler {} is lost{}: {}", name(),
                             written_ ? "" : ", and its columns with it", why));
}

}  // namespace assay::collector
