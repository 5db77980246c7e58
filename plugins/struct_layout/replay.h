// The recorded references once more, as if a struct had another layout.
#pragma once

#include "plugins/cache/simulator.h"
#include "plugins/struct_layout/layouts.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace struct_layout {

struct Misses {
    std::uint64_t l1 = 0, ll = 0;
};

// Of one layout of one struct.
class Trial {
  public:
    // All must live longer. `sites` are all there are.
    Trial(const Layout& layout, std::uint32_t number, const Structs& structs,
          const Instances& instances, std::span<const trace_site_t> sites,
          const cache::Geometries& geometries);

    void take(std::uint32_t thread, std::span<const trace_record_t> records);

    Misses all() const { return sum(false); }  // of the program's data
    Misses own() const { return sum(true); }   // of the struct
    // References that are to the struct, and those of them that are where the layout has them.
    std::uint64_t references() const { return references_; }
    std::uint64_t moved() const { return moved_; }

  private:
    // References that become several have sites of their own, by how many bytes they are.
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
    std::uint32_t own_sites_;  // the first of them
    std::unique_ptr<cache::Simulator> simulator_;
    std::vector<trace_record_t> records_;
    std::vector<std::uint32_t> hints_;  // by site
    std::uint64_t references_ = 0, moved_ = 0;
};

}  // namespace struct_layout
