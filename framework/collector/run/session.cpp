#include "framework/collector/run/session.h"

#include "framework/collector/hosted/hosted_profiler.h"
#include "framework/collector/profilers/loaded_profiler.h"
#include "framework/collector/run/output_files.h"
#include "framework/support/error.h"
#include "framework/symbols/image_cache.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <ctime>
#include <map>
#include <string_view>

namespace assay::collector {
namespace {

// Returns the names of the profilers that this profiler's options ask for.
std::vector<std::string> companions(const ProfilerHandle& profiler, const CoreSettings& settings) {
    std::map<std::string, bool> wanted;  // the last setting of an option wins
    for (const Setting& setting : settings.others) {
        std::string_view name = setting.name;
        const std::string prefix = profiler.name() + ".";
        if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
        const ProfilerOption* option = profiler.option(name);
        if (option && option->type == VP_OPTION_PROFILER)
            wanted[option->argument] = setting.value == "yes";
    }
    std::vector<std::string> names;
    for (const auto& [name, yes] : wanted)
        if (yes) names.push_back(name);
    return names;
}

using Profilers = std::vector<std::unique_ptr<ProfilerHandle>>;

bool is_loaded(const Profilers& loaded, const std::string& name) {
    return std::any_of(loaded.begin(), loaded.end(),
                       [&](const auto& profiler) { return profiler->name() == name; });
}

std::string cache_folder(const CoreSettings& settings) {
    return settings.debug_cache ? symbols::ImageCache::folder_of_user() : std::string();
}

Profilers load(const CoreSettings& settings, const std::string& command, CrashGuard& guard) {
    guard.set_limit(settings.profiler_timeout);
    Profilers loaded;
    const auto load_one = [&](const std::string& name) {
        loaded.push_back(
            load_profiler(find_profiler(name, guard), command, guard, cache_folder(settings)));
    };
    for (const std::string& name : settings.plugins) {
        load_one(name);
        for (std::size_t i = 0; i + 1 < loaded.size(); ++i)
            if (loaded[i]->name() == loaded.back()->name())
                throw Error(fmt::format("the profiler {} is named twice ({}, {})",
                                        loaded[i]->name(), loaded[i]->path(),
                                        loaded.back()->path()));
    }
    for (std::size_t i = 0; i < loaded.size(); ++i)
        for (const std::string& name : companions(*loaded[i], settings))
            if (!is_loaded(loaded, name)) load_one(name);
    return loaded;
}

std::vector<Given> assign(const CoreSettings& settings, const Profilers& profilers) {
    std::vector<ProfilerHandle*> pointers(profilers.size());
    std::transform(profilers.begin(), profilers.end(), pointers.begin(),
                   [](const auto& profiler) { return profiler.get(); });
    return assign_to_profilers(settings.others, pointers);
}

}  // namespace

Session::Session(const CoreSettings& core_settings, const std::string& command,
                 std::shared_ptr<const ProfileLog> profiles)
    : settings(core_settings),
      profilers(load(settings, command, guard)),
      given(assign(settings, profilers)),
      columns(profilers),
      log(std::move(profiles)),
      debug_cache(cache_folder(settings)),
      symbolizer(symbols::kDebugRoot, debug_cache),
      begin_(now()) {
    if (!settings.record.empty()) trace.emplace(settings.record);
}

// A system call, because libc's functions may be replaced by a library that changes the time
// (faketime).
std::chrono::nanoseconds Session::now() {
    timespec now{};
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::chrono::duration<double> Session::time() const {
    return now() - begin_;
}

// After the deadline, a call has only the time that Deadline gives it.
std::chrono::milliseconds Session::limit_of_call() const {
    const std::chrono::milliseconds last = 2 * Deadline::kGrace;
    const std::chrono::milliseconds usual = settings.profiler_timeout;
    if (end_by_deadline().empty()) return usual;
    return usual.count() == 0 ? last : std::min(usual, last);
}

void Session::set_options(const Image& image) {
    for (std::size_t i = 0; i < profilers.size(); ++i) {
        try {
            set_options(*profilers[i], given[i], image);
        } catch (const NeedsOwnProcess&) {
            const std::string path = profilers[i]->path();
            profilers[i].reset();
            auto hosted = std::make_unique<HostedProfiler>(
                GuestSettings{path, image.command, guard.limit(), debug_cache});
            if (deadline_) hosted->set_limit([this] { return limit_of_call(); });
            profilers[i] = std::move(hosted);
            set_options(*profilers[i], given[i], image);
        }
    }
}

void Session::set_options(ProfilerHandle& profiler, const Given& wanted, const Image& image) const {
    profiler.set_command(image.command);
    profiler.set_sampling(trace::has_bursts(settings.regions));
    profiler.set_options(given_to(profiler, wanted, image));
}

bool Session::any_profiler_left() const {
    return std::any_of(profilers.begin(), profilers.end(),
                       [](const auto& profiler) { return !profiler->lost(); });
}

void Session::abandon_processes() {
    for (HostedProfiler* profiler : hosted()) profiler->abandon();
}

std::vector<HostedProfiler*> Session::hosted() const {
    std::vector<HostedProfiler*> found;
    for (const auto& profiler : profilers)
        if (auto* const hosted = dynamic_cast<HostedProfiler*>(profiler.get()))
            found.push_back(hosted);
    return found;
}

void Session::watch(std::function<void(int signal)> send) {
    if (settings.timeout.count() == 0) return;
    deadline_ = std::make_unique<Deadline>(start_ + settings.timeout, settings.timeout_option,
                                           guard, std::move(send));
    for (HostedProfiler* profiler : hosted())
        profiler->set_limit([this] { return limit_of_call(); });
}

// A message has the path, a zero byte, and the addresses.
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
