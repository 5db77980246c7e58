// From what has been counted to the events file.
#pragma once

#include "framework/collector/results/counts.h"
#include "framework/collector/trace/address_map.h"
#include "framework/collector/trace/memory_objects.h"
#include "framework/events/header.h"
#include "framework/symbols/generated_code.h"
#include "framework/symbols/symbolizer.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace assay::collector {

struct Profile {
    events::Header header;             // everything but the objects
    std::vector<std::size_t> columns;  // of the counts, one per event of the header
    const Counts* counts;
    std::vector<std::string> list_names;        // of the hotlists; "" for one that is not written
    std::span<const trace_context_t> contexts;  // by number
    // What is executed outside of all calls has contexts, too: where threads begin.
    bool all_have_contexts = false;
    // Jumps that were executed, with contexts.
    struct Jump {
        std::uint64_t pc, target;  // an indirect one: 0
    };
    std::vector<Jump> jumps = {};
    const MemoryObjects* objects;  // null without --objects
    const std::map<std::uint32_t, std::string>* thread_names;
    const AddressMap* addresses;
    symbols::Symbolizer* symbolizer;
    const symbols::GeneratedCode* generated;  // what is known of code that no file holds
    bool dump_instructions;
    bool types;                                  // count by type and member, too
    std::string debug_cache;                     // folder of a symbols::ImageCache
    std::vector<std::uint64_t> references = {};  // with types: to data, by row of the database
};

// Writes the file of a profile, which must live longer, sorted by file, function and line.
class ProfileWriter {
  public:
    explicit ProfileWriter(const Profile& profile);
    ~ProfileWriter();

    // By row of the samples: the row that stands for it and all others that are of the same
    // functions to whoever reads the counts of contexts. Finds the sources of all contexts, since
    // it is not known yet which have counts.
    std::vector<std::uint32_t> alike();
    // When all counts are known; can be called again, with another path. Throws Error if the file
    // cannot be written.
    void write(const std::string& path);

  private:
    class File;
    const std::unique_ptr<File> file_;
};

}  // namespace assay::collector
