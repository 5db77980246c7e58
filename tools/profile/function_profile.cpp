#include "tools/profile/function_profile.h"

#include "framework/events/file.h"
#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/profile/function_matching.h"

#include <fmt/core.h>
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace assay {
namespace {

// All that is said under each name.
std::map<std::string_view, std::string> texts_by_name(const Descriptions& descriptions) {
    std::map<std::string_view, std::string> texts;
    for (const auto& [name, text] : descriptions) {
        std::string& all = texts[name];
        all += (all.empty() ? "\"" : "; ") + text;
    }
    for (auto& [name, all] : texts) all += '"';
    return texts;
}

}  // namespace

// --- Reading

FunctionProfile::FunctionProfile(std::vector<Replacement> file_names,
                                 std::vector<Replacement> function_names)
    : file_replacements_(std::move(file_names)),
      function_replacements_(std::move(function_names)) {}

void FunctionProfile::add_file(const std::string& path, Sign sign) {
    path_ = path;
    sign_ = sign;
    const bool can_be_read_again = events::can_be_read_again(path);
    all_details_ = !can_be_read_again;
    events::FileSummary read =
        events::read_events(path, *this, events::Accept::kDifferences, choice_);
    add_totals(path, read.totals);
    read_.push_back({path, sign, std::move(read.totals), can_be_read_again});
    // A difference is mostly one of two builds.
    if (header_.difference || says_builds_) return;
    if (std::string builds = heads_.mixed_builds(); !builds.empty()) {
        differences_.push_back(std::move(builds));
        says_builds_ = true;
    }
}

void FunctionProfile::read_details(const Details& details) {
    details_ = details;
    all_details_ = false;
    second_reading_ = true;
    for (const File& file : read_) {
        if (!file.can_be_read_again) continue;
        path_ = file.path;
        sign_ = file.sign;
        if (events::read_events(path_, *this, events::Accept::kDifferences, choice_).totals !=
            file.totals)
            throw Error(fmt::format("{} was changed while it was being read", path_));
    }
}

void FunctionProfile::start(const events::Header& header) {
    if (second_reading_) return heads_.read_again(header);
    heads_.add(path_, header);
    if (header_.events.empty()) {
        start_first(header);
    } else {
        check_events(header);
        compare_descriptions(header.descriptions);
    }
    if (beside_) beside_->start(header);
}

void FunctionProfile::start_first(const events::Header& header) {
    if (header.difference && sign_ == Sign::kSubtract)
        throw Error(fmt::format(
            "{} is a difference; only profiles can be compared, see assay diff -o", path_));
    if (same_events_as_ != nullptr)
        events::check_same_events(header, path_, same_events_as_->header_,
                                  same_events_as_->first_path_,
                                  "name events that both have with --show");
    header_ = header;
    if (choice_.names.empty()) choice_ = events::choice_of(header.events);
    of_differences_ = header.difference;
    first_path_ = path_;
    descriptions_ = header.descriptions;
    totals_.resize(header.events.size());
    for (CountTable* table : {&functions_, &file_counts_, &line_counts_, &instruction_counts_})
        table->set_columns(header.events.size());
}

void FunctionProfile::turns_into_difference() {
    if (second_reading_) return;
    if (sign_ == Sign::kSubtract)
        throw Error(fmt::format("{} has negative counts; only profiles can be compared", path_));
    if (path_ != first_path_)
        throw Error(fmt::format(
            "{} has negative counts, as a difference of two profiles has, and {} has none; "
            "only what is alike can be combined",
            path_, first_path_));
    of_differences_ = header_.difference = true;
}

void FunctionProfile::check_events(const events::Header& header) const {
    events::check_same_events(header, path_, header_, first_path_);
    if (header.difference != of_differences_)
        throw Error(
            fmt::format("of {} and {}, one is a profile and the other a difference of two; "
                        "only what is alike can be combined",
                        first_path_, path_));
}

void FunctionProfile::compare_descriptions(const Descriptions& other) {
    Descriptions either = header_.descriptions;
    either.insert(either.end(), other.begin(), other.end());
    const auto first = texts_by_name(header_.descriptions), here = texts_by_name(other);
    const auto text_of = [](const auto& texts, std::string_view name) {
        const auto found = texts.find(name);
        return found == texts.end() ? std::string("not given") : found->second;
    };
    std::set<std::string_view> seen, different;
    for (const auto& description : either) {
        const std::string& name = description.first;
        if (!seen.insert(name).second) continue;
        const std::string one = text_of(first, name), another = text_of(here, name);
        if (one == another) continue;
        // Processes of one MPI program were not made differently for that.
        if (name != "Rank")
            differences_.push_back(
                fmt::format("{}: {} in {}, {} in {}", name, one, first_path_, another, path_));
        different.insert(name);
    }
    std::erase_if(descriptions_,
                  [&](const auto& entry) { return different.contains(entry.first); });
}

void FunctionProfile::match_functions() {
    FunctionMatching matching;
    std::vector<std::uint32_t> numbers(functions_.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::string_view file = files_[function_file(i)], name = names_[function_name(i)];
        if (origins_[i].is_old) numbers[i] = matching.add(Side::kOld, file, name);
        if (origins_[i].is_new) numbers[i] = matching.add(Side::kNew, file, name);
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
    for (std::uint32_t file = 0; file < renamed.size(); ++file)
        renamed[file] = files_.id(matching.file(files_[file]));
    renamed_files_ = std::move(renamed);
    rename_files(file_counts_, 0);
    rename_files(line_counts_, 32);
    rename_instructions();
}

// In keys that have the file at bit `shift`.
void FunctionProfile::rename_files(CountTable& table, unsigned shift) {
    CountTable renamed;
    renamed.set_columns(table.columns());
    for (std::size_t i = 0; i < table.size(); ++i) {
        const std::uint64_t key = table.key(i), below = (std::uint64_t{1} << shift) - 1;
        const auto file = static_cast<std::uint32_t>(key >> shift);
        renamed.add(std::uint64_t{current_file(file)} << shift | (key & below), table.counts(i));
    }
    table = std::move(renamed);
}

void FunctionProfile::rename_instructions() {
    instruction_rows_.clear();
    for (std::uint32_t i = 0; i < instruction_keys_.size(); ++i) {
        instruction_keys_[i].file = current_file(instruction_keys_[i].file);
        instruction_rows_.try_emplace(instruction_keys_[i], i);
    }
}

std::uint32_t FunctionProfile::file_id(std::string_view name) {
    return current_file(raw_file_id(name));
}

std::uint32_t FunctionProfile::raw_file_id(std::string_view name) {
    if (file_replacements_.empty()) return files_.id(name);
    const std::uint32_t raw = raw_files_.id(name);
    if (raw < raw_file_ids_.size()) return raw_file_ids_[raw];
    const std::uint32_t id = files_.id(replaced(name, file_replacements_));
    if (id == originals_.size()) originals_.emplace_back();
    originals_[id].emplace_back(name);
    raw_file_ids_.push_back(id);
    return id;
}

std::uint32_t FunctionProfile::name_id(std::string_view function) {
    if (function_replacements_.empty()) return names_.id(function);
    const std::uint32_t raw = raw_names_.id(function);
    if (raw == raw_name_ids_.size())
        raw_name_ids_.push_back(names_.id(replaced(function, function_replacements_)));
    return raw_name_ids_[raw];
}

std::vector<std::string> FunctionProfile::original_names(std::uint32_t file) const {
    return file_replacements_.empty() ? std::vector{std::string(files_[file])} : originals_[file];
}

void FunctionProfile::location(const events::Location& location) {
    file_ = file_id(location.file);
    wanted_ = wants_details(file_);
    if (second_reading_) return;
    if (beside_) beside_->location(location);
    function_row_ = functions_.row(std::uint64_t{file_} << 32 | name_id(location.function));
    origins_.resize(functions_.size());
    (sign_ == Sign::kAdd ? origins_[function_row_].is_new : origins_[function_row_].is_old) = true;
    file_row_ = file_counts_.row(file_);
}

bool FunctionProfile::wants_details(std::uint32_t file) const {
    return all_details_ ||
           (second_reading_ && file < details_.files.size() && details_.files[file]);
}

Counts FunctionProfile::signed_counts(Counts counts) {
    if (sign_ == Sign::kAdd) return counts;
    negated_.resize(counts.size());
    std::transform(counts.begin(), counts.end(), negated_.begin(),
                   [](std::uint64_t count) { return 0 - count; });
    return negated_;
}

void FunctionProfile::line(std::uint32_t line, Counts unsigned_counts) {
    if (second_reading_ && !wanted_) return;
    const Counts counts = signed_counts(unsigned_counts);
    if (wanted_) line_counts_.add(std::uint64_t{file_} << 32 | line, counts);
    if (second_reading_) return;
    functions_.add_to_row(function_row_, counts);
    file_counts_.add_to_row(file_row_, counts);
    if (beside_) beside_->line(line, counts);
}

void FunctionProfile::instruction(const Instruction& at, Counts counts) {
    if (!wanted_ || (second_reading_ && !details_.instructions)) return;
    const InstructionKey key = {file_, at.line, heads_.object(at.object), at.address};
    const auto [entry, is_new] =
        instruction_rows_.try_emplace(key, static_cast<std::uint32_t>(instruction_keys_.size()));
    if (is_new) {
        instruction_keys_.push_back(key);
        constexpr std::size_t kBytes = 4 * sizeof key;  // here and in the map
        if (instruction_keys_.size() > kMostBytes / kBytes)
            throw Error(fmt::format("{} has more than {} instructions, which no program has", path_,
                                    kMostBytes / kBytes));
    }
    instruction_counts_.add(entry->second, signed_counts(counts));
}

void FunctionProfile::object(const events::Object& object) {
    heads_.add_object(object);
}

void FunctionProfile::values(const Instruction& at, const events::Hotlist& list) {
    if (beside_ && !second_reading_) beside_->values(at, list);
}

void FunctionProfile::stack(const events::Stack& stack, Counts counts) {
    if (beside_ && !second_reading_) beside_->stack(stack, counts);
}

void FunctionProfile::site(const events::Site& site) {
    if (beside_ && !second_reading_) beside_->site(site);
}

void FunctionProfile::line_sites(std::uint32_t site, std::uint64_t count) {
    if (beside_ && !second_reading_) beside_->line_sites(site, count);
}

void FunctionProfile::add_totals(const std::string& path, Counts totals) {
    if (sign_ == Sign::kSubtract) header_.difference = true;
    for (std::size_t i = 0; i < totals_.size(); ++i) {
        const auto fail = [&](std::string_view what) {
            throw Error(fmt::format("{}: with it, the {} of {} exceeds 64 bits", path, what,
                                    header_.events[i].name));
        };
        if (!header_.difference) {
            if (__builtin_add_overflow(totals_[i], totals[i], &totals_[i])) fail("total");
            continue;
        }
        // Counts of a profile have all 64 bits, those of a difference 63 and a sign.
        constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
        if (!of_differences_ && totals[i] > kMost) fail("difference");
        std::int64_t sum = 0;
        if (__builtin_add_overflow(static_cast<std::int64_t>(totals_[i]),
                                   static_cast<std::int64_t>(signed_counts(totals)[i]), &sum))
            fail("total");
        totals_[i] = static_cast<std::uint64_t>(sum);
    }
}

// --- What has been read

std::vector<std::vector<SourceLine>> FunctionProfile::lines() const {
    std::vector<std::vector<SourceLine>> result(files_.size());
    for (std::size_t row = 0; row < line_counts_.size(); ++row) {
        const std::uint64_t key = line_counts_.key(row);
        result[key >> 32].push_back({static_cast<std::uint32_t>(key), line_counts_.counts(row)});
    }
    for (std::vector<SourceLine>& lines : result)
        std::sort(lines.begin(), lines.end(),
                  [](const SourceLine& a, const SourceLine& b) { return a.line < b.line; });
    return result;
}

std::size_t FunctionProfile::InstructionHash::operator()(const InstructionKey& key) const {
    std::uint64_t hash = 0;
    for (const std::uint64_t part :
         {std::uint64_t{key.file} << 32 | key.line, std::uint64_t{key.object}, key.address})
        hash = (hash ^ part) * 0x9E37'79B9'7F4A'7C15ULL;
    return hash ^ hash >> 32;
}

std::vector<std::vector<SourceInstruction>> FunctionProfile::instructions() const {
    std::vector<std::vector<SourceInstruction>> result(files_.size());
    for (std::size_t i = 0; i < instruction_keys_.size(); ++i) {
        const InstructionKey& key = instruction_keys_[i];
        result[key.file].push_back(
            {key.line, key.object, key.address, instruction_counts_.counts(i)});
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
