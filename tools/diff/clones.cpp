#include "tools/diff/clones.h"

#include <algorithm>
#include <array>

namespace assay::diff {
namespace {

// How long the last suffix of a clone is, with its number; 0 if there is none.
std::size_t suffix_length(std::string_view name) {
    constexpr std::array<std::string_view, 6> kSuffixes{".constprop", ".isra",     ".part",
                                                        ".cold",      ".lto_priv", ".llvm"};
    std::string_view rest = name.substr(0, name.find_last_not_of("0123456789") + 1);
    if (rest.size() == name.size())
        rest = name;
    else if (rest.ends_with('.'))
        rest.remove_suffix(1);
    for (const std::string_view suffix : kSuffixes)
        if (rest.ends_with(suffix)) return name.size() - rest.size() + suffix.size();
    return 0;
}

std::string_view without_bare_clones(std::string_view name) {
    for (std::size_t length = suffix_length(name); length != 0; length = suffix_length(name))
        name.remove_suffix(length);
    return name;
}

}  // namespace

std::string_view without_clones(std::string_view name) {
    constexpr std::string_view kClone = " [clone ";
    std::string_view left = name;
    for (std::size_t open = left.rfind(kClone); left.ends_with(']') && open < left.size();
         open = left.rfind(kClone)) {
        std::string_view clones = left.substr(open + kClone.size());
        clones.remove_suffix(1);
        if (!without_bare_clones(clones).empty()) return left;
        left = left.substr(0, open);
    }
    left = without_bare_clones(left);
    return left.empty() ? name : left;
}

std::string_view without_parameters(std::string_view name) {
    constexpr std::array<std::string_view, 6> kBehind{"",   " const",   " volatile",
                                                      " &", " const &", " &&"};
    const std::size_t close = name.rfind(')');
    if (close == std::string_view::npos ||
        std::find(kBehind.begin(), kBehind.end(), name.substr(close + 1)) == kBehind.end())
        return name;
    std::size_t depth = 0, open = close + 1;
    while (open-- > 0) {
        if (name[open] == ')') ++depth;
        if (name[open] == '(' && --depth == 0) break;
    }
    if (open == 0 || open > close) return name;
    const std::string_view left = name.substr(0, open);
    return left.ends_with("operator") ? name : left;
}

void CloneNames::add(Side side, std::string_view name) {
    const std::string_view function = without_clones(name);
    Names& names = by_name_[std::string(without_parameters(function))];
    (side == Side::kOld ? names.before : names.after).emplace(name);
    names.functions.emplace(function);
}

std::string_view CloneNames::compared(std::string_view name) const {
    const std::string_view function = without_clones(name), bare = without_parameters(function);
    const auto found = by_name_.find(bare);
    if (found == by_name_.end()) return name;
    const Names& names = found->second;
    if (names.before.empty() || names.after.empty()) return name;
    // With itself and one that has parameters.
    if (names.functions.size() == 2 && names.functions.contains(bare))
        return names.before == names.after ? name : bare;
    const auto clones_of = [&](const Set& all) {
        Set clones;
        for (const std::string& each : all)
            if (without_clones(each) == function) clones.insert(each);
        return clones;
    };
    const Set before = clones_of(names.before), after = clones_of(names.after);
    return before == after || before.empty() || after.empty() ? name : function;
}

}  // namespace assay::diff
