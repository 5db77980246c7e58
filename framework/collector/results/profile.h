// Writes counts to an events file.
#pragma once

#include "framework/collector/results/counts.h"
#include "framework/collector/trace/address_map.h"
#include "framework/collector/trace/contexts.h"
#include "framework/collector/trace/memory_objects.h"
#include "framework/events/header.h"
#include "framework/support/own_code.h"
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
    std::vector<std::size_t> columns;  // columns of the counts, one per event of the header
    const Counts* counts;
    std::vector<std::string> list_names;  // of the hotlists; "" for a list that is not written
    std::span<const trace_context_t> contexts;  // by number
    // True if code outside of all calls also has contexts: those where threads begin.
    bool all_have_contexts = false;
    // Jumps that were executed. Only with contexts.
    struct Jump {
        std::uint64_t pc, target;  // the target of an indirect jump is 0
    };
    std::vector<Jump> jumps = {};
    // How often contexts were entered. Only with contexts.
    std::vector<ContextCalls> calls = {};
    bool is_recursive(const ContextCalls& each) const {
        const trace_context_t& context = contexts[each.context];
        return context.parent != each.caller || context.call != each.site;
    }
    // Executions of the first instruction of a function in the context of another one.
    struct Jumped {
        std::uint32_t context;
        std::uint64_t pc, number;
    };
    std::vector<Jumped> jumped = {};
    const MemoryObjects* objects;  // null without --objects
    const std::map<std::uint32_t, std::string>* thread_names;
    const AddressMap* addresses;
    symbols::Symbolizer* symbolizer;
    const symbols::GeneratedCode* generated;  // descriptions of code that is in no file
    bool dump_instructions;
    bool types;               // also count by type and member
    std::string debug_cache;  // folder of a symbols::ImageCache
    OwnCode own;              // objects are named after allocations in this code
    std::vector<std::uint64_t> references =
        {};  // with types: number of data references, by row of the database
};

// Writes the file of a profile, sorted by file, function and line. The profile must live longer.
class ProfileWriter {
  public:
    explicit ProfileWriter(const Profile& profile);
    ~ProfileWriter();

    // Returns by row of the samples the row that stands for it. Rows with the same representative
    // belong to the same functions, so readers of the counts of contexts cannot tell them apart.
    // Finds the sources of all contexts, because it is not known yet which contexts have counts.
    std::vector<std::uint32_t> alike();
    // Called after alike(). Returns by row whether it is the first instruction of a function, which
    // is executed once for each call of the function.
    std::vector<bool> first_of_functions() const;
    // Called when all counts are known. Can be called again with another path. Throws Error if the
    // file cannot be written.
    void write(const std::string& path);

  private:
    class File;
    const std::unique_ptr<File> file_;
};

}  // namespace assay::collector
