// Records references, and replays them as if a struct had another layout.
#pragma once

#include "plugins/cache/simulator.h"
#include "plugins/struct_layout/layouts.h"

#include "assay/trace_types.h"

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace struct_layout {

struct Misses {
    std::uint64_t l1 = 0, ll = 0;
};

// The replay with one layout of one struct.
class Trial {
  public:
    // All references must outlive the trial. `sites` is the complete table.
    Trial(const Layout& layout, std::uint32_t number, const Structs& structs,
          const Instances& instances, std::span<const trace_site_t> sites,
          const cache::Geometries& geometries);

    void take(std::uint32_t thread, std::span<const trace_record_t> records);

    Misses all() const { return sum(false); }  // for all data of the program
    Misses own() const { return sum(true); }   // for this struct
    // References to the struct, and those that the layout could move.
    std::uint64_t references() const { return references_; }
    std::uint64_t moved() const { return moved_; }

  private:
    // If a reference is divided, its parts get extra sites, one for each number of bytes.
    static constexpr std::uint32_t kMostBytes = 64;

    Misses sum(bool own) const;
    void refer(const trace_record_t& record, const SiteUse& use);
    bool is_of_one(const trace_record_t& record, const InstanceArray& array) const;
    bool move(const trace_record_t& record, const SiteUse& use, const InstanceArray& array);
    std::uint32_t site_of_bytes(std::uint64_t bytes) const;
    std::uint64_t part_start(const InstanceArray& array, std::uint32_t part) const;

    const Layout& layout_;
    const std::uint32_t number_;
    const Struct& of_;
    const Structs& structs_;
    const Instances& instances_;
    const bool keeps_places_;
    std::vector<trace_site_t> sites_;
    std::uint32_t own_sites_;  // the first extra site
    std::unique_ptr<cache::Simulator> simulator_;
    std::vector<trace_record_t> records_;
    std::vector<std::uint32_t> hints_;  // by site
    std::uint64_t references_ = 0, moved_ = 0;
};

// The references of a run, compressed in a temporary file without a name.

class Recording {
  public:
    // When the file has `most_bytes`, later references are left out.
    explicit Recording(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

    // Adds references of one thread; replay() keeps the order of all calls. Keeps only the site and
    // the value. Throws std::runtime_error if the file system is full.
    void add(std::uint32_t thread, std::span<const trace_record_t> references);
    // Call it after the last add().
    void end() { write(); }

    std::uint64_t references() const { return references_; }
    std::uint64_t left_out() const { return left_out_; }
    std::uint64_t bytes() const { return bytes_; }

    using Take = std::function<void(std::uint32_t thread, std::span<const trace_record_t>)>;
    void replay(const Take& take);

  private:
    struct Chunk {
        std::uint32_t thread, count;
        std::size_t bytes, packed;
    };
    struct Close {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    // The values that the differences in the next record are based on.
    struct Before {
        std::uint32_t site = 0;
        std::vector<std::uint64_t> values;  // by site
        std::uint64_t& value(std::uint32_t of);
    };

    void write();

    const std::uint64_t most_bytes_;
    std::unique_ptr<std::FILE, Close> file_;
    std::vector<Chunk> chunks_;
    std::vector<unsigned char> pending_, packed_;  // of the current chunk
    std::uint32_t pending_thread_ = 0, pending_count_ = 0;
    Before before_;
    std::uint64_t references_ = 0, left_out_ = 0, bytes_ = 0;
};

}  // namespace struct_layout
