// The objects of several events files, each once.
#pragma once

#include "framework/events/header.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay {

class Objects {
  public:
    // Of the object in list(), where it is added if it is not there.
    std::uint32_t index(const events::Object& object) {
        const auto [entry, is_new] = indices_.try_emplace({object.path, object.build_id},
                                                          static_cast<std::uint32_t>(list_.size()));
        if (is_new) list_.push_back(object);
        return entry->second;
    }
    const std::vector<events::Object>& list() const { return list_; }

  private:
    std::vector<events::Object> list_;
    std::map<std::pair<std::string, std::string>, std::uint32_t> indices_;  // by path and build id
};

}  // namespace assay
