#include "tools/cli/options_of_run.h"

#include "framework/collector/run/settings.h"

#include <string>
#include <utility>

namespace assay {

std::vector<OptionDescription> options_of_run() {
    std::vector<OptionDescription> options;
    for (const collector::CoreOption& option : collector::core_options()) {
        if (option.help.empty()) continue;
        std::vector<std::string> names{"--" + std::string(option.name)};
        if (option.letter != 0) names.insert(names.begin(), std::string{'-', option.letter});
        options.emplace_back(std::move(names), std::string(option.argument), option.help);
    }
    return options;
}

}  // namespace assay
