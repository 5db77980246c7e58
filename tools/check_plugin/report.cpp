#include "tools/check_plugin/report.h"

#include <unistd.h>
#include <algorithm>
#include <string>

namespace assay::check {

void Report::write(char kind, std::string_view function, std::string_view text) {
    std::string line = kind + std::string(function) + '\t' + std::string(text);
    std::replace(line.begin(), line.end(), '\n', ' ');
    line += '\n';
    for (std::string_view rest = line; !rest.empty();) {
        const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
        if (written <= 0) return;
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
}

void Report::option(std::string_view name, unsigned type) {
    write('=', name, std::to_string(type));
}

}  // namespace assay::check
