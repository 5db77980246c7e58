// From the sample database to the events file.
#pragma once

#include "framework/collector/results/context_shares.h"
#include "framework/collector/results/sample_database.h"
#include "framework/collector/trace/address_map.h"
#include "framework/collector/trace/memory_objects.h"
#include "framework/events/writer.h"
#include "framework/symbols/generated_code.h"
#include "framework/symbols/symbolizer.h"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace assay::collector {

struct Profile {
    events::Header header;             // everything but the objects
    std::vector<std::size_t> columns;  // of the database, one per event of the header
    const SampleDatabase* samples;
    const Hotlists* hotlists;
    std::vector<std::string> list_names;  // of those; "" for lists that are not written
    const ContextCounts* context_counts;
    // Gives contexts their shares of what is not known to be of any: called once it is known which
    // row stands for which others, as ContextShares takes it. Empty if they have none.
    std::function<void(std::span<const std::uint32_t> alike)> share_counts;
    std::span<const trace_context_t> contexts;  // which the counts are of
    // Jumps that were executed, with contexts.
    struct Jump {
        std::uint64_t pc, target;  // an indirect one: 0
    };
    std::vector<Jump> jumps;
    const ContextCounts* object_counts;  // by the number of an object instead of a context
    const MemoryObjects* objects;        // null without --objects
    const ContextCounts* thread_counts;  // by ThreadContexts::number() instead of a context
    const std::map<std::uint32_t, std::string>* thread_names;  // likewise; null without --threads
    const AddressMap* addresses;
    symbols::Symbolizer* symbolizer;
    const symbols::GeneratedCode* generated;  // what is known of code that no file holds
    bool dump_instructions;
    bool types;                             // count by type and member, too
    std::string debug_cache;                // folder of a symbols::ImageCache
    std::vector<std::uint64_t> references;  // with types: to data, by row of the database
};

// Finds source positions for all addresses and writes the file, sorted by file, function and line.
// Throws Error if it cannot be written.
void write_profile(const std::string& path, const Profile& profile);

}  // namespace assay::collector
