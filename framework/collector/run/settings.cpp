// Assigns options to profilers, and converts their values.
#include "framework/collector/run/settings.h"

#include "framework/collector/profilers/profiler_handle.h"
#include "framework/support/error.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

namespace assay::collector {
namespace {

// The key of an assignment; "" if it has none.
std::string_view key_of(std::string_view assignment) {
    const std::size_t end = assignment.find('=');
    return end == std::string_view::npos ? std::string_view() : assignment.substr(0, end);
}

// Returns the value in the form that the profiler gets.
std::string value_of(const Setting& setting, const ProfilerOption& option) {
    if (option.type == VP_OPTION_YES_NO || option.type == VP_OPTION_PROFILER) yes_or_no(setting);
    if (option.type == VP_OPTION_COUNT) {
        const std::optional<std::uint64_t> number = count(setting.value);
        if (!number) bad_value(setting, "a whole number below 2^64, as 4000000, 4000k or 4M");
        return std::to_string(*number);
    }
    if (option.type == VP_OPTION_ASSIGNMENT && key_of(setting.value).empty())
        bad_value(setting, "KEY=VALUE");
    if (option.type != VP_OPTION_UNSIGNED) return setting.value;
    std::uint64_t number = 0;
    const char* end = setting.value.data() + setting.value.size();
    const auto [stop, error] = std::from_chars(setting.value.data(), end, number);
    if (error != std::errc() || stop != end) bad_value(setting, "a whole number below 2^64");
    return setting.value;
}

// Throws the error for an unknown option, with the most similar name that exists.
[[noreturn]] void unknown(const Setting& setting, std::span<ProfilerHandle* const> profilers) {
    std::vector<std::string> names;
    for (const Option& option : options_of(kRun)) names.emplace_back(option.name());
    for (const ProfilerHandle* profiler : profilers)
        for (const ProfilerOption& option : profiler->options()) {
            names.push_back(option.name);
            names.push_back(profiler->name() + "." + option.name);
        }
    const std::string meant = nearest(setting.name, names);
    const std::string dashes = setting.origin.empty() ? "--" : "";
    std::string owner;
    for (const ProfilerHandle* profiler : profilers)
        if (profiler->option(meant)) owner = fmt::format(" (of the profiler {})", profiler->name());
    const std::string where = setting.origin.empty() ? "" : setting.origin + ": ";
    throw Error(fmt::format("{}unknown option {}{}; {}", where, dashes, setting.name,
                            meant.empty()
                                ? std::string("see: assay run --help, assay plugins NAME")
                                : fmt::format("did you mean {}{}{}?", dashes, meant, owner)));
}

// Returns the index of the profiler that a setting is for, and the name of its option there.
std::pair<std::size_t, std::string> owner(const Setting& setting,
                                          std::span<ProfilerHandle* const> profilers) {
    const std::size_t dot = setting.name.find('.');
    const bool qualified = dot != std::string::npos;
    const std::string name = qualified ? setting.name.substr(dot + 1) : setting.name;
    std::vector<std::size_t> owners;
    for (std::size_t i = 0; i < profilers.size(); ++i) {
        if (qualified && profilers[i]->name() != std::string_view(setting.name).substr(0, dot))
            continue;
        if (profilers[i]->option(name)) owners.push_back(i);
    }
    if (owners.empty()) unknown(setting, profilers);
    if (owners.size() > 1)
        throw Error(fmt::format("{} belongs to several profilers: write {}.{} or {}.{}",
                                describe(setting), profilers[owners[0]]->name(), name,
                                profilers[owners[1]]->name(), name));
    return {owners[0], name};
}

}  // namespace

std::vector<Given> assign_to_profilers(std::span<const Setting> settings,
                                       std::span<ProfilerHandle* const> profilers) {
    std::vector<Given> given(profilers.size());
    for (const Setting& setting : settings) {
        const auto [index, name] = owner(setting, profilers);
        const ProfilerOption& option = *profilers[index]->option(name);
        const std::string value = value_of(setting, option);
        Given& own = given[index];
        std::erase_if(own, [&, &own_name = name](const auto& before) {
            return before.first == own_name &&
                   (option.type != VP_OPTION_ASSIGNMENT || key_of(before.second) == key_of(value));
        });
        own.emplace_back(name, value);
    }
    return given;
}

// Reads the YAML file for read_configuration().

namespace {

class Reader {
  public:
    explicit Reader(const std::string& path) : path_(path) {}

    void take_map(const YAML::Node& map, const std::string& prefix) {
        if (!map.IsMap()) fail(map, "write one \"option: value\" per line");
        for (const auto& pair : map) {
            const std::string name = prefix + pair.first.as<std::string>();
            const YAML::Node& value = pair.second;
            if (value.IsMap() && prefix.empty()) {
                take_map(value, name + ".");
            } else {
                settings.push_back({name, text(value, name), origin(pair.first)});
            }
        }
    }

    std::vector<Setting> settings;

  private:
    // A list stands for its elements separated by commas, as on the command line.
    std::string text(const YAML::Node& node, const std::string& name) const {
        if (node.IsScalar()) return node.Scalar();
        if (!node.IsSequence()) fail(node, name + " needs a value");
        std::string joined;
        for (const YAML::Node& element : node) {
            if (!element.IsScalar()) fail(element, name + " takes a list of plain values");
            if (!joined.empty()) joined += ',';
            joined += element.Scalar();
        }
        return joined;
    }

    std::string origin(const YAML::Node& node) const {
        return fmt::format("{}:{}", path_, node.Mark().line + 1);
    }
    [[noreturn]] void fail(const YAML::Node& node, const std::string& what) const {
        throw Error(fmt::format("{}: {}", origin(node), what));
    }

    const std::string& path_;
};

}  // namespace

std::vector<Setting> read_configuration(const std::string& path) {
    // Opening a FIFO would block until another process writes to it.
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
        throw Error(fmt::format(
            "cannot read the configuration file {}: it is not a regular file; name a file that is "
            "one",
            path));
    try {
        const YAML::Node root = YAML::LoadFile(path);
        Reader reader(path);
        if (!root.IsNull()) reader.take_map(root, "");
        return std::move(reader.settings);
    } catch (const YAML::BadFile&) {
        throw Error(fmt::format("cannot read the configuration file {}{}", path,
                                error ? ": " + error.message() : ""));
    } catch (const YAML::Exception& e) {
        throw Error(fmt::format("{}:{}: {}", path, e.mark.line + 1, e.msg));
    }
}

}  // namespace assay::collector
