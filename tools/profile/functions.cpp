#include "tools/profile/functions.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <tuple>

namespace assay {
namespace {

// `table` with other files in its keys, which have the file from bit `shift` on.
CountTable with_files(const CountTable& table, unsigned shift,
                      const std::vector<std::uint32_t>& renamed) {
    CountTable result;
    result.set_columns(table.columns());
    for (std::size_t i = 0; i < table.size(); ++i) {
        const std::uint64_t key = table.key(i), below = (std::uint64_t{1} << shift) - 1;
        result.add(std::uint64_t{renamed[key >> shift]} << shift | (key & below), table.counts(i));
    }
    return result;
}

}  // namespace

// --- Functions

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

const std::vector<std::uint32_t>& FunctionTable::match() {
    FunctionMatching matching;
    std::vector<std::uint32_t> numbers(functions_.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::string_view in = files_[file(i)], called = names_[name(i)];
        if (origins_[i].is_old) numbers[i] = matching.add(Side::kOld, in, called);
        if (origins_[i].is_new) numbers[i] = matching.add(Side::kNew, in, called);
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
    file_counts_ = with_files(file_counts_, 0, renamed_files_);
    return renamed_files_;
}

// --- Details

void DetailTable::set_columns(std::size_t columns) {
    lines_.set_columns(columns);
    instructions_.set_columns(columns);
}

void DetailTable::choose(const Details& wanted) {
    all_ = false;
    chosen_ = wanted;
}

void DetailTable::begin(const std::string& path, Side side) {
    path_ = path;
    signed_.set(side);
}

void DetailTable::location(const events::Location& location) {
    file_ = functions_.file_id(location.file);
    is_wanted_ = all_ || (file_ < chosen_.files.size() && chosen_.files[file_]);
}

void DetailTable::line(std::uint32_t line, Counts counts) {
    if (is_wanted_) lines_.add(std::uint64_t{file_} << 32 | line, signed_(counts));
}

void DetailTable::instruction(const Instruction& at, Counts counts) {
    if (!is_wanted_ || !(all_ || chosen_.instructions)) return;
    const Key key = {file_, at.line, heads_.object(at.object), at.address};
    const auto [entry, is_new] =
        instruction_rows_.try_emplace(key, static_cast<std::uint32_t>(instruction_keys_.size()));
    if (is_new) {
        instruction_keys_.push_back(key);
        constexpr std::size_t kBytes = 4 * sizeof key;  // here and in the map
        if (instruction_keys_.size() > kMostBytes / kBytes)
            throw Error(fmt::format("{} has more than {} instructions, which no program has", path_,
                                    kMostBytes / kBytes));
    }
    instructions_.add(entry->second, signed_(counts));
}

void DetailTable::rename_files(const std::vector<std::uint32_t>& renamed) {
    lines_ = with_files(lines_, 32, renamed);
    instruction_rows_.clear();
    for (std::uint32_t i = 0; i < instruction_keys_.size(); ++i) {
        instruction_keys_[i].file = renamed[instruction_keys_[i].file];
        instruction_rows_.try_emplace(instruction_keys_[i], i);
    }
}

std::vector<std::vector<SourceLine>> DetailTable::lines() const {
    std::vector<std::vector<SourceLine>> result(functions_.files().size());
    for (std::size_t row = 0; row < lines_.size(); ++row) {
        const std::uint64_t key = lines_.key(row);
        result[key >> 32].push_back({static_cast<std::uint32_t>(key), lines_.counts(row)});
    }
    for (std::vector<SourceLine>& lines : result)
        std::sort(lines.begin(), lines.end(),
                  [](const SourceLine& a, const SourceLine& b) { return a.line < b.line; });
    return result;
}

std::size_t DetailTable::Hash::operator()(const Key& key) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t part :
         {std::uint64_t{key.file} << 32 | key.line, std::uint64_t{key.object}, key.address})
        hash = (hash ^ part) * 0x9E37'79B9'7F4A'7C15ULL;
    return hash ^ hash >> 32;
}

std::vector<std::vector<SourceInstruction>> DetailTable::instructions() const {
    std::vector<std::vector<SourceInstruction>> result(functions_.files().size());
    for (std::size_t i = 0; i < instruction_keys_.size(); ++i) {
        const Key& key = instruction_keys_[i];
        result[key.file].push_back({key.line, key.object, key.address, instructions_.counts(i)});
    }
    for (std::vector<SourceInstruction>& instructions : result)
        std::sort(instructions.begin(), instructions.end(),
                  [](const SourceInstruction& a, const SourceInstruction& b) {
                      return std::tie(a.line, a.object, a.address) <
                             std::tie(b.line, b.object, b.address);
                  });
    return result;
}

}  // namespace assay
