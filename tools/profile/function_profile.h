// The sum of one or more events files, or the difference of two, by function; by source line and
// instruction only for chosen files, which are read a second time for that. Memory is needed for
// what is shown, not for what the files contain.
#pragma once

#include "framework/events/header.h"
#include "framework/events/reader.h"
#include "framework/support/text.h"
#include "tools/expressions/expressions.h"
#include "tools/profile/count_store.h"
#include "tools/profile/strings.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace assay {

// What the heads of several events files say of their runs: commands, reasons why counts are not
// those of a whole run, and objects, each once.

class Heads {
  public:
    // Of a file, before it is read on. Its objects are those of the file being read from now on.
    void add(const std::string& path, const events::Header& header) {
        if (std::find(commands_.begin(), commands_.end(), header.command) == commands_.end())
            commands_.push_back(header.command);
        if (!header.incomplete.empty()) incomplete_.push_back(path + ": " + header.incomplete);
        read_again(header);
    }
    // The same for a file that has been added.
    void read_again(const events::Header& header) {
        of_file_.clear();
        for (const events::Object& object : header.objects) add_object(object);
    }
    // Another one of the file being read, whose head has not named all.
    void add_object(const events::Object& object) {
        const auto [entry, is_new] = indices_.try_emplace(
            {object.path, object.build_id}, static_cast<std::uint32_t>(objects_.size()));
        if (is_new)
            objects_.push_back(object);
        else if (objects_[entry->second].load != object.load)
            objects_[entry->second].load.reset();
        of_file_.push_back(entry->second);
    }
    // The index in objects() of what has that number in the file being read.
    std::uint32_t object(std::uint32_t number) const { return of_file_[number]; }

    const std::vector<std::string>& commands() const { return commands_; }
    // With the name of the file.
    const std::vector<std::string>& incomplete() const { return incomplete_; }
    const std::vector<events::Object>& objects() const { return objects_; }
    // A sentence that names an object of which the files have several builds; "" if there is no
    // such object. The lines of its builds are added up as if they were the same.
    std::string mixed_builds() const {
        constexpr std::size_t kShownDigits = 12;
        std::map<std::string, std::vector<std::string>> builds;  // by path
        for (const events::Object& object : objects_)
            if (!object.build_id.empty())
                builds[object.path].push_back(object.build_id.substr(0, kShownDigits));
        std::erase_if(builds, [](const auto& each) { return each.second.size() < 2; });
        if (builds.empty()) return {};
        const auto& [path, ids] = *builds.begin();
        const std::string others =
            builds.size() == 1 ? "" : fmt::format(", as {} others are", builds.size() - 1);
        return fmt::format("{} is there in {} builds ({}){}; their counts are added up by line",
                           path, ids.size(), join(ids, " and "), others);
    }

  private:
    std::vector<std::string> commands_, incomplete_;
    std::vector<events::Object> objects_;
    std::map<std::pair<std::string, std::string>, std::uint32_t> indices_;  // by path and build id
    std::vector<std::uint32_t> of_file_;
};

using Descriptions = decltype(events::Header::descriptions);

// A source line of a source file.
struct SourceLine {
    std::uint32_t line;
    Counts counts;
};

// An instruction of a source line.
struct SourceInstruction {
    std::uint32_t line, object;  // an index in objects()
    std::uint64_t address;
    Counts counts;
};

// What of files is wanted beyond the counts of functions.
struct Details {
    std::vector<bool> files;  // by index
    bool instructions = false;
};

class FunctionProfile final : public events::Handler {
  public:
    // The names of files and functions are those of the profile after the replacements.
    explicit FunctionProfile(std::vector<Replacement> file_names = {},
                             std::vector<Replacement> function_names = {});

    // Has `beside`, which must outlive the reading, receive what is read of the files that are
    // added, too, but for instructions and objects; the counts of a line with the sign of its file.
    void pass_on(events::Handler& beside) { beside_ = &beside; }
    // Before the first file.
    void choose_events(events::EventChoice choice) { choice_ = std::move(choice); }
    // Before the first file. The other profile must outlive the reading.
    void require_events_of(const FunctionProfile& other) { same_events_as_ = &other; }
    enum class Sign : std::uint8_t { kAdd, kSubtract };
    // Throws Error if the file is malformed, or if its events are not those of the others.
    void add_file(const std::string& path, Sign sign = Sign::kAdd);
    // Of a difference, after the last file: has the same function in both profiles be one, whatever
    // its names are (function_matching.h), and files that have been renamed.
    void match_functions();
    // Reads the files again. Throws Error also if one has changed since.
    void read_details(const Details& details);

    // Of the first file. It is a difference if anything was subtracted.
    const events::Header& header() const { return header_; }
    // What all files say of how they were made, such as the shapes of the caches.
    const Descriptions& descriptions() const { return descriptions_; }
    // What one of the files says otherwise than the first, or does not say, in a clause.
    const std::vector<std::string>& differences() const { return differences_; }
    // What makes a file incomplete, with its name.
    const std::vector<std::string>& incomplete() const { return heads_.incomplete(); }
    const std::vector<std::string>& commands() const { return heads_.commands(); }
    Counts totals() const { return totals_; }

    std::size_t function_count() const { return functions_.size(); }
    // By index: the file that the function is in, its name, its counts.
    std::uint32_t function_file(std::size_t function) const {
        return static_cast<std::uint32_t>(functions_.key(function) >> 32);
    }
    std::uint32_t function_name(std::size_t function) const {
        return static_cast<std::uint32_t>(functions_.key(function));
    }
    Counts function_counts(std::size_t function) const { return functions_.counts(function); }

    const Strings& files() const { return files_; }
    const Strings& names() const { return names_; }
    // The lines of a file together; empty if the profile has no counts of any.
    Counts file_counts(std::uint32_t file) const { return file_counts_.find(file); }
    // What a file was called before replacements; several names if those made one of them.
    std::vector<std::string> original_names(std::uint32_t file) const;

    // Of the files that details were read of, each file's in ascending order.
    std::vector<std::vector<SourceLine>> lines() const;
    std::vector<std::vector<SourceInstruction>> instructions() const;
    std::size_t instruction_count() const { return instruction_keys_.size(); }
    const std::vector<events::Object>& objects() const { return heads_.objects(); }

  private:
    struct InstructionKey {
        std::uint32_t file, line, object;
        std::uint64_t address;
        bool operator==(const InstructionKey&) const = default;
    };
    struct InstructionHash {
        std::size_t operator()(const InstructionKey& key) const;
    };
    struct File {
        std::string path;
        Sign sign;
        std::vector<std::uint64_t> totals;
        bool can_be_read_again;
    };

    void start(const events::Header& header) override;
    void turns_into_difference() override;
    void location(const events::Location& location) override;
    void line(std::uint32_t line, Counts counts) override;
    void instruction(const Instruction& at, Counts counts) override;
    void object(const events::Object& object) override;
    void values(const Instruction& at, const events::Hotlist& list) override;
    void stack(const events::Stack& stack, Counts counts) override;
    void site(const events::Site& site) override;
    void line_sites(std::uint32_t site, std::uint64_t count) override;

    bool wants_details(std::uint32_t file) const;
    Counts signed_counts(Counts counts);
    std::uint32_t file_id(std::string_view name);
    std::uint32_t raw_file_id(std::string_view name);
    std::uint32_t current_file(std::uint32_t file) const {
        return file < renamed_files_.size() ? renamed_files_[file] : file;
    }
    void rename_files(CountTable& table, unsigned shift);
    void rename_instructions();
    std::uint32_t name_id(std::string_view function);
    void start_first(const events::Header& header);
    void check_events(const events::Header& header) const;
    void compare_descriptions(const Descriptions& other);
    void add_totals(const std::string& path, Counts totals);

    std::vector<Replacement> file_replacements_, function_replacements_;
    events::Handler* beside_ = nullptr;
    const FunctionProfile* same_events_as_ = nullptr;
    events::EventChoice choice_;     // after the first file: its events
    std::string path_, first_path_;  // of the file being read, and of the first
    Sign sign_ = Sign::kAdd;
    bool of_differences_ = false;  // the files themselves
    std::vector<File> read_;
    events::Header header_;
    Descriptions descriptions_;
    std::vector<std::string> differences_;
    bool says_builds_ = false;
    std::vector<std::uint64_t> totals_;

    Strings files_, names_;
    // Only if there are replacements: the names before them, and what became of these.
    Strings raw_files_, raw_names_;
    std::vector<std::uint32_t> raw_file_ids_, raw_name_ids_;
    std::vector<std::vector<std::string>> originals_;  // by file
    std::vector<std::uint32_t> renamed_files_;         // by file, if functions are matched
    CountTable functions_;                             // key: file << 32 | name
    struct Origin {
        bool is_old = false, is_new = false;
    };
    std::vector<Origin> origins_;  // by row of functions_: which profiles have it
    CountTable file_counts_;       // key: file
    std::size_t function_row_ = 0, file_row_ = 0;
    std::uint32_t file_ = 0;

    // A file that cannot be read twice, such as a pipe, is kept in full.
    bool all_details_ = false, second_reading_ = false, wanted_ = false;
    Details details_;
    CountTable line_counts_;  // key: file << 32 | line
    std::unordered_map<InstructionKey, std::uint32_t, InstructionHash> instruction_rows_;
    std::vector<InstructionKey> instruction_keys_;
    CountTable instruction_counts_;  // key: the row
    Heads heads_;
    std::vector<std::uint64_t> negated_;  // scratch
};

}  // namespace assay
