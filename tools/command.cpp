#include "tools/command.h"

#include "framework/support/text.h"
#include "framework/version.h"

#include <algorithm>
#include <utility>

namespace assay {

std::string version_line() {
    return std::string("assay ") + kVersion + "\n";
}

std::string help_row(std::string names, std::string_view help, std::size_t width) {
    constexpr std::size_t kLineWidth = 98;
    std::string row, line = std::move(names);
    line.resize(std::max(line.size() + 1, width), ' ');
    for (const std::string& word : split(help, ' ')) {
        if (line.size() + 1 + word.size() > kLineWidth) {
            row += line + "\n";
            line.assign(width, ' ');
        }
        if (!line.ends_with(' ')) line += ' ';
        line += word;
    }
    return row + line + "\n";
}

std::vector<std::string> OptionDescription::choices() const {
    const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || c == '|' || c == '-'; };
    if (argument.find('|') == std::string::npos ||
        !std::all_of(argument.begin(), argument.end(), is_word))
        return {};
    return split(argument, '|');
}

bool OptionDescription::takes_file() const {
    return argument.find("FILE") != std::string::npos || argument == "DIR";
}

}  // namespace assay
