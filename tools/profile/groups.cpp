#include "tools/profile/groups.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

namespace assay {

namespace {

std::optional<std::uint64_t> parse(std::string_view text) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || rest != end) return std::nullopt;
    return number;
}

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    return a > std::numeric_limits<std::uint64_t>::max() - b ? a : a + b;
}

}  // namespace

std::string_view Groups::Group::attribute(std::string_view key) const {
    for (const auto& attribute : attributes)
        if (attribute.first == key) return attribute.second;
    return {};
}

std::optional<std::uint64_t> Groups::Group::number(std::string_view key) const {
    return parse(attribute(key));
}

void Groups::begin_file(const std::string& path, const events::Header& header, WholeOf whole) {
    path_ = path;
    header_ = header;
    columns_ = header.events.size();
    whole_of_ = std::move(whole);
    whole_ = {};
    read_.clear();
    read_lines_.clear();
    alike_.clear();
}

void Groups::end_file(const CallersOf& callers_of) {
    std::vector<std::uint32_t> indices;
    for (const events::Group& group : read_)
        indices.push_back(
            index_of(group, group.parent == 0 ? kNone : indices[group.parent - 1], callers_of));
    for (const auto& [key, counts] : read_lines_) {
        const std::uint32_t group = indices[key.group - 1];
        add_counts(groups_[group].counts, counts);
        add_counts(lines_[{group, key.file, key.function, key.line}], counts);
    }
}

void Groups::location(const events::Location& location) {
    if (read_.empty() && !whole_of_ && whole_.groups.empty()) return;  // the file adds to no group
    file_ = strings_.id(location.file);
    function_ = strings_.id(location.function);
}

void Groups::line(std::uint32_t line, Counts counts) {
    // All groups precede the first counts.
    if (whole_of_) whole_ = std::exchange(whole_of_, {})(header_, read_);
    for (const std::uint32_t group : whole_.groups) {
        add_counts(groups_[group].counts, counts);
        if (whole_.lines) add_line({group, file_, function_, line}, counts);
    }
}

// Adds a line to a group that contains a whole file.
void Groups::add_line(const LineKey& key, Counts counts) {
    std::vector<std::uint64_t>& own = lines_[key];
    constexpr std::size_t kRowBytes = 96;
    if (own.empty()) take_room(kRowBytes + counts.size_bytes());
    add_counts(own, counts);
}

std::uint32_t Groups::add_whole_group(std::string kind, std::string name, std::uint32_t parent) {
    const auto index = static_cast<std::uint32_t>(groups_.size());
    add_kind(kind);
    if (parent != kNone) groups_[parent].inner.push_back(index);
    groups_.push_back({parent,
                       std::move(kind),
                       std::move(name),
                       {},
                       {},
                       {},
                       std::vector<std::uint64_t>(columns_),
                       {}});
    return index;
}

void Groups::take_room(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ > kMostBytes)
        throw Error(fmt::format("{}: its groups take more than {} bytes", path_, kMostBytes));
}

void Groups::add(const events::Group& group) {
    std::size_t bytes = 2 * (sizeof(events::Group) + group.name.size() + group.kind.size());
    for (const auto& [key, value] : group.attributes) bytes += 2 * (key.size() + value.size() + 64);
    take_room(bytes + columns_ * sizeof(std::uint64_t));
    read_.push_back(group);
}

void Groups::add_part(std::uint32_t group, std::uint32_t line, Counts counts) {
    std::vector<std::uint64_t>& own = read_lines_[{group, file_, function_, line}];
    constexpr std::size_t kRowBytes = 2 * 96;  // nodes here and in lines_
    if (own.empty()) take_room(kRowBytes + 2 * counts.size_bytes());
    add_counts(own, counts);
}

std::uint32_t Groups::index_of(const events::Group& group, std::uint32_t parent,
                               const CallersOf& callers_of) {
    std::vector<std::string> callers;
    for (const auto& [key, value] : group.attributes)
        if (key == "stack") {
            std::vector<std::string> more = callers_of(parse(value).value_or(0));
            callers.insert(callers.end(), more.begin(), more.end());
        }
    std::vector<std::string> identity = {std::to_string(parent), group.kind, group.name};
    for (const char* key : {"class", "size", "offset", "number"})
        for (const auto& [name, value] : group.attributes)
            if (name == key) identity.insert(identity.end(), {name, value});
    std::string binary;
    for (const auto& [name, value] : group.attributes)
        if (const auto number = parse(value);
            name == "binary" && number && *number < header_.objects.size())
            binary = header_.objects[*number].path;
    identity.push_back(binary);
    identity.insert(identity.end(), callers.begin(), callers.end());
    if (callers.empty()) identity.push_back(std::to_string(++alike_[identity]));
    const auto [found, is_new] =
        indices_.try_emplace(identity, static_cast<std::uint32_t>(groups_.size()));
    if (!is_new) {
        add_attributes(groups_[found->second], group);
        return found->second;
    }
    groups_.push_back({parent,
                       group.kind,
                       group.name,
                       group.attributes,
                       std::move(callers),
                       {},
                       std::vector<std::uint64_t>(columns_),
                       std::move(binary)});
    if (parent != kNone) groups_[parent].inner.push_back(found->second);
    add_kind(group.kind);
    return found->second;
}

void Groups::add_kind(const std::string& kind) {
    if (std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end()) kinds_.push_back(kind);
}

void Groups::add_attributes(Group& to, const events::Group& from) {
    const auto value_in = [&](const std::string& key) -> const std::string* {
        for (const auto& [name, value] : from.attributes)
            if (name == key) return &value;
        return nullptr;
    };
    // Files name these only if they are not 0.
    const std::initializer_list<std::string_view> missing_is_zero{"left", "at-peak"};
    const auto is_one_of = [](std::string_view key, std::initializer_list<std::string_view> keys) {
        return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    std::erase_if(to.attributes, [&](std::pair<std::string, std::string>& attribute) {
        auto& [key, value] = attribute;
        const std::string* const other = value_in(key);
        if (other == nullptr) return !is_one_of(key, missing_is_zero);
        const std::uint64_t own = parse(value).value_or(0), added = parse(*other).value_or(0);
        if (is_one_of(key, {"blocks", "bytes", "left", "lifetimes", "touched"}))
            value = std::to_string(sum(own, added));
        else if (is_one_of(key, {"peak", "at-peak", "last"}))
            value = std::to_string(std::max(own, added));
        else if (key == "first")
            value = std::to_string(std::min(own, added));
        else
            return value != *other;
        return false;
    });
    for (const auto& attribute : from.attributes)
        if (is_one_of(attribute.first, missing_is_zero) && to.attribute(attribute.first).empty())
            to.attributes.push_back(attribute);
}

// Goes backwards, because inner groups follow their outer groups.
void Groups::finish() {
    for (std::size_t i = groups_.size(); i-- > 0;)
        if (groups_[i].parent != kNone)
            add_counts(groups_[groups_[i].parent].counts, groups_[i].counts);
}

std::vector<Groups::Line> Groups::lines(std::uint32_t group) const {
    std::vector<Line> lines;
    for (auto at = lines_.lower_bound({group, 0, 0, 0});
         at != lines_.end() && at->first.group == group; ++at)
        lines.push_back({at->first.file, at->first.function, at->first.line, at->second});
    return lines;
}

}  // namespace assay
