#include "framework/collector/run/overview.h"

#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/support/text.h"

#include <fmt/core.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace assay::collector {
namespace {

using Entries = std::span<const ProfileLog::Entry>;

constexpr std::size_t kMostProcesses = 40, kMostPrograms = 20;
constexpr std::size_t kLongestCommand = 70;
constexpr std::size_t kMostDepth = 16;

// Returns the command with the program's name only, to leave room for the arguments.
std::string short_command(const std::string& command) {
    const std::size_t end = command.find(' ');
    return events::program_of(command) + (end == std::string::npos ? "" : command.substr(end));
}

std::string shortened(std::string_view text) {
    if (text.size() <= kLongestCommand) return printable(text);
    return printable(text.substr(0, kLongestCommand - 3)) + "...";
}

std::string counted(std::size_t number, std::string_view noun) {
    return fmt::format("{} {}{}", with_thousands(number), noun, number == 1 ? "" : "s");
}

std::string processes_have(std::size_t number) {
    return number == 1 ? "1 process has" : fmt::format("{} processes have", with_thousands(number));
}

std::size_t processes_of(Entries entries) {
    std::set<int> pids;
    for (const ProfileLog::Entry& entry : entries) pids.insert(entry.profile.pid);
    return pids.size();
}

// Returns the count of the first event; 0 if the entry lacks this event, for example because its
// profiler was lost.
std::uint64_t first_count(const ProfileLog::Entry& entry) {
    return entry.profile.counts.empty() ? 0 : entry.profile.counts[0];
}

struct ProgramTotal {
    std::string name;
    std::uint64_t count = 0;
    std::size_t images = 0;
};

// Returns the programs, the one with the greatest count first.
std::vector<ProgramTotal> programs(Entries entries) {
    std::map<std::string, ProgramTotal> by_name;
    for (const ProfileLog::Entry& entry : entries) {
        const std::string name = events::program_of(entry.profile.command);
        ProgramTotal& program = by_name.try_emplace(name, ProgramTotal{name}).first->second;
        program.count += first_count(entry);
        ++program.images;
    }
    std::vector<ProgramTotal> sorted;
    sorted.reserve(by_name.size());
    for (const auto& [name, program] : by_name) sorted.push_back(program);
    std::stable_sort(
        sorted.begin(), sorted.end(),
        [](const ProgramTotal& a, const ProgramTotal& b) { return a.count > b.count; });
    return sorted;
}

class Lines {
  public:
    Lines(Entries entries, bool all) : entries_(entries), all_(all), pid_(entries[0].profile.pid) {
        for (const ProfileLog::Entry& entry : entries) total_ += first_count(entry);
        width_ = std::max(with_thousands(total_).size(), event().size());
    }

    std::string write() {
        const std::vector<ProgramTotal> all = programs(entries_);
        line("{} run {}, {} in all", processes_have(processes_of(entries_)),
             counted(all.size(), "program"), with_thousands(entries_.size()));
        line("");
        write_tree();
        line("");
        write_programs(all);
        return std::move(text_);
    }

  private:
    std::string event() const {
        return entries_[0].events.empty() ? std::string() : entries_[0].events[0];
    }

    template <typename... Args>
    void line(fmt::format_string<Args...> format, Args&&... args) {
        const std::string text = fmt::format(format, std::forward<Args>(args)...);
        text_ += fmt::format("=={}=={}{}\n", pid_, text.empty() ? "" : " ", text);
    }

    // Writes the images that an image has started below it and indented.
    void write_tree() {
        std::size_t widest = 4;
        for (const ProfileLog::Entry& entry : entries_)
            widest = std::max(widest, entry.profile.file.size());
        line("{:>{}}  {:{}}  command", event(), width_, "file", widest);
        std::vector<std::vector<std::size_t>> started(entries_.size());
        std::vector<std::size_t> first;
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            const std::size_t parent = entries_[i].profile.parent;
            (parent == events::IndexedProfile::kNone ? first : started[parent]).push_back(i);
        }
        std::vector<std::pair<std::size_t, std::size_t>> next;  // entry and depth, in reverse order
        const auto push = [&](const std::vector<std::size_t>& of, std::size_t depth) {
            for (auto entry = of.rbegin(); entry != of.rend(); ++entry)
                next.emplace_back(*entry, depth);
        };
        push(first, 0);
        std::size_t shown = 0;
        while (!next.empty()) {
            const auto [i, depth] = next.back();
            next.pop_back();
            push(started[i], depth + 1);
            if (!all_ && shown == kMostProcesses) continue;
            ++shown;
            const events::IndexedProfile& profile = entries_[i].profile;
            line("{:>{}}  {:{}}  {}{}{}", with_thousands(first_count(entries_[i])), width_,
                 printable(profile.file), widest, std::string(2 * std::min(depth, kMostDepth), ' '),
                 shortened(short_command(profile.command)),
                 profile.incomplete.empty() ? "" : " (incomplete)");
        }
        if (shown < entries_.size())
            line("{:>{}}  and {} more; --verbose prints all", "", width_, entries_.size() - shown);
    }

    void write_programs(const std::vector<ProgramTotal>& all) {
        line("{:>{}}           times  program", event(), width_);
        const std::size_t shown = all_ ? all.size() : std::min(all.size(), kMostPrograms);
        for (const ProgramTotal& program : std::span(all).first(shown))
            line("{:>{}}  {:5.1f} %  {:5}  {}", with_thousands(program.count), width_,
                 total_ == 0
                     ? 0.0
                     : 100 * static_cast<double>(program.count) / static_cast<double>(total_),
                 program.images, shortened(program.name));
        if (shown < all.size())
            line("{:>{}}  and {} more; --verbose prints all", "", width_, all.size() - shown);
        line("{:>{}}  100.0 %  {:5}  in total", with_thousands(total_), width_, entries_.size());
    }

    Entries entries_;
    bool all_;
    int pid_;
    std::uint64_t total_ = 0;
    std::size_t width_ = 0;
    std::string text_;
};

// Writes the text with one call, because other processes may print too. Ignores errors: stderr can
// be closed or full.
void print_error(const std::string& text) {
    std::signal(SIGPIPE, SIG_IGN);
    std::fputs(text.c_str(), stderr);
}

void tell_of_one(const ProfileLog::Entry& entry, bool summarized) {
    if (!summarized) print_error(entry.summary);
    const std::string& file = entry.profile.file;
    if (file.empty()) return;
    const std::string parts =
        entry.part_files == 0 ? "" : fmt::format(" and {}.* of {} parts", file, entry.part_files);
    log::remark(fmt::format("wrote {}{}; read it with: assay summary {}", file, parts, file));
}

// Returns a path in the folder of the first profile. The name must not match OUT.*, which stands
// for profiles.
std::string index_path(const CoreSettings& settings, const Image& image) {
    const std::filesystem::path first = file_of_process(settings.out, image);
    std::string name = "index." + first.filename().string();
    for (const std::string_view ending : {".gz", ".zst"})
        if (name.ends_with(ending)) name.resize(name.size() - ending.size());
    return first.parent_path() / name;
}

bool is_regular(const std::string& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error);
}

// Returns the profiles that are in files; an empty index if all went to a device.
events::Index index_of(Entries entries, const Image& image) {
    events::Index index;
    index.command = image.command;
    for (const ProfileLog::Entry& entry : entries) {
        events::IndexedProfile profile = entry.profile;
        if (!is_regular(profile.file)) profile.file.clear();
        if (index.events.empty()) index.events = entry.events;
        if (entry.events != index.events) profile.counts.clear();
        index.profiles.push_back(std::move(profile));
    }
    return index;
}

}  // namespace

std::string overview(Entries entries, bool all) {
    return Lines(entries, all).write();
}

std::optional<std::string> tell_of_profiles(Entries entries, const CoreSettings& settings,
                                            const Image& image) {
    if (entries.empty()) return "";
    const bool several = entries.size() > 1;  // also several images of one process, by execve(2)
    if (!settings.quiet && (!several || settings.verbose))
        for (const ProfileLog::Entry& entry : entries) tell_of_one(entry, settings.summarized);
    if (!settings.quiet && several) print_error(overview(entries, settings.verbose));
    const events::Index index = index_of(entries, image);
    std::string last;
    std::size_t files = 0;
    for (const events::IndexedProfile& profile : index.profiles) {
        if (profile.file.empty()) continue;
        ++files;
        last = profile.file;
    }
    if (files < 2) return last;
    std::string path = index_path(settings, image);
    try {
        events::write_index(path, index);
    } catch (const Error& e) {
        log::problem(e.what());
        return std::nullopt;
    }
    if (!settings.quiet)
        log::remark(
            fmt::format("wrote {} profiles, and {} for all of them; read it with: assay summary {}",
                        files, path, path));
    return path;
}

std::string in_millions(std::uint64_t instructions, std::uint64_t all) {
    constexpr std::uint64_t kMillion = 1'000'000;
    return fmt::format("{}{} million instructions", with_thousands(instructions / kMillion),
                       all == 0 ? "" : fmt::format(" of {}", with_thousands(all / kMillion)));
}

bool shows_progress(const CoreSettings& settings, bool replays) {
    if (settings.progress != ShowProgress::kInReplays)
        return settings.progress == ShowProgress::kAlways;
    return replays && !settings.quiet && isatty(STDERR_FILENO);
}

Progress::Progress(bool wanted, std::function<std::string()> reached)
    : wanted_(wanted),
      on_terminal_(isatty(STDERR_FILENO) != 0),
      line_(wanted && on_terminal_),
      reached_(std::move(reached)),
      next_(start_ + std::chrono::seconds(1)) {}

void Progress::update() {
    const Clock::time_point now = Clock::now();
    if (!wanted_ || now < next_) return;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start_).count();
    const std::string text = fmt::format("assay: {} s, {}", seconds, reached_());
    if (on_terminal_)
        line_.show(text);
    else
        fmt::print(stderr, "{}\n", text);
    // Adding up the counters of many threads takes long: use at most 2 % of the time.
    const Clock::duration took = Clock::now() - now;
    const std::chrono::seconds usual(on_terminal_ ? 1 : 10);
    next_ = now + std::max<Clock::duration>(usual, 50 * took);
}

}  // namespace assay::collector
