// The phases that the program has named: sections of what its threads do.
//
// Also arenas: memory that the program has named.
#pragma once

#include "plugins/common/page_map.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace used_bytes {

// The memory regions that the program has registered. Those of one owner and label are one arena.

class Arenas {
  public:
    // What is in no region.
    static constexpr std::uint32_t kOutside = 0;

    // Where regions overlap, the last one counts.
    void add(std::uint64_t address, std::uint64_t bytes, std::string_view owner,
             std::string_view label);
    // The region that was added at that address, of several the last one: all that is left of it.
    void remove(std::uint64_t address);

    // The arena that has this address now.
    std::uint32_t find(std::uint64_t address) const {
        if (pieces_.empty()) return kOutside;
        auto piece = pieces_.upper_bound(address);
        if (piece == pieces_.begin()) return kOutside;
        --piece;
        return address < piece->second.end ? piece->second.arena : kOutside;
    }

    // By number; the first is kOutside.
    struct Name {
        std::string owner, label;
    };
    const std::vector<Name>& names() const { return names_; }

  private:
    // What others have left of a region can be several pieces.
    struct Piece {
        std::uint64_t end;
        std::uint32_t arena;
        std::uint32_t region;  // a number: each that is added has another one
    };
    struct Added {
        std::uint64_t end;
        std::uint32_t region;
    };

    void cut(std::uint64_t address, std::uint64_t end);

    std::map<std::uint64_t, Piece> pieces_;  // by their first address; none overlaps another
    // Those that were added at an address: each is smaller than the one before, which is why that
    // may have something left.
    std::map<std::uint64_t, std::vector<Added>> added_;
    std::uint32_t count_ = 0;
    std::map<std::pair<std::string, std::string>, std::uint32_t, std::less<>> numbers_;
    std::vector<Name> names_{{}};
};

// Of lines that were fetched.
struct Usage {
    std::uint64_t lines = 0;  // fetched
    std::uint64_t again = 0;  // of them, those that had been fetched before
    std::uint64_t used = 0;   // bytes

    Usage& operator+=(const Usage& other) {
        lines += other.lines;
        again += other.again;
        used += other.used;
        return *this;
    }
};

// Which sections are wanted: NAME, or NAME#N for the Nth only.
struct SectionChoice {
    std::string name;
    std::uint32_t occurrence = 0;  // 0: all of them
};

class Sections {
  public:
    // Outside of all sections.
    static constexpr std::uint32_t kNone = 0;
    // What is fetched takes time and memory for each section that it is in; a program that forgets
    // to end its phases would have more and more of them.
    static constexpr std::uint32_t kMostDepth = 256;

    // One from its begin to its end.
    struct Section {
        std::uint32_t name = 0;        // in names()
        std::uint32_t occurrence = 0;  // of that name, from 1
        std::uint32_t thread = 0;
        std::uint32_t around = kNone;   // the section in which it lies
        std::uint32_t depth = 0;        // how many it lies in, with itself
        bool chosen = false;            // it or one around it is wanted
        Usage usage;                    // of all that is fetched in it; again: in it before
        std::unique_ptr<pages::LineSet> seen;  // while it lasts
    };

    explicit Sections(std::optional<SectionChoice> choice = {});

    // Returns the section that begins, in `around`; `around` itself if that lies too deep.
    std::uint32_t begin(std::uint32_t around, std::string_view name, std::uint32_t thread);
    // Ends the innermost section of that name, and those in it. Returns what is around them;
    // `current` if there is none of that name.
    std::uint32_t end(std::uint32_t current, std::string_view name);

    // Its thread ends: so do all sections. Returns kNone.
    std::uint32_t end_all(std::uint32_t current) { return end_until(kNone, current); }

    // A line is fetched in the section, and in those around it.
    void fetched(std::uint32_t section, std::uint64_t line);
    // The line that was fetched there is gone.
    void used(std::uint32_t section, std::uint32_t bytes) {
        for (; section != kNone; section = all_[section].around) all_[section].usage.used += bytes;
    }

    bool is_chosen(std::uint32_t section) const { return all_[section].chosen; }
    // What is fetched in it is in a section of the same name around it, too.
    bool lies_in_its_name(std::uint32_t section) const;
    // By number; the first is kNone.
    const std::vector<Section>& all() const { return all_; }
    const std::vector<std::string>& names() const { return names_; }
    // Why nothing is counted: what is wanted has not begun. "" if it has, or if all is wanted.
    std::string why_nothing() const;
    // Ends without a begin.
    std::uint64_t stray_ends() const { return stray_ends_; }
    // Begins of what would have lain too deep.
    std::uint64_t left_out() const { return left_out_; }

  private:
    bool is_wanted(const Section& section) const;
    bool ends_left_out(std::uint32_t current, std::string_view name);
    std::uint32_t end_until(std::uint32_t around, std::uint32_t current);

    std::optional<SectionChoice> choice_;
    std::vector<Section> all_;
    std::vector<std::string> names_;
    std::vector<std::uint32_t> occurrences_;  // by name
    std::map<std::string, std::uint32_t, std::less<>> numbers_;
    std::uint64_t stray_ends_ = 0, left_out_ = 0;
    // By section, what has begun in it too deep and not ended: by name, how many.
    std::map<std::uint32_t, std::map<std::string, std::uint64_t, std::less<>>> too_deep_;
};

// Reads NAME or NAME#N.
SectionChoice parse_section(std::string_view text);
// Writes it.
std::string describe(const SectionChoice& choice);

}  // namespace used_bytes
