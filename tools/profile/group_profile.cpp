#include "tools/profile/group_profile.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

namespace assay {

namespace {

void add(std::vector<std::uint64_t>& to, Counts counts) {
    if (to.size() < counts.size()) to.resize(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i) to[i] += counts[i];
}

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

std::string_view GroupProfile::Group::attribute(std::string_view key) const {
    for (const auto& attribute : attributes)
        if (attribute.first == key) return attribute.second;
    return {};
}

std::optional<std::uint64_t> GroupProfile::Group::number(std::string_view key) const {
    return parse(attribute(key));
}

void GroupProfile::add_file(const std::string& path, const WholeOf& whole) {
    whole_of_ = whole;
    whole_ = {};
    path_ = path;
    if (first_path_.empty()) first_path_ = path;
    read_.clear();
    contexts_.assign(1, {});
    read_lines_.clear();
    alike_.clear();
    events::read_events(path, *this, events::Accept::kProfiles, choice_);
    std::vector<std::uint32_t> indices;
    for (const events::Group& group : read_)
        indices.push_back(index_of(group, group.parent == 0 ? kNone : indices[group.parent - 1]));
    for (const auto& [key, counts] : read_lines_) {
        const std::uint32_t group = indices[key.group - 1];
        add(groups_[group].counts, counts);
        add(lines_[{group, key.file, key.function, key.line}], counts);
    }
}

void GroupProfile::start(const events::Header& header) {
    binaries_ = header.objects;
    if (totals_.empty()) {
        header_ = header;
        if (choice_.names.empty()) choice_ = events::choice_of(header.events);
        totals_.resize(header.events.size());
    } else {
        events::check_same_events(header, path_, header_, first_path_);
    }
    if (whole_of_) file_header_ = header;
}

void GroupProfile::location(const events::Location& location) {
    file_ = strings_.id(location.file);
    function_ = strings_.id(location.function);
}

void GroupProfile::line(std::uint32_t line, Counts counts) {
    add(totals_, counts);
    // All groups stand before the first counts.
    if (whole_of_) whole_ = std::exchange(whole_of_, {})(file_header_, read_);
    for (const std::uint32_t group : whole_.groups) {
        add(groups_[group].counts, counts);
        if (whole_.lines) add_line({group, file_, function_, line}, counts);
    }
}

// Of a file that is a group as a whole.
void GroupProfile::add_line(const LineKey& key, Counts counts) {
    std::vector<std::uint64_t>& own = lines_[key];
    constexpr std::size_t kRowBytes = 96;
    if (own.empty()) take_room(kRowBytes + counts.size_bytes());
    add(own, counts);
}

std::uint32_t GroupProfile::add_whole_group(std::string kind, std::string name,
                                            std::uint32_t parent) {
    const auto index = static_cast<std::uint32_t>(groups_.size());
    add_kind(kind);
    if (parent != kNone) groups_[parent].inner.push_back(index);
    groups_.push_back({parent,
                       std::move(kind),
                       std::move(name),
                       {},
                       {},
                       {},
                       std::vector<std::uint64_t>(totals_.size()),
                       {}});
    return index;
}

void GroupProfile::take_room(std::size_t bytes) {
    bytes_ += bytes;
    if (bytes_ > kMostBytes)
        throw Error(fmt::format("{}: its groups take more than {} bytes", path_, kMostBytes));
}

void GroupProfile::group(const events::Group& group) {
    std::size_t bytes = 2 * (sizeof(events::Group) + group.name.size() + group.kind.size());
    for (const auto& [key, value] : group.attributes) bytes += 2 * (key.size() + value.size() + 64);
    take_room(bytes + totals_.size() * sizeof totals_[0]);
    read_.push_back(group);
}

void GroupProfile::counts_of(std::uint32_t group, std::uint32_t line, Counts counts) {
    std::vector<std::uint64_t>& own = read_lines_[{group, file_, function_, line}];
    constexpr std::size_t kRowBytes = 2 * 96;  // here and in lines_
    if (own.empty()) take_room(kRowBytes + 2 * counts.size_bytes());
    add(own, counts);
}

void GroupProfile::stack(const events::Stack& stack, Counts) {
    contexts_.push_back({stack.parent, std::string(stack.function)});
}

std::vector<std::string> GroupProfile::callers_of(const events::Group& group) const {
    std::vector<std::string> callers;
    for (const auto& [key, value] : group.attributes) {
        if (key != "stack") continue;
        std::uint64_t context = parse(value).value_or(0);
        for (; context != 0 && context < contexts_.size() && callers.size() < kMostCallers;
             context = contexts_[context].parent)
            callers.push_back(contexts_[context].function);
    }
    return callers;
}

std::uint32_t GroupProfile::index_of(const events::Group& group, std::uint32_t parent) {
    std::vector<std::string> callers = callers_of(group);
    std::vector<std::string> identity = {std::to_string(parent), group.kind, group.name};
    for (const char* key : {"class", "size", "offset", "number"})
        for (const auto& [name, value] : group.attributes)
            if (name == key) identity.insert(identity.end(), {name, value});
    std::string binary;
    for (const auto& [name, value] : group.attributes)
        if (const auto number = parse(value);
            name == "binary" && number && *number < binaries_.size())
            binary = binaries_[*number].path;
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
                       std::vector<std::uint64_t>(totals_.size()),
                       std::move(binary)});
    if (parent != kNone) groups_[parent].inner.push_back(found->second);
    add_kind(group.kind);
    return found->second;
}

void GroupProfile::add_kind(const std::string& kind) {
    if (std::find(kinds_.begin(), kinds_.end(), kind) == kinds_.end()) kinds_.push_back(kind);
}

void GroupProfile::add_attributes(Group& to, const events::Group& from) {
    const auto value_in = [&](const std::string& key) -> const std::string* {
        for (const auto& [name, value] : from.attributes)
            if (name == key) return &value;
        return nullptr;
    };
    const auto is_one_of = [](std::string_view key, std::initializer_list<std::string_view> keys) {
        return std::find(keys.begin(), keys.end(), key) != keys.end();
    };
    std::erase_if(to.attributes, [&](std::pair<std::string, std::string>& attribute) {
        auto& [key, value] = attribute;
        const std::string* const other = value_in(key);
        if (other == nullptr) return true;
        const std::uint64_t own = parse(value).value_or(0), added = parse(*other).value_or(0);
        if (is_one_of(key, {"blocks", "bytes", "left", "lifetimes", "touched"}))
            value = std::to_string(sum(own, added));
        else if (is_one_of(key, {"peak", "last"}))
            value = std::to_string(std::max(own, added));
        else if (key == "first")
            value = std::to_string(std::min(own, added));
        else
            return value != *other;
        return false;
    });
}

// An inner group comes behind the one that it is in.
void GroupProfile::finish() {
    for (std::size_t i = groups_.size(); i-- > 0;)
        if (groups_[i].parent != kNone) add(groups_[groups_[i].parent].counts, groups_[i].counts);
}

std::vector<GroupProfile::Line> GroupProfile::lines(std::uint32_t group) const {
    std::vector<Line> lines;
    for (auto at = lines_.lower_bound({group, 0, 0, 0});
         at != lines_.end() && at->first.group == group; ++at)
        lines.push_back({at->first.file, at->first.function, at->first.line, at->second});
    return lines;
}

}  // namespace assay
