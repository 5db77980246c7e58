#include "plugins/used_bytes/sections.h"

#include <algorithm>
#include <charconv>

namespace used_bytes {

void Arenas::add(std::uint64_t address, std::uint64_t bytes, std::string_view owner,
                 std::string_view label) {
    const std::uint64_t end = address + std::min(bytes, UINT64_MAX - address);
    if (end == address) return;
    const auto [known, is_new] = numbers_.try_emplace({std::string(owner), std::string(label)},
                                                      static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back({std::string(owner), std::string(label)});
    cut(address, end);
    pieces_[address] = {end, known->second, ++count_};
    std::vector<Added>& here = added_[address];
    std::erase_if(here, [&](const Added& covered) { return covered.end <= end; });
    here.push_back({end, count_});
}

void Arenas::remove(std::uint64_t address) {
    const auto here = added_.find(address);
    if (here == added_.end()) return;
    const Added gone = here->second.back();
    here->second.pop_back();
    if (here->second.empty()) added_.erase(here);
    for (auto piece = pieces_.lower_bound(address);
         piece != pieces_.end() && piece->first < gone.end;)
        piece = piece->second.region == gone.region ? pieces_.erase(piece) : std::next(piece);
}

// Removes the addresses from all regions.
void Arenas::cut(std::uint64_t address, std::uint64_t end) {
    auto piece = pieces_.lower_bound(address);
    if (piece != pieces_.begin()) {
        Piece& before = std::prev(piece)->second;
        if (before.end > end) pieces_[end] = {before.end, before.arena, before.region};
        before.end = std::min(before.end, address);
    }
    for (piece = pieces_.lower_bound(address); piece != pieces_.end() && piece->first < end;
         piece = pieces_.erase(piece))
        if (piece->second.end > end) pieces_[end] = piece->second;
}

Sections::Sections(std::optional<SectionChoice> choice) : choice_(std::move(choice)) {
    all_.emplace_back();
    all_[kNone].chosen = !choice_;
}

bool Sections::is_wanted(const Section& section) const {
    return choice_ && choice_->name == names_[section.name] &&
           (choice_->occurrence == 0 || choice_->occurrence == section.occurrence);
}

std::uint32_t Sections::begin(std::uint32_t around, std::string_view name, std::uint32_t thread) {
    if (all_[around].depth == kMostDepth) {
        ++too_deep_[around][std::string(name)];
        ++left_out_;
        return around;
    }
    auto known = numbers_.find(name);
    if (known == numbers_.end()) {
        known = numbers_.emplace(name, static_cast<std::uint32_t>(names_.size())).first;
        names_.emplace_back(name);
        occurrences_.push_back(0);
    }
    Section section{.name = known->second,
                    .occurrence = ++occurrences_[known->second],
                    .thread = thread,
                    .around = around,
                    .depth = all_[around].depth + 1,
                    .chosen = all_[around].chosen,
                    .usage = {},
                    .seen = std::make_unique<pages::LineSet>()};
    section.chosen |= is_wanted(section);
    all_.push_back(std::move(section));
    return static_cast<std::uint32_t>(all_.size() - 1);
}

std::uint32_t Sections::end(std::uint32_t current, std::string_view name) {
    if (all_[current].depth == kMostDepth && ends_left_out(current, name)) return current;
    std::uint32_t found = current;
    while (found != kNone && names_[all_[found].name] != name) found = all_[found].around;
    if (found == kNone) {
        ++stray_ends_;
        return current;
    }
    return end_until(all_[found].around, current);
}

bool Sections::ends_left_out(std::uint32_t current, std::string_view name) {
    const auto within = too_deep_.find(current);
    if (within == too_deep_.end()) return false;
    const auto found = within->second.find(name);
    if (found == within->second.end()) return false;
    if (--found->second == 0) within->second.erase(found);
    return true;
}

std::uint32_t Sections::end_until(std::uint32_t around, std::uint32_t current) {
    for (; current != around; current = all_[current].around) {
        all_[current].seen.reset();
        if (all_[current].depth == kMostDepth) too_deep_.erase(current);
    }
    return current;
}

void Sections::fetched(std::uint32_t section, std::uint64_t line) {
    for (; section != kNone; section = all_[section].around) {
        Section& of = all_[section];
        ++of.usage.lines;
        if (!of.seen->insert(line)) ++of.usage.again;
    }
}

bool Sections::lies_in_its_name(std::uint32_t section) const {
    std::uint32_t around = all_[section].around;
    while (around != kNone && all_[around].name != all_[section].name) around = all_[around].around;
    return around != kNone;
}

std::string Sections::why_nothing() const {
    constexpr std::size_t kMostNames = 10;
    if (!choice_) return "";
    const auto known = numbers_.find(choice_->name);
    if (known != numbers_.end() && occurrences_[known->second] >= choice_->occurrence) return "";
    if (names_.empty()) return "no phase has begun, so nothing is counted";
    if (known != numbers_.end())
        return "it began only " + std::to_string(occurrences_[known->second]) +
               (occurrences_[known->second] == 1 ? " time" : " times") + ", so nothing is counted";
    std::string why = "no such phase has begun, so nothing is counted; there were: ";
    for (std::size_t i = 0; i < std::min(names_.size(), kMostNames); ++i)
        why += (i == 0 ? "" : ", ") + names_[i];
    if (names_.size() > kMostNames)
        why += " and " + std::to_string(names_.size() - kMostNames) + " more";
    return why;
}

SectionChoice parse_section(std::string_view text) {
    const std::size_t mark = text.rfind('#');
    std::uint32_t occurrence = 0;
    if (mark != std::string_view::npos) {
        const std::string_view digits = text.substr(mark + 1);
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), occurrence);
        if (error == std::errc{} && end == digits.data() + digits.size() && occurrence != 0)
            return {std::string(text.substr(0, mark)), occurrence};
    }
    return {std::string(text), 0};
}

std::string describe(const SectionChoice& choice) {
    return choice.name + (choice.occurrence == 0 ? "" : "#" + std::to_string(choice.occurrence));
}

}  // namespace used_bytes
