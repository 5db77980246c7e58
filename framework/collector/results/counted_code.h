// The code that has counts: in which object each instruction lies, and of which source it is, with
// the calls that were inlined there and the names that the linker knows functions by.
#pragma once

#include "framework/collector/results/profile.h"
#include "framework/events/writer.h"
#include "framework/symbols/symbolizer.h"

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace assay::collector {

// A place in an object of the header.
struct ObjectPlace {
    std::uint32_t object;
    std::uint64_t address;  // link-time
    bool operator==(const ObjectPlace&) const = default;
    bool operator<(const ObjectPlace& other) const {
        return std::tie(object, address) < std::tie(other.object, other.address);
    }
};

// The part of the events file that says where code was inlined.
class Sites {
  public:
    // For number(): the site of an instruction with these frames, a symbolizer's; 0: it is not
    // inlined code. The calls that lead to the site are known from then on, too.
    std::uint32_t add(std::span<const symbols::Frame> frames);
    // After the last add(): gives sites their numbers in the file, those of one function together,
    // so that the file names it once.
    void sort();
    std::uint32_t number(std::uint32_t added) const { return numbers_[added]; }
    void write(events::Writer& writer) const;

  private:
    struct Site {
        std::uint32_t parent, depth, line;
        std::string_view file, function;
    };
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::string_view, std::string_view>;

    std::vector<Site> sites_ = {{}};  // the first stands for none
    std::map<Key, std::uint32_t> indices_;
    std::vector<std::uint32_t> order_, numbers_;
};

// The part of the events file that says how the linker knows functions.
class LinkageNames {
  public:
    // Those of the functions of an instruction, a symbolizer's frames.
    void add(std::span<const symbols::Frame> frames);
    void write(events::Writer& writer) const;

  private:
    std::unordered_set<const char*> known_;  // texts of a symbolizer
    std::vector<const char*> last_;          // of the last frames, from the outermost on
    // By function. Where functions of one name have several, the first in the order of bytes: so
    // it does not depend on which of them was executed first.
    std::map<std::string_view, std::string_view> names_;
};

class CountedCode {
  public:
    // One row of the database.
    struct Entry {
        std::uint64_t address;  // link-time address in the object
        std::uint32_t object;   // index in the header
        std::uint32_t row;
    };
    // Entries that follow one another by address and stem from one source line, inlined at one
    // site.
    struct Part {
        std::string_view file, function;
        std::uint32_t line = 0;
        std::uint32_t site = 0;
        std::span<const Entry> entries;

        auto position() const { return std::tie(file, function, line, site); }
    };

    // Finds the entries, and the objects that have any. `profile` must live longer.
    explicit CountedCode(const Profile& profile);

    // By object, then by address.
    const std::vector<Entry>& entries() const { return entries_; }
    // Of the header. Each place_of() and object_of_file() can add one.
    const std::vector<events::Object>& objects() const { return objects_; }
    // Whether it names code that no file holds.
    bool is_generated(std::uint32_t object) const { return generated_.contains(object); }
    ObjectPlace place_of(std::uint64_t pc);
    std::uint32_t object_of_file(std::string_view path) { return object_named(path, true); }
    // Sorted. Those that contexts were entered from, and their functions.
    std::vector<ObjectPlace> places_of_contexts();
    // By row of the database; empty if no context refers to any.
    std::vector<ObjectPlace> places_of_rows() const;

    // Finds the sources of the entries and of other places, which are sorted.
    void find_sources(const std::vector<ObjectPlace>& others);

    // --- From then on.

    // The frames of one of these places, innermost first and never empty, whose names the linker's
    // are written of.
    std::span<const symbols::Frame> frames_of(const ObjectPlace& place);
    // By row: one that has the same frames, up to the line that the instruction itself is of.
    std::vector<std::uint32_t> alike() const;
    // Pairs of functions, of which the first one has jumped to the second one, in whichever
    // context. An indirect jump leads to "".
    using Jumps = std::set<std::pair<std::string_view, std::string_view>>;
    Jumps jumps_between_functions() const;
    // Numbers the sites. The result is in the order of the file: by file, function, line and site,
    // and those of one line by address.
    const std::vector<Part>& sort_parts();
    void write_sites(events::Writer& writer) const { sites_.write(writer); }
    void write_linkage_names(events::Writer& writer) const { linkage_names_.write(writer); }

  private:
    std::uint64_t bias(std::uint32_t mapping) const;
    std::uint32_t object_named(std::string_view path, bool is_binary);
    std::uint32_t object_of_mapping(std::uint32_t mapping);
    std::uint32_t anonymous_object(std::uint64_t pc);
    void note_load(std::uint32_t object, std::uint64_t load);
    void tell_missing_files(const std::string& object) const;
    void name_generated(std::uint32_t object);
    void divide(std::span<const Entry> entries);
    std::span<const symbols::Frame> known_frames(const ObjectPlace& place) const;

    const Profile& profile_;
    std::vector<events::Object> objects_;
    std::vector<Entry> entries_;
    std::vector<Part> parts_;
    Sites sites_;
    LinkageNames linkage_names_;
    // By object: addresses that were resolved, and where they are.
    std::vector<symbols::Request> requests_;
    std::vector<std::vector<symbols::Location>> locations_;
    struct PlaceOfMapping {
        std::uint32_t object;
        std::uint64_t bias;
    };
    std::unordered_map<std::uint32_t, PlaceOfMapping> objects_of_mappings_;  // that have counts
    std::map<std::uint32_t, std::uint64_t> loads_;                           // by object, the first
    std::set<std::uint32_t> generated_;  // objects that name code which no file holds
    std::deque<symbols::Frame> generated_frames_;
};

}  // namespace assay::collector
