// Looks up the counts of a profile, after they have been added up.

#include "tools/profile/rows.h"

namespace assay {

template <typename Use>
void Profile::for_each_place_in(std::uint32_t file, const Use& use) const {
    for (std::uint32_t place = 0; place < places_.size(); ++place)
        if (source_files_[place] == file) use(place);
}

std::vector<std::uint64_t> Profile::counts_of(CountStore::Row row) const {
    std::vector<std::uint64_t> counts(counts_.columns());
    counts_.read(row, counts);
    return counts;
}

std::vector<SourceLine> Profile::source_lines(std::uint32_t file) const {
    std::vector<SourceLine> rows;
    for_each_place_in(file, [&](std::uint32_t place) {
        for (const Line& line : lines(place)) rows.push_back({line.line, counts_of(line.row)});
    });
    return sums_of(std::move(rows));
}

std::vector<SourceInstruction> Profile::source_instructions(std::uint32_t file) const {
    std::vector<SourceInstruction> rows;
    for_each_place_in(file, [&](std::uint32_t place) {
        for (const Instruction& at : instructions(place))
            rows.push_back({at.line, at.object, at.address, counts_of(at.row)});
    });
    return sums_of(std::move(rows));
}

std::span<const Profile::Line> Profile::lines(std::uint32_t place) const {
    return rows_of(lines_, place_lines_, place);
}

std::span<const Profile::Line> Profile::lines_by_site(std::uint32_t place) const {
    return has_sites() ? rows_of(lines_by_site_, place_lines_by_site_, place) : lines(place);
}

std::vector<std::uint32_t> Profile::sites_to(std::uint32_t site) const {
    std::vector<std::uint32_t> path;
    for (; site != 0; site = sites_[site].parent) path.push_back(site);
    std::reverse(path.begin(), path.end());
    return path;
}

std::span<const Profile::Instruction> Profile::instructions(std::uint32_t place) const {
    return rows_of(instructions_, place_instructions_, place);
}

std::optional<std::uint32_t> Profile::function_named(Strings::Id name) const {
    const auto found = functions_by_name_.find(name);
    return found == functions_by_name_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::uint32_t> Profile::binary_of(Strings::Id function) const {
    const auto found = binaries_.find(function);
    return found == binaries_.end() ? std::nullopt : std::optional(found->second);
}

std::string_view Profile::linkage_name(Strings::Id function) const {
    const auto found = linkage_names_.find(function);
    return found == linkage_names_.end() ? std::string_view() : text(found->second);
}

std::vector<std::pair<std::string_view, std::string_view>> Profile::linkage_names() const {
    std::vector<std::pair<std::string_view, std::string_view>> names;
    names.reserve(linkage_names_.size());
    for (const auto& [function, name] : linkage_names_)
        names.emplace_back(text(function), text(name));
    std::sort(names.begin(), names.end());
    return names;
}

std::uint32_t Profile::call_line(const Context& context) const {
    if (context.line != 0 || !events::has_place(context.kind)) return context.line;
    const Instruction* const at = instruction_at(context.object, context.address);
    return at ? at->line : 0;
}

std::span<const Profile::Values> Profile::values(std::uint32_t place) const {
    return rows_of(values_, place_values_, place);
}

const Profile::Instruction* Profile::instruction_at(std::uint32_t object,
                                                    std::uint64_t address) const {
    const auto found = std::lower_bound(
        by_address_.begin(), by_address_.end(), std::tuple(object, address),
        [&](std::uint32_t index, const std::tuple<std::uint32_t, std::uint64_t>& wanted) {
            return std::tuple(instructions_[index].object, instructions_[index].address) < wanted;
        });
    if (found == by_address_.end()) return nullptr;
    const Instruction& at = instructions_[*found];
    return at.object == object && at.address == address ? &at : nullptr;
}

}  // namespace assay
