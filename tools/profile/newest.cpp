#include "tools/profile/newest.h"

#include "framework/events/index.h"
#include "framework/events/reader.h"
#include "framework/support/error.h"
#include "framework/support/log.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace assay {

namespace fs = std::filesystem;

std::string newest_profile() {
    std::vector<std::pair<fs::file_time_type, std::string>> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(".", error)) {
        std::error_code gone;
        const fs::file_time_type time = entry.last_write_time(gone);
        if (entry.is_regular_file(gone) && !gone)
            files.emplace_back(time, entry.path().filename().string());
    }
    std::sort(files.rbegin(), files.rend());
    for (const auto& [time, name] : files) {
        const bool is_index = events::begins_as_index(name);
        if (!is_index && !events::begins_as_events_file(name)) continue;
        log::remark(fmt::format("reading {}, the newest {} of this folder", name,
                                is_index ? "index of a run" : "profile"));
        return name;
    }
    throw Error("no profile in this folder: name the files, or make one with assay --plugin=NAME");
}

}  // namespace assay
