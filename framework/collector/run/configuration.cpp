// The YAML part of settings.h.
#include "framework/collector/run/settings.h"
#include "framework/support/error.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>
#include <filesystem>
#include <system_error>

namespace assay::collector {
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
    // Opening a FIFO would block until somebody writes to it.
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
