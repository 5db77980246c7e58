#include "framework/collector/profilers/hotlists.h"

namespace assay::collector {

std::vector<events::Hotlist> Hotlists::named(std::uint32_t row,
                                             const std::vector<std::string>& names) const {
    std::vector<events::Hotlist> lists;
    const auto found = rows_.find(row);
    if (found == rows_.end()) return lists;
    for (std::uint32_t list = 0; list < names.size(); ++list) {
        const auto values = found->second.find(list);
        if (names[list].empty() || values == found->second.end()) continue;
        lists.push_back(values->second.list());
        lists.back().name = names[list];
    }
    return lists;
}

}  // namespace assay::collector
