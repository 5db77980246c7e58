// Sections are the phases that the program has named. Arenas are the memory regions that it has
// named.
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

// The memory regions that the program has registered. Regions with the same owner and label are one
// arena.

class Arenas {
  public:
    // Memory outside of all regions.
    static constexpr std::uint32_t kOutside = 0;

    // If regions overlap, the last one counts.
    void add(std::uint64_t address, std::uint64_t bytes, std::string_view owner,
             std::string_view label);
    // Removes the region that was added last at this address, as far as other regions have left
    // parts of it.
    void remove(std::uint64_t address);

    // The arena that contains the address now.
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
    // A part of a region. Later regions can divide a region into several pieces.
    struct Piece {
        std::uint64_t end;
        std::uint32_t arena;
        std::uint32_t region;  // a different number for each add()
    };
    struct Added {
        std::uint64_t end;
        std::uint32_t region;
    };

    void cut(std::uint64_t address, std::uint64_t end);

    std::map<std::uint64_t, Piece> pieces_;  // by start; disjoint
    // The regions added at an address, each smaller than the one before. A larger region may have
    // pieces left and is therefore kept.
    std::map<std::uint64_t, std::vector<Added>> added_;
    std::uint32_t count_ = 0;
    std::map<std::pair<std::string, std::string>, std::uint32_t, std::less<>> numbers_;
    std::vector<Name> names_{{}};
};

// Counts of fetched lines.
struct Usage {
    std::uint64_t lines = 0;  // fetched
    std::uint64_t again = 0;  // fetched before
    std::uint64_t used = 0;   // bytes

    Usage& operator+=(const Usage& other) {
        lines += other.lines;
        again += other.again;
        used += other.used;
        return *this;
    }
};

// The wanted sections: NAME, or NAME#N for only the Nth.
struct SectionChoice {
    std::string name;
    std::uint32_t occurrence = 0;  // 0: all
};

class Sections {
  public:
    // Outside of all sections.
    static constexpr std::uint32_t kNone = 0;
    // Each fetch takes time and memory for each section around it. The limit is for programs that
    // do not end their phases.
    static constexpr std::uint32_t kMostDepth = 256;

    // A section from its begin to its end.
    struct Section {
        std::uint32_t name = 0;        // in names()
        std::uint32_t occurrence = 0;  // number among those of this name, from 1
        std::uint32_t thread = 0;
        std::uint32_t around = kNone;          // the enclosing section
        std::uint32_t depth = 0;               // number of enclosing sections and itself
        bool chosen = false;                   // the section or an enclosing one is wanted
        Usage usage;                           // `again`: fetched before in this section
        std::unique_ptr<pages::LineSet> seen;  // until the end of the section
    };

    explicit Sections(std::optional<SectionChoice> choice = {});

    // Begins a section in `around` and returns it. Returns `around` itself if the section would be
    // too deep.
    std::uint32_t begin(std::uint32_t around, std::string_view name, std::uint32_t thread);
    // Ends the innermost section of this name and all within it. Returns the section around it, or
    // `current` if no section has this name.
    std::uint32_t end(std::uint32_t current, std::string_view name);

    // Ends all sections of a thread that ends. Returns kNone.
    std::uint32_t end_all(std::uint32_t current) { return end_until(kNone, current); }

    // Counts a fetched line in the section and all around it.
    void fetched(std::uint32_t section, std::uint64_t line);
    // Counts the used bytes when a line that was fetched in the section leaves the cache.
    void used(std::uint32_t section, std::uint32_t bytes) {
        for (; section != kNone; section = all_[section].around) all_[section].usage.used += bytes;
    }

    bool is_chosen(std::uint32_t section) const { return all_[section].chosen; }
    // True if an enclosing section has the same name.
    bool lies_in_its_name(std::uint32_t section) const;
    // By number; the first is kNone.
    const std::vector<Section>& all() const { return all_; }
    const std::vector<std::string>& names() const { return names_; }
    // The reason if nothing is counted, because the wanted section has not begun. Otherwise "".
    std::string why_nothing() const;
    // The number of ends without a begin.
    std::uint64_t stray_ends() const { return stray_ends_; }
    // The number of begins that were too deep.
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
    // By section: the number of begins in it that were too deep and have not ended, by name.
    std::map<std::uint32_t, std::map<std::string, std::uint64_t, std::less<>>> too_deep_;
};

// Reads NAME or NAME#N.
SectionChoice parse_section(std::string_view text);
std::string describe(const SectionChoice& choice);

}  // namespace used_bytes
