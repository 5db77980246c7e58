#include "tools/profile/functions.h"

#include <utility>

namespace assay {

void FunctionTable::set_columns(std::size_t columns) {
    functions_.set_columns(columns);
    file_counts_.set_columns(columns);
}

void FunctionTable::location(const events::Location& location, Side side) {
    const std::uint32_t file = file_id(location.file);
    function_row_ = functions_.row(std::uint64_t{file} << 32 | name_id(location.function));
    origins_.resize(functions_.size());
    (side == Side::kNew ? origins_[function_row_].is_new : origins_[function_row_].is_old) = true;
    file_row_ = file_counts_.row(file);
}

std::uint32_t FunctionTable::file_id(std::string_view name) {
    const std::uint32_t file = raw_file_id(name);
    return file < renamed_files_.size() ? renamed_files_[file] : file;
}

std::uint32_t FunctionTable::raw_file_id(std::string_view name) {
    if (file_replacements_.empty()) return files_.id(name);
    const std::uint32_t raw = raw_files_.id(name);
    if (raw < raw_file_ids_.size()) return raw_file_ids_[raw];
    const std::uint32_t id = files_.id(replaced(name, file_replacements_));
    if (id == originals_.size()) originals_.emplace_back();
    originals_[id].emplace_back(name);
    raw_file_ids_.push_back(id);
    return id;
}

std::uint32_t FunctionTable::name_id(std::string_view function) {
    if (function_replacements_.empty()) return names_.id(function);
    const std::uint32_t raw = raw_names_.id(function);
    if (raw == raw_name_ids_.size())
        raw_name_ids_.push_back(names_.id(replaced(function, function_replacements_)));
    return raw_name_ids_[raw];
}

std::vector<std::string> FunctionTable::original_names(std::uint32_t file) const {
    return file_replacements_.empty() ? std::vector{std::string(files_[file])} : originals_[file];
}

void FunctionTable::match() {
    FunctionMatching matching;
    std::vector<std::uint32_t> numbers(functions_.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (origins_[i].is_old) numbers[i] = matching.add(Side::kOld, file_text(i), name_text(i));
        if (origins_[i].is_new) numbers[i] = matching.add(Side::kNew, file_text(i), name_text(i));
    }
    matching.match();
    CountTable matched;
    matched.set_columns(functions_.columns());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const FunctionMatching::Place place = matching.shown(numbers[i]);
        matched.add(std::uint64_t{files_.id(place.file)} << 32 | names_.id(place.function),
                    functions_.counts(i));
    }
    functions_ = std::move(matched);
    origins_.clear();
    std::vector<std::uint32_t> renamed(files_.size());
    for (std::uint32_t each = 0; each < renamed.size(); ++each)
        renamed[each] = files_.id(matching.file(files_[each]));
    renamed_files_ = std::move(renamed);
    CountTable file_counts;
    file_counts.set_columns(file_counts_.columns());
    for (std::size_t i = 0; i < file_counts_.size(); ++i)
        file_counts.add(renamed_files_[file_counts_.key(i)], file_counts_.counts(i));
    file_counts_ = std::move(file_counts);
}

}  // namespace assay
