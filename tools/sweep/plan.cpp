#include "tools/sweep/plan.h"

#include "framework/collector/launch/program.h"
#include "framework/collector/profilers/plugin_search.h"
#include "framework/collector/run/output_files.h"
#include "framework/collector/run/session.h"
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"
#include "tools/sweep/options.h"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <memory>

namespace assay::sweep {
namespace {

constexpr std::size_t kMostPoints = 100'000;
constexpr std::string_view kPointMark = "{point}";

// Suppresses messages about options, because the first run writes them.
class Silence {
  public:
    Silence() {
        log::send_to([](bool, std::string_view) {});
    }
    ~Silence() { log::send_to({}); }
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;
};

std::string replaced(std::string text, std::string_view mark, const std::string& by) {
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += by.size())
        text.replace(at, mark.size(), by);
    return text;
}

Setting setting_of(const SweptOption& swept, const std::string& value) {
    return {swept.option, swept.key.empty() ? value : swept.key + "=" + value, ""};
}

bool is_file(const std::string& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error);
}

}  // namespace

// The profilers of all points, including those that only some points have (VP_OPTION_PROFILER).
struct Plan::Profilers {
    Profilers(const std::vector<Setting>& core_settings, const std::vector<Setting>& of_profilers,
              collector::Command command)
        : settings(collector::take_core_settings(core_settings, command)) {
        if (settings.plugins.empty())
            throw Error("no profiler: name one with --plugin=NAME (see: assay plugins)");
        const std::vector<Setting> configured = std::move(settings.others);
        settings.others.clear();
        const collector::Session first(settings, "");
        for (const Setting& setting : of_profilers) {
            const collector::ProfilerOption* const option = find(first, setting.name);
            const std::vector<std::string> values = split(setting.value, ',');
            if (option && option->type == VP_OPTION_PROFILER &&
                std::find(values.begin(), values.end(), "yes") != values.end())
                settings.others.push_back({setting.name, "yes", ""});
        }
        for (const Setting& setting : configured) settings.others.push_back(setting);
        session = std::make_unique<collector::Session>(settings, "");
    }

    static const collector::ProfilerOption* find(const collector::Session& session,
                                                 std::string_view name) {
        const std::size_t dot = name.find('.');
        for (const auto& profiler : session.profilers) {
            if (dot != std::string_view::npos && profiler->name() != name.substr(0, dot)) continue;
            if (const auto* const option =
                    profiler->option(dot == std::string_view::npos ? name : name.substr(dot + 1)))
                return option;
        }
        return nullptr;
    }

    // Throws Error if no profiler, or more than one, has the option.
    const collector::ProfilerOption& option(const Setting& setting) const {
        const collector::ProfilerOption* const found = find(*session, setting.name);
        // assign_to_profilers() throws the right message. It is not called for a correct option,
        // whose value is checked later.
        const bool is_ambiguous =
            found && setting.name.find('.') == std::string::npos &&
            std::count_if(session->profilers.begin(), session->profilers.end(),
                          [&](const auto& profiler) {
                              return profiler->option(setting.name) != nullptr;
                          }) > 1;
        if (!found || is_ambiguous) {
            std::vector<collector::ProfilerHandle*> all;
            for (const auto& profiler : session->profilers) all.push_back(profiler.get());
            collector::assign_to_profilers(std::vector{setting}, all);
        }
        return *found;
    }

    collector::CoreSettings settings;
    std::unique_ptr<collector::Session> session;
};

Plan::Plan(const Options& options, Check check)
    : program_(options.program),
      is_trace_(options.is_trace),
      command_(is_trace_ ? collector::kReplay : collector::kRun) {
    std::vector<Setting> of_profilers;
    for (const Setting& setting : options.settings) {
        const Option* const own = collector::find_option(setting.name);
        const bool is_core = own && own->commands & (collector::kRun | command_);
        (is_core ? core_ : of_profilers).push_back(setting);
    }
    // The trace varies slowest, so that the points of one are replayed together.
    if (is_trace_ && program_.size() > 1) swept_.push_back({"trace", "", "", program_, {}});
    {
        const Profilers profilers(core_, of_profilers, command_);
        take_options(of_profilers, profilers);
        find_files(profilers);
    }
    count_points();
    check_output_files();
    if (check == Check::kValues) check_values();
}

// Options of one name, and of one key, form one list, at the place of the first.
void Plan::take_options(const std::vector<Setting>& given, const Profilers& profilers) {
    struct List {
        std::string name, key;
        std::vector<std::string> values;
    };
    std::vector<List> lists;
    for (const Setting& setting : given) {
        List own{setting.name, "", {setting.value}};
        if (profilers.option({setting.name, "", ""}).type == VP_OPTION_ASSIGNMENT) {
            const std::size_t end = std::min(setting.value.find('='), setting.value.size());
            if (end == setting.value.size())
                throw Error(fmt::format("{}: write KEY=VALUES", written(setting)));
            own = {setting.name, setting.value.substr(0, end), {setting.value.substr(end + 1)}};
        }
        const auto known = std::find_if(lists.begin(), lists.end(), [&](const List& list) {
            return list.name == own.name && list.key == own.key;
        });
        if (known == lists.end())
            lists.push_back(std::move(own));
        else
            known->values.push_back(own.values.front());
    }
    for (const List& list : lists) {
        const collector::ProfilerOption& option = profilers.option({list.name, "", ""});
        if (option.type == VP_OPTION_OUTPUT_FILE) {
            outputs_.push_back({list.name, list.values.back(), ""});
            continue;
        }
        const ValueForm form{"--" + list.name + (list.key.empty() ? "" : "=" + list.key),
                             list.key.empty() ? option.argument : "VALUE",
                             option.type == VP_OPTION_COUNT ? 1000u : 1024u};
        std::vector<std::string> values = listed_values(form, list.values);
        const SweptOption swept{list.key.empty() ? list.name : list.key, list.name, list.key,
                                values, sizes_of(form, values)};
        if (values.size() == 1)
            fixed_.push_back(setting_of(swept, values.front()));
        else
            swept_.push_back(swept);
    }
}

void Plan::count_points() {
    for (const SweptOption& option : swept_) {
        size_ *= option.values.size();
        if (size_ > kMostPoints)
            throw Error(
                fmt::format("the options have more than {} combinations of values; sweep "
                            "over fewer",
                            kMostPoints));
    }
}

void Plan::check_output_files() const {
    for (const Setting& output : outputs_)
        if (size_ > 1 && output.value.find(kPointMark) == std::string::npos &&
            output.value.find("%p") == std::string::npos)
            throw Error(fmt::format("{}: every point would write this file; put {} into its name",
                                    written(output), kPointMark));
}

// Tries each value once, with the first values of the other options, so that the user learns of a
// rejected value now and not after hours. Also finds the libraries that profilers load for the
// values.
void Plan::check_values() {
    const Silence silence;
    collector::Image image;
    image.pid = getpid();
    image.program = "assay";
    std::size_t stride = size_;
    std::vector<std::size_t> points{0};
    for (const SweptOption& option : swept_) {
        stride /= option.values.size();
        for (std::size_t i = 1; i < option.values.size(); ++i) points.push_back(i * stride);
    }
    for (const std::size_t point : points) {
        const collector::CoreSettings core =
            collector::take_core_settings(settings(point), command_);
        collector::Session session(core, "");
        session.set_options(image);
        for (const auto& profiler : session.profilers)
            for (const std::string& library : profiler->libraries()) add_file(library);
    }
}

void Plan::add_file(const std::string& path) {
    const std::string whole = std::filesystem::absolute(path).lexically_normal();
    if (is_file(whole) && std::find(files_.begin(), files_.end(), whole) == files_.end())
        files_.push_back(whole);
}

void Plan::find_files(const Profilers& profilers) {
    const auto add = [&](const std::string& path) { add_file(path); };
    if (is_trace_) {
        for (const std::string& trace : program_) add(trace);
    } else {
        const collector::Program found = collector::find_program(program_);
        add(found.invoked);
        add(found.file);
        add(isa::runs_natively(found.elf) ? collector::find_native_driver()
                                          : collector::find_qemu_driver());
    }
    add(std::filesystem::read_symlink("/proc/self/exe"));
    for (const auto& profiler : profilers.session->profilers) add(profiler->path());
    for (const Setting& setting : core_)
        if (setting.name == "config") add(setting.value);
    for (const Setting& setting : fixed_) add(setting.value);
    for (const SweptOption& option : swept_)
        for (const std::string& value : option.values) add(value);
}

std::vector<std::string> Plan::values(std::size_t point) const {
    std::vector<std::string> values;
    std::size_t stride = size_;
    for (const SweptOption& option : swept_) {
        stride /= option.values.size();
        values.push_back(option.values[point / stride % option.values.size()]);
    }
    return values;
}

std::string Plan::name(std::size_t point) const {
    return fmt::format("{:0{}}", point + 1, std::to_string(size_).size());
}

std::string Plan::label(std::size_t point) const {
    const std::vector<std::string> own = values(point);
    std::vector<std::string> words;
    for (std::size_t i = 0; i < own.size(); ++i)
        words.push_back(swept_[i].option.empty() ? own[i] : written(setting_of(swept_[i], own[i])));
    return join(words, " ");
}

std::string Plan::subject(std::size_t point) const {
    const std::string own = label(point);
    return fmt::format("point {} of {}{}", point + 1, size_, own.empty() ? "" : " (" + own + ")");
}

std::vector<Setting> Plan::settings(std::size_t point) const {
    std::vector<Setting> all = core_;
    all.insert(all.end(), fixed_.begin(), fixed_.end());
    for (const Setting& output : outputs_)
        all.push_back({output.name, replaced(output.value, kPointMark, name(point)), ""});
    const std::vector<std::string> own = values(point);
    for (std::size_t i = 0; i < own.size(); ++i)
        if (!swept_[i].option.empty()) all.push_back(setting_of(swept_[i], own[i]));
    return all;
}

const std::string& Plan::trace(std::size_t point) const {
    return program_[point / (size_ / program_.size())];
}

std::vector<std::string> Plan::command(std::size_t point, const std::string& events_file) const {
    std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe"),
                                   is_trace_ ? "replay" : "run"};
    for (const Setting& setting : settings(point)) words.push_back(written(setting));
    // % has no special meaning in this name.
    words.push_back("--out=" + replaced(events_file, "%", "%%"));
    if (is_trace_) {
        words.push_back(trace(point));
        return words;
    }
    words.emplace_back("--");
    words.insert(words.end(), program_.begin(), program_.end());
    return words;
}

std::string shell_line(const std::vector<std::string>& words) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:%@^";
    std::string line;
    for (const std::string& word : words) {
        line += line.empty() ? "" : " ";
        if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos)
            line += word;
        else
            line += "'" + replaced(word, "'", "'\\''") + "'";
    }
    return line;
}

}  // namespace assay::sweep
