// A machine as plainly as possible, which the fast simulation (plugins/machine/hierarchy.h) is held
// against: the rules of docs/reference/machine-file.md one after the other. Who has a line is found
// by looking into all caches.
#pragma once

#include "machine_model_cache.h"

#include "plugins/machine/columns.h"
#include "plugins/machine/page_sizes.h"
#include "plugins/machine/reference.h"

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace model {

// The protocols, and who has lost what.
enum class State { kInvalid, kShared, kExclusive, kOwned, kModified };

class Model {
  public:
    // Both stay their owner's, and there.
    Model(const machine::Machine& machine, const machine::Columns& columns);

    // As machine::Hierarchy's.
    void refer(std::uint32_t core, const machine::Reference& reference, std::uint64_t* counts);
    void operate(std::uint32_t core, const machine::Reference& operation, std::uint64_t* counts);
    void forget(std::uint32_t core);
    void set_memory(std::uint64_t start, std::uint64_t bytes, machine::Memory memory);

  private:
    // One cache: of a core, of a cluster, or the machine's.
    struct Cache {
        Cache(const machine::Machine& machine, std::size_t which, std::uint32_t owner_number);

        const machine::Cache& what;
        std::size_t index;    // in Machine::caches
        std::uint32_t owner;  // number of the core or cluster
        Lines lines;
        std::vector<std::unique_ptr<Prefetcher>> prefetchers;
        std::map<std::uint64_t, std::uint64_t> replaced;  // by prefetches
        std::set<std::uint64_t> asked_for;
        std::list<std::uint64_t> associative;  // what a fully associative one has, newest first

        bool is_coherent() const {
            return what.of == machine::Of::kCore && what.holds != machine::Holds::kInstructions;
        }
    };
    using Caches = std::vector<Cache*>;
    struct Core {
        Caches path[2];  // of fetches and of data, from level 1 on
        std::vector<Lines> tlbs;
    };
    struct Asked {
        Cache* cache;
        bool hit, first;
    };
    // One line of a reference, or a prefetch on its behalf.
    struct Request {
        std::uint32_t core;
        const machine::Reference& reference;
        std::uint64_t line;
        std::uint64_t first_byte, last_byte;  // of the reference in the line
        Cache* prefetching = nullptr;
        bool by_program = false;  // the prefetch
        bool was_lost = false;    // to another core's write, and not missed since
        std::vector<Asked> asked = {};
    };

    Core& core(std::uint32_t number);
    Cache& cache(std::size_t index, std::uint32_t core);
    bool serves(const Cache& cache, std::uint32_t core) const;
    bool is_above(const Cache& upper, const Cache& lower) const;
    Caches below(const Cache& cache);
    std::uint32_t cluster_of(std::uint32_t core) const;

    std::uint64_t mapped_page(std::uint64_t address) const;
    std::uint64_t page_size(std::uint64_t address, machine::Holds holds) const;
    void translate(std::uint32_t core, const machine::Reference& reference, std::uint64_t address,
                   std::uint64_t bytes);
    bool ask(Request& request, Cache& cache);
    void count_miss(const Request& request, Cache& cache);
    bool read(Request& request, const Caches& path, std::size_t at);
    void write(Request& request, const Caches& path, std::size_t at);
    void take_in(const Request& request, Cache& cache, bool dirty);
    void leave(const Request& request, Cache& cache, Way gone);
    void hand_down(const Request& request, Cache& from, std::uint64_t line, bool dirty);
    bool begin_prefetch(std::uint32_t core, const Cache& into, std::uint64_t line);
    void prefetch(const Request& behind, Cache& cache, std::uint64_t line);

    State state(std::uint32_t core, std::uint64_t line);
    std::vector<Cache*> own_data_caches(std::uint32_t core);
    std::vector<Cache*> data_caches_of_other_clusters(std::uint32_t core);
    bool others_have(std::uint32_t core, std::uint64_t line);
    bool is_dropped(const Cache& prefetching, std::uint32_t core, std::uint64_t line);
    void ask_to_read(const Request& request);
    void ask_to_write(const Request& request);
    void count_sharing(const Request& request);
    void lose(Cache& cache, std::uint64_t line);

    void count(std::uint32_t column) {
        if (column != machine::Columns::kNone) ++counts_[column];
    }
    const machine::Columns::OfCache& columns(const Cache& cache) const {
        return columns_.caches[cache.index];
    }

    const machine::Machine& machine_;
    const machine::Columns& columns_;
    std::vector<std::unique_ptr<Cache>> caches_;
    std::map<std::uint32_t, Core> cores_;
    std::map<std::uint64_t, State> states_[machine::kMostCores];  // while the core has the line
    // By core: lines lost to another core's write, and the words that others have written since.
    std::map<std::uint64_t, std::set<std::uint64_t>> lost_[machine::kMostCores];
    struct Told {
        std::uint64_t start, bytes;
        machine::Memory memory;
    };
    std::vector<Told> told_;  // of memory, in that order
    std::uint64_t* counts_ = nullptr;
    std::set<std::size_t> missed_;  // by the reference: caches, by index
};

}  // namespace model
