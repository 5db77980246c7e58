#include "tools/profile/function_matching.h"

#include "framework/support/function_names.h"
#include "tools/sources/source_finder.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace assay {
namespace {

// A name in more files than this is no evidence that a file was renamed.
constexpr std::size_t kMostFilesOfName = 16;

std::uint64_t pair_of(std::uint32_t high, std::uint32_t low) {
    return std::uint64_t{high} << 32 | low;
}

// The last `parts` parts of a path; empty if the path has fewer parts.
std::string_view last_parts(std::string_view path, std::size_t parts) {
    std::size_t begin = path.size();
    for (; parts > 0; --parts) {
        const std::size_t slash =
            begin == 0 ? std::string_view::npos : path.find_last_of("/\\", begin - 1);
        if (slash == std::string_view::npos) return parts == 1 && begin > 0 ? path : "";
        begin = slash;
    }
    return path.substr(begin + 1);
}

std::size_t count_parts(std::string_view path) {
    return 1 + static_cast<std::size_t>(std::count_if(
                   path.begin(), path.end(), [](char c) { return c == '/' || c == '\\'; }));
}

// Number of last parts that two paths share.
std::size_t common_parts(std::string_view a, std::string_view b) {
    std::size_t count = 0;
    while (true) {
        const std::string_view end = last_parts(a, count + 1);
        if (end.empty() || end != last_parts(b, count + 1)) return count;
        ++count;
    }
}

// Pairs the paths that share the most last parts first, and at least `least`. Each path is in at
// most one pair. A path with several equally good partners gets none.
using IndexPairs = std::vector<std::pair<std::size_t, std::size_t>>;
IndexPairs pair_by_ends(const std::vector<std::string_view>& gone,
                        const std::vector<std::string_view>& come, std::size_t least) {
    // Ignores parts beyond this depth. No compiler writes such paths.
    constexpr std::size_t kMostParts = 64;
    std::size_t parts = 0;
    for (const auto* paths : {&gone, &come})
        for (const std::string_view path : *paths) parts = std::max(parts, count_parts(path));
    std::vector<bool> gone_done(gone.size()), come_done(come.size());
    IndexPairs pairs;
    for (parts = std::min(parts, kMostParts); parts >= least; --parts) {
        struct Partners {
            std::vector<std::size_t> gone, come;
        };
        std::map<std::string_view, Partners> by_end;
        for (std::size_t i = 0; i < gone.size(); ++i)
            if (const std::string_view end = last_parts(gone[i], parts);
                !gone_done[i] && !end.empty())
                by_end[end].gone.push_back(i);
        for (std::size_t i = 0; i < come.size(); ++i)
            if (const std::string_view end = last_parts(come[i], parts);
                !come_done[i] && !end.empty())
                by_end[end].come.push_back(i);
        for (const auto& entry : by_end) {
            const auto& [from, to] = entry.second;
            if (from.empty() || to.empty()) continue;
            if (from.size() == 1 && to.size() == 1) pairs.emplace_back(from[0], to[0]);
            for (const std::size_t i : from) gone_done[i] = true;
            for (const std::size_t i : to) come_done[i] = true;
        }
    }
    return pairs;
}

}  // namespace

// --- Functions and groups of them

std::string_view base_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

std::string FunctionMatching::former_text(const Place& place, const Place& former) {
    const bool has_moved = base_name(former.file) != base_name(place.file);
    if (former.function.empty() || (!has_moved && former.function == place.function)) return {};
    return (has_moved ? std::string(former.file) + ":" : "") + std::string(former.function);
}

std::uint32_t FunctionMatching::add(Side side, std::string_view file, std::string_view function) {
    const Strings::Id file_id = files_.id(file), name = names_.id(function);
    const auto number = static_cast<std::uint32_t>(entries_.size());
    const auto [known, is_new] = numbers_.try_emplace(pair_of(file_id, name), number);
    if (is_new) entries_.push_back({file_id, name, false, false, false, false, number});
    Entry& entry = entries_[known->second];
    (side == Side::kOld ? entry.is_old : entry.is_new) = true;
    entry.has_old = entry.is_old;
    entry.has_new = entry.is_new;
    return known->second;
}

std::uint32_t FunctionMatching::root(std::uint32_t function) const {
    while (entries_[function].joined != function) function = entries_[function].joined;
    return function;
}

void FunctionMatching::join(const Group& functions) {
    if (functions.empty()) return;
    const std::uint32_t first = root(functions.front());
    for (const std::uint32_t each : functions) {
        const std::uint32_t other = root(each);
        entries_[other].joined = first;
        entries_[each].joined = first;
        entries_[first].has_old |= entries_[other].has_old;
        entries_[first].has_new |= entries_[other].has_new;
    }
}

void FunctionMatching::join_one_sided(const Group& roots) {
    Group some;
    bool has_old = false, has_new = false;
    for (const std::uint32_t each : roots) {
        if (!entries_[each].is_one_sided()) continue;
        some.push_back(each);
        has_old |= entries_[each].has_old;
        has_new |= entries_[each].has_new;
    }
    if (has_old && has_new) join(some);
}

FunctionMatching::Group FunctionMatching::roots(const Group& functions) const {
    Group all(functions.size());
    std::transform(functions.begin(), functions.end(), all.begin(),
                   [&](std::uint32_t each) { return root(each); });
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

Strings::Id FunctionMatching::key(Level level, std::uint32_t function) {
    const Strings::Id name = entries_[function].name;
    const auto [known, is_new] =
        known_keys_.try_emplace(pair_of(static_cast<std::uint32_t>(level), name));
    if (!is_new) return known->second;
    std::string text(without_clones(names_[name]));
    if (level >= Level::kNumbers) text = without_numbers(text);
    if (level >= Level::kSignature) text = without_signature(text);
    if (level >= Level::kArguments) text = without_template_arguments(text);
    return known->second = keys_.id(text);
}

std::vector<FunctionMatching::Group> FunctionMatching::by_key(Level level, const Group& functions) {
    std::map<Strings::Id, Group> groups;
    for (const std::uint32_t each : functions) groups[key(level, each)].push_back(each);
    std::vector<Group> all;
    all.reserve(groups.size());
    for (auto& entry : groups) all.push_back(std::move(entry.second));
    return all;
}

bool FunctionMatching::has_parameters(std::uint32_t function) const {
    const std::string_view name = without_clones(names_[entries_[function].name]);
    return without_parameters(name).size() != name.size();
}

// --- Matching

void FunctionMatching::match() {
    rename_files();
    std::unordered_map<std::uint64_t, std::size_t> indices;
    std::vector<Group> families;
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        const std::uint64_t family = pair_of(renamed_[entries_[i].file], key(Level::kArguments, i));
        const auto [index, is_new] = indices.try_emplace(family, families.size());
        if (is_new) families.emplace_back();
        families[index->second].push_back(i);
    }
    for (const Group& family : families)
        if (family.size() > 1) match_family(family);
    match_across_files();
    name_groups();
}

// Pairs files that only one profile has. Two checkouts of one source give files with the same
// folder and name, and with a function in common: these are paired first. Then come the files with
// the most functions in common.
void FunctionMatching::rename_files() {
    renamed_.resize(files_.size());
    std::iota(renamed_.begin(), renamed_.end(), Strings::Id{0});
    std::vector<bool> is_old(files_.size()), is_new(files_.size());
    for (const Entry& entry : entries_) {
        if (entry.is_old) is_old[entry.file] = true;
        if (entry.is_new) is_new[entry.file] = true;
    }
    std::map<Strings::Id, std::pair<std::set<Strings::Id>, std::set<Strings::Id>>> files_of;
    std::map<Strings::Id, std::set<Strings::Id>> names_in;
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        const Strings::Id file = entries_[i].file;
        if (is_old[file] == is_new[file] || files_[file] == kUnknownFile) continue;
        const Strings::Id name = key(Level::kSignature, i);
        auto& [gone, come] = files_of[name];
        (is_old[file] ? gone : come).insert(file);
        names_in[file].insert(name);
    }
    std::map<std::pair<Strings::Id, Strings::Id>, std::size_t> votes;
    for (const auto& entry : files_of) {
        const auto& [gone, come] = entry.second;
        if (gone.size() > kMostFilesOfName || come.size() > kMostFilesOfName) continue;
        for (const Strings::Id from : gone)
            for (const Strings::Id to : come) ++votes[{from, to}];
    }
    struct Renaming {
        std::size_t votes, common;
        Strings::Id from, to;
        std::pair<std::size_t, std::size_t> rank() const { return {votes, common}; }
    };
    std::set<Strings::Id> done;
    for (const auto& [from, to] : files_with_same_ends(names_in, is_old)) {
        done.insert({from, to});
        renamed_[from] = to;
    }
    std::vector<Renaming> all;
    for (const auto& [files, count] : votes) {
        const auto [from, to] = files;
        if (done.contains(from) || done.contains(to)) continue;
        const std::size_t common = common_parts(files_[from], files_[to]);
        if (common != 0 || 2 * count >= std::min(names_in[from].size(), names_in[to].size()))
            all.push_back({count, common, from, to});
    }
    std::sort(all.begin(), all.end(),
              [](const Renaming& a, const Renaming& b) { return a.rank() > b.rank(); });
    for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
        std::map<Strings::Id, std::size_t> choices;
        for (end = i; end < all.size() && all[end].rank() == all[i].rank(); ++end) {
            if (done.contains(all[end].from) || done.contains(all[end].to)) continue;
            ++choices[all[end].from];
            ++choices[all[end].to];
        }
        for (std::size_t each = i; each < end; ++each) {
            const auto [from, to] = std::pair(all[each].from, all[each].to);
            const bool is_clear = choices.contains(from) && choices.contains(to) &&
                                  choices[from] == 1 && choices[to] == 1;
            if (is_clear && !done.contains(from) && !done.contains(to)) renamed_[from] = to;
        }
        // A file with several equally good partners stays without a partner.
        for (const auto& choice : choices) done.insert(choice.first);
    }
}

std::vector<std::pair<Strings::Id, Strings::Id>> FunctionMatching::files_with_same_ends(
    const std::map<Strings::Id, std::set<Strings::Id>>& names_in,
    const std::vector<bool>& is_old) const {
    std::vector<Strings::Id> gone, come;
    std::vector<std::string_view> gone_paths, come_paths;
    for (const auto& entry : names_in) {
        const Strings::Id file = entry.first;
        (is_old[file] ? gone : come).push_back(file);
        (is_old[file] ? gone_paths : come_paths).push_back(files_[file]);
    }
    constexpr std::size_t kFolderAndName = 2;
    std::vector<std::pair<Strings::Id, Strings::Id>> same;
    for (const auto& [from, to] : pair_by_ends(gone_paths, come_paths, kFolderAndName)) {
        const std::set<Strings::Id>&old_names = names_in.at(gone[from]),
              &new_names = names_in.at(come[to]);
        if (std::any_of(old_names.begin(), old_names.end(),
                        [&](Strings::Id name) { return new_names.contains(name); }))
            same.emplace_back(gone[from], come[to]);
    }
    return same;
}

void FunctionMatching::match_family(const Group& family) {
    std::map<Strings::Id, Group> by_name;  // functions of a renamed file and of its new file
    for (const std::uint32_t each : family) by_name[entries_[each].name].push_back(each);
    for (const auto& entry : by_name) join(entry.second);
    for (const Level level : {Level::kClones, Level::kNumbers})
        for (const Group& part : by_key(level, roots(family))) {
            const auto is_one_sided = [&](std::uint32_t each) {
                return entries_[each].is_one_sided();
            };
            const auto is_in = [&](bool Entry::*side) {
                return std::any_of(part.begin(), part.end(),
                                   [&](std::uint32_t each) { return entries_[each].*side; });
            };
            if (std::any_of(part.begin(), part.end(), is_one_sided) && is_in(&Entry::has_old) &&
                is_in(&Entry::has_new))
                join(part);
        }
    for (const Group& part : by_key(Level::kSignature, roots(family))) join_copies(part);
    join_one_sided(roots(family));
}

// Joins inlined copies with their function. `roots` differ only in signatures.
void FunctionMatching::join_copies(const Group& roots) {
    const auto functions = static_cast<std::size_t>(std::count_if(
        roots.begin(), roots.end(), [&](std::uint32_t each) { return has_parameters(each); }));
    const bool are_same = std::none_of(roots.begin(), roots.end(), [&](std::uint32_t each) {
        return entries_[each].is_one_sided();
    });
    // Names do not tell to which of several functions a copy belongs.
    if (functions != 0 && functions != roots.size() && (functions == 1 || !are_same))
        return join(roots);
    join_one_sided(roots);
}

void FunctionMatching::match_across_files() {
    Group left;
    for (std::uint32_t i = 0; i < entries_.size(); ++i)
        if (root(i) == i && entries_[i].is_one_sided() && names_[entries_[i].name] != kUnknownFile)
            left.push_back(i);
    for (const Group& part : by_key(Level::kSignature, left)) {
        Group gone, come;
        for (const std::uint32_t each : part)
            (entries_[each].has_old ? gone : come).push_back(each);
        if (!gone.empty() && !come.empty()) match_moved(gone, come);
    }
}

void FunctionMatching::match_moved(const Group& gone, const Group& come) {
    const auto is_unknown = [&](std::uint32_t each) {
        return files_[entries_[each].file] == kUnknownFile;
    };
    Group all = gone;
    all.insert(all.end(), come.begin(), come.end());
    if ((gone.size() == 1 && come.size() == 1) || std::any_of(all.begin(), all.end(), is_unknown))
        return join(all);
    std::map<std::string_view, Group> gone_in, come_in;  // by file
    for (const std::uint32_t each : gone) gone_in[files_[entries_[each].file]].push_back(each);
    for (const std::uint32_t each : come) come_in[files_[entries_[each].file]].push_back(each);
    const auto paths_of = [](const std::map<std::string_view, Group>& groups) {
        std::vector<std::string_view> paths;
        paths.reserve(groups.size());
        for (const auto& entry : groups) paths.push_back(entry.first);
        return paths;
    };
    const std::vector<std::string_view> old_paths = paths_of(gone_in),
                                        new_paths = paths_of(come_in);
    for (const auto& [from, to] : pair_by_ends(old_paths, new_paths, 1)) {
        Group both = gone_in[old_paths[from]];
        const Group& now = come_in[new_paths[to]];
        both.insert(both.end(), now.begin(), now.end());
        join(both);
    }
}

// --- Names to show

void FunctionMatching::name_groups() {
    std::unordered_map<std::uint32_t, Group> groups;
    for (std::uint32_t i = 0; i < entries_.size(); ++i) {
        entries_[i].joined = root(i);
        if (entries_[i].joined != i) groups[entries_[i].joined].push_back(i);
    }
    for (auto& [first, group] : groups) {
        group.push_back(first);
        name_group(group);
    }
}

void FunctionMatching::name_group(const Group& group) {
    struct Names {
        std::set<std::string_view> files, names, functions;
    };
    Names before, after;
    for (const std::uint32_t each : group) {
        const Entry& entry = entries_[each];
        const std::string_view name = names_[entry.name];
        for (Names* side : {entry.is_old ? &before : nullptr, entry.is_new ? &after : nullptr}) {
            if (!side) continue;
            if (files_[entry.file] != kUnknownFile) side->files.insert(files_[entry.file]);
            side->names.insert(name);
            side->functions.insert(without_clones(name));
        }
    }
    const std::set<std::string_view>& known = after.files.empty() ? before.files : after.files;
    Place place{known.empty() ? kUnknownFile : *known.begin(), {}};
    if (after.names.size() == 1 && before.names == after.names)
        place.function = *after.names.begin();
    else if (after.functions.size() == 1)
        place.function = *after.functions.begin();
    for (const Level level : {Level::kNumbers, Level::kSignature, Level::kArguments})
        if (const std::vector<Group> parts = by_key(level, group);
            place.function.empty() && (parts.size() == 1 || level == Level::kArguments))
            place.function = keys_[key(level, parts.front().front())];
    const std::uint32_t first = root(group.front());
    shown_[first] = place;

    if (before.functions.size() != 1 || before.files.size() > 1) return;
    const Place old{before.files.empty() ? kUnknownFile : *before.files.begin(),
                    *before.functions.begin()};
    const auto is_bare = [](std::string_view name) {
        return without_parameters(name).size() == name.size();
    };
    const bool is_copy = is_bare(old.function) != is_bare(place.function) &&
                         by_key(Level::kSignature, group).size() == 1;
    const bool is_same = is_copy || old.function == without_clones(place.function);
    if (!is_same || (old.file != place.file && old.file != kUnknownFile)) former_[first] = old;
}

FunctionMatching::Place FunctionMatching::shown(std::uint32_t function) const {
    const Entry& entry = entries_[function];
    const auto found = shown_.find(entry.joined);
    return found == shown_.end() ? Place{files_[entry.file], names_[entry.name]} : found->second;
}

FunctionMatching::Place FunctionMatching::former(std::uint32_t function) const {
    const auto found = former_.find(entries_[function].joined);
    return found == former_.end() ? Place() : found->second;
}

std::string_view FunctionMatching::file(std::string_view name) {
    const Strings::Id file = files_.id(name);
    return file < renamed_.size() ? files_[renamed_[file]] : name;
}

}  // namespace assay
