// The code that has counts: the object and the source of each instruction, the calls that were
// inlined there, and the linkage names of functions.
#pragma once

#include "framework/collector/results/profile.h"
#include "framework/events/writer.h"
#include "framework/symbols/symbolizer.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace assay::collector {

// An address in an object of the header.
struct ObjectPlace {
    std::uint32_t object;
    std::uint64_t address;  // link-time
    bool operator==(const ObjectPlace&) const = default;
    bool operator<(const ObjectPlace& other) const {
        return std::tie(object, address) < std::tie(other.object, other.address);
    }
};

// The section of the events file that describes inlined code.
class Sites {
  public:
    // Returns the site of an instruction with these frames of a symbolizer, for number(); 0 if its
    // code is not inlined. Also adds the calls that lead to the site.
    std::uint32_t add(std::span<const symbols::Frame> frames);
    // Called after the last add(). Gives sites their numbers in the file. Sites of one function are
    // adjacent, so the file names the function only once.
    void sort();
    std::uint32_t number(std::uint32_t added) const { return numbers_[added]; }
    void write(events::Writer& writer) const;

  private:
    struct Site {
        std::uint32_t parent, depth, line;
        std::string_view file, function;
    };
    using Key = std::tuple<std::uint32_t, std::uint32_t, std::string_view, std::string_view>;

    std::vector<Site> sites_ = {{}};  // sites_[0] means: not inlined
    std::map<Key, std::uint32_t> indices_;
    std::vector<std::uint32_t> order_, numbers_;
};

// The section of the events file that has the linkage names of functions.
class LinkageNames {
  public:
    // Adds the functions of an instruction's frames.
    void add(std::span<const symbols::Frame> frames);
    void write(events::Writer& writer) const;

  private:
    std::unordered_set<const char*> known_;  // texts that belong to a symbolizer
    std::vector<const char*> last_;          // of the last frames, outermost first
    // By function. If functions of the same name have several linkage names, the first one in byte
    // order is kept. The result then does not depend on the order of execution.
    std::map<std::string_view, std::string_view> names_;
};

class CountedCode {
  public:
    // One row of the sample database.
    struct Entry {
        std::uint64_t address;  // link-time address in the object
        std::uint32_t object;   // index in the header
        std::uint32_t row;
    };
    // Adjacent entries of one source line, inlined at one site.
    struct Part {
        std::string_view file, function;
        std::uint32_t line = 0;
        std::uint32_t site = 0;
        std::span<const Entry> entries;

        auto position() const { return std::tie(file, function, line, site); }
    };

    // Finds the entries and their objects. `profile` must live longer.
    explicit CountedCode(const Profile& profile);

    // Sorted by object, then by address.
    const std::vector<Entry>& entries() const { return entries_; }
    // Objects of the header. place_of() and object_of_file() can add one.
    const std::vector<events::Object>& objects() const { return objects_; }
    // True if the object names code that is in no file.
    bool is_generated(std::uint32_t object) const { return generated_.contains(object); }
    ObjectPlace place_of(std::uint64_t pc);
    std::uint32_t object_of_file(std::string_view path) { return object_named(path, true); }
    // Returns the call sites and the functions of contexts, sorted.
    std::vector<ObjectPlace> places_of_contexts();
    // Returns places by row of the database; empty if no context refers to a row.
    std::vector<ObjectPlace> places_of_rows() const;

    // Finds the sources of the entries and of `others`, which are sorted.
    void find_sources(const std::vector<ObjectPlace>& others);

    // --- Called after find_sources().

    // Returns the frames of a place that was given to find_sources(), innermost first and never
    // empty. Adds their linkage names to the file.
    std::span<const symbols::Frame> frames_of(const ObjectPlace& place);
    // Returns for each row a row with the same frames. The line of the innermost frame does not
    // matter.
    std::vector<std::uint32_t> alike() const;
    // Returns by row whether it is the first instruction of a function that its function never
    // jumps back to. The lowest executed instruction counts as the first one.
    std::vector<bool> first_of_functions() const;
    // Pairs of functions: the first has jumped to the second, in any context. The second is "" for
    // an indirect jump.
    using Jumps = std::set<std::pair<std::string_view, std::string_view>>;
    Jumps jumps_between_functions() const;
    // Numbers the sites. Returns the parts in the order of the file: by file, function, line and
    // site. Entries of one part are sorted by address.
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
    // Returns the place of code that was executed, if its frames are known.
    std::optional<ObjectPlace> known_place(AddressMap::Finder& mappings, std::uint64_t pc) const;

    const Profile& profile_;
    std::vector<events::Object> objects_;
    std::vector<Entry> entries_;
    std::vector<Part> parts_;
    Sites sites_;
    LinkageNames linkage_names_;
    // By object: addresses that were resolved, and their source locations.
    std::vector<symbols::Request> requests_;
    std::vector<std::vector<symbols::Location>> locations_;
    struct PlaceOfMapping {
        std::uint32_t object;
        std::uint64_t bias;
    };
    std::unordered_map<std::uint32_t, PlaceOfMapping>
        objects_of_mappings_;                       // mappings that have counts
    std::map<std::uint32_t, std::uint64_t> loads_;  // by object: the first load address
    std::set<std::uint32_t> generated_;             // objects that name code which is in no file
    std::deque<symbols::Frame> generated_frames_;
};

}  // namespace assay::collector
