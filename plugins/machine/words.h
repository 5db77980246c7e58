// Words in messages about machine files.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace machine {

inline std::string in_quotes(const std::string& text) {
    return "\"" + text + "\"";
}

inline std::string one_of(const std::vector<std::string>& words) {
    std::string all;
    for (std::size_t i = 0; i < words.size(); ++i)
        all += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
    return all;
}

}  // namespace machine
