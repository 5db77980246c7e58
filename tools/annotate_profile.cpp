#include "tools/annotate_profile.h"

#include "framework/support/error.h"

#include <fmt/format.h>
#include <algorithm>

namespace assay::annotate {

namespace {

void add_to(std::uint64_t* sum, Counts counts) {
    for (std::size_t i = 0; i < counts.size(); ++i) sum[i] += counts[i];
}

// All that is said under a name.
std::string texts_of(const Descriptions& descriptions, std::string_view name) {
    std::string out;
    for (const auto& [other, text] : descriptions)
        if (other == name) out += (out.empty() ? "\"" : "; ") + text;
    return out.empty() ? "not given" : out + "\"";
}

}  // namespace

// --- CountTable

void CountTable::add(std::uint64_t key, Counts counts) {
    if (keys_.size() * 2 >= slots_.size()) grow();
    std::uint32_t& slot = slots_[slot_of(key)];
    if (slot == 0) {
        if (keys_.size() % kBlockRows == 0)
            blocks_.push_back(std::make_unique<std::uint64_t[]>(kBlockRows * columns_));
        keys_.push_back(key);
        slot = static_cast<std::uint32_t>(keys_.size());
    }
    add_to(row_start(slot - 1), counts);
}

void CountTable::grow() {
    slots_.assign(std::max<std::size_t>(1024, slots_.size() * 2), 0);
    for (std::size_t row = 0; row < keys_.size(); ++row)
        slots_[slot_of(keys_[row])] = static_cast<std::uint32_t>(row + 1);
}

std::size_t CountTable::slot_of(std::uint64_t key) const {
    // Multiplicative hashing (Knuth, The Art of Computer Programming, section 6.4) of groups of 16
    // neighbouring lines, which files count together: a group shares a cache line. Then linear
    // probing.
    const std::size_t mask = slots_.size() - 1;
    const std::uint64_t product = (key >> 4) * 0x9E37'79B9'7F4A'7C15ULL;
    std::size_t slot = ((product >> 28) << 4 | (key & 15)) & mask;
    while (slots_[slot] != 0 && keys_[slots_[slot] - 1] != key) slot = (slot + 1) & mask;
    return slot;
}

// --- Profile

void Profile::add_file(const std::string& path) {
    path_ = path;
    const events::Profile read = events::read_events(path, *this);
    add_totals(path, read.totals);
}

void Profile::start(const events::Header& header) {
    if (std::find(commands_.begin(), commands_.end(), header.command) == commands_.end())
        commands_.push_back(header.command);
    if (!header.incomplete.empty()) incomplete_.push_back(path_ + ": " + header.incomplete);
    if (header_.events.empty()) {
        header_ = header;
        first_path_ = path_;
        descriptions_ = header.descriptions;
        columns_ = header.events.size();
        totals_.resize(columns_);
        line_counts_.set_columns(columns_);
        return;
    }
    const auto same_name = [](const events::Event& a, const events::Event& b) {
        return a.name == b.name;
    };
    if (!std::equal(header.events.begin(), header.events.end(), header_.events.begin(),
                    header_.events.end(), same_name))
        throw Error(
            fmt::format("{}: its events are not those of the files before it; annotate "
                        "only files of the same profilers together",
                        path_));
    compare_descriptions(header.descriptions);
}

void Profile::compare_descriptions(const Descriptions& other) {
    Descriptions either = header_.descriptions;
    either.insert(either.end(), other.begin(), other.end());
    std::vector<std::string_view> names;
    for (const auto& description : either) {
        const std::string& name = description.first;
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        names.push_back(name);
        const std::string first = texts_of(header_.descriptions, name),
                          here = texts_of(other, name);
        if (first == here) continue;
        differences_.push_back(
            fmt::format("{}: {} in {}, {} in {}", name, first, first_path_, here, path_));
        std::erase_if(descriptions_, [&](const auto& entry) { return entry.first == name; });
    }
}

void Profile::location(const events::Location& location) {
    current_file_ = file_index(location.file);
    name_.assign(location.function_file).append(":").append(location.function);
    const auto [entry, is_new] =
        function_indices_.try_emplace(name_, static_cast<std::uint32_t>(functions_.size()));
    current_function_ = entry->second;
    if (!is_new) return;
    functions_.push_back({entry->first, file_index(location.function_file)});
    function_counts_.resize(function_counts_.size() + columns_);
}

void Profile::line(std::uint32_t line, Counts counts) {
    add_to(&function_counts_[current_function_ * columns_], counts);
    if (with_lines_) line_counts_.add(std::uint64_t{current_file_} << 32 | line, counts);
}

std::uint32_t Profile::file_index(std::string_view name) {
    name_ = name;
    const auto [entry, is_new] =
        file_indices_.try_emplace(name_, static_cast<std::uint32_t>(files_.size()));
    if (is_new) files_.push_back(entry->first);
    return entry->second;
}

void Profile::add_totals(const std::string& path, Counts totals) {
    for (std::size_t i = 0; i < columns_; ++i)
        if (__builtin_add_overflow(totals_[i], totals[i], &totals_[i]))
            throw Error(fmt::format("{}: with it, the total of {} exceeds 64 bits", path,
                                    header_.events[i].name));
}

std::vector<std::vector<SourceLine>> Profile::lines(const std::vector<bool>& wanted_files) const {
    std::vector<std::vector<SourceLine>> result(files_.size());
    for (std::size_t row = 0; row < line_counts_.size(); ++row) {
        const std::uint64_t key = line_counts_.key(row);
        if (wanted_files[key >> 32])
            result[key >> 32].push_back(
                {static_cast<std::uint32_t>(key), line_counts_.counts(row)});
    }
    for (std::vector<SourceLine>& lines : result)
        std::sort(lines.begin(), lines.end(),
                  [](const SourceLine& a, const SourceLine& b) { return a.line < b.line; });
    return result;
}

}  // namespace assay::annotate
