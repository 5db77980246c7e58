#include "framework/collector/session.h"

#include "framework/collector/plugin_search.h"
#include "framework/support/error.h"

#include <fmt/format.h>
#include <algorithm>

namespace assay::collector {
namespace {

std::vector<std::unique_ptr<Profiler>> load(const CoreSettings& settings,
                                            const std::string& command, CrashGuard& guard) {
    guard.set_limit(settings.profiler_timeout);
    std::vector<std::unique_ptr<Profiler>> loaded;
    for (const std::string& name : settings.plugins) {
        loaded.push_back(std::make_unique<Profiler>(find_plugin(name), command, guard));
        for (std::size_t i = 0; i + 1 < loaded.size(); ++i)
            if (loaded[i]->name() == loaded.back()->name())
                throw Error(fmt::format("the profiler {} is named twice ({}, {})",
                                        loaded[i]->name(), loaded[i]->path(),
                                        loaded.back()->path()));
    }
    return loaded;
}

std::vector<Given> assign(const CoreSettings& settings,
                          const std::vector<std::unique_ptr<Profiler>>& profilers) {
    std::vector<Profiler*> pointers(profilers.size());
    std::transform(profilers.begin(), profilers.end(), pointers.begin(),
                   [](const auto& profiler) { return profiler.get(); });
    return assign_to_profilers(settings.others, pointers);
}

}  // namespace

Session::Session(const CoreSettings& core_settings, const std::string& command)
    : settings(core_settings),
      profilers(load(settings, command, guard)),
      given(assign(settings, profilers)),
      columns(profilers) {}

bool Session::any_profiler_left() const {
    return std::any_of(profilers.begin(), profilers.end(),
                       [](const auto& profiler) { return !profiler->lost(); });
}

void Session::watch(std::function<void(int signal)> send) {
    if (settings.timeout.count() != 0)
        deadline_ = std::make_unique<Deadline>(start_ + settings.timeout, settings.timeout_option,
                                               guard, std::move(send));
}

}  // namespace assay::collector
