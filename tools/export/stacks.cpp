#include "tools/export/stacks.h"

#include <algorithm>
#include <deque>

namespace assay::exporting {

bool is_counted_by_context(const WholeProfile& profile, std::size_t event) {
    return profile.context_totals()[event] != 0;
}

std::vector<std::uint32_t> path_to(const WholeProfile& profile, std::uint32_t context) {
    constexpr std::size_t kHalf = kMostFrames / 2;
    std::vector<std::uint32_t> inner;  // from this context outwards
    std::deque<std::uint32_t> outer;   // the outermost so far
    std::size_t frames = 0;
    for (; context != 0; context = profile.contexts()[context].parent, ++frames) {
        if (inner.size() < kHalf) {
            inner.push_back(context);
            continue;
        }
        outer.push_front(context);
        if (outer.size() > kHalf) outer.pop_back();
    }
    std::vector<std::uint32_t> path(outer.begin(), outer.end());
    if (frames > kMostFrames) path.push_back(0);
    path.insert(path.end(), inner.rbegin(), inner.rend());
    return path;
}

std::string source_position(std::string_view file, std::uint32_t line) {
    if (file == kUnknown) return {};
    file.remove_prefix(std::min(file.rfind('/') + 1, file.size()));
    return std::string(file) + ":" + (line == 0 ? "?" : std::to_string(line));
}

}  // namespace assay::exporting
