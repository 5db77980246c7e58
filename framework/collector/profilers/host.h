// What assay offers to a profiler, vp_host_t, as functions of a class: a run takes what they are
// given, and assay check-plugin looks at it.
#pragma once

#include "assay/vprofiler.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::collector {

inline constexpr std::size_t kLongestPartName = 256;

// The number of a part of the profile among those `named` so far, to which a new one is added; 0 if
// there are too many.
std::uint32_t part_number(std::vector<std::string>& named, const std::string& name);

class Host {
  public:
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

  protected:
    explicit Host(std::string command);
    ~Host() = default;

    // For vp_init; valid as long as this.
    const vp_host_t* host_table() const { return &table_; }
    // What the table says from now on.
    void say_command(std::string command);
    void say_sampling(bool samples) { table_.samples = samples ? 1 : 0; }

    // Called by the profiler, with what it gives: texts can be nullptr.
    virtual void take_error(const char* message) = 0;
    virtual void take_warning(const char* message) = 0;
    virtual void take_description(const char* name, const char* text) = 0;
    virtual std::uint32_t take_part(const char* name) = 0;
    virtual void take_left_out(std::uint32_t event) = 0;
    virtual void take_unscaled(std::uint32_t event) = 0;
    virtual void take_no_error(std::uint32_t event, const char* why) = 0;
    virtual std::uint32_t take_series(const vp_series_t* series) = 0;
    virtual std::uint32_t take_library(const char* path) = 0;

  private:
    static Host& self(const vp_host_t* table) { return *static_cast<Host*>(table->reserved); }

    std::string command_;
    vp_host_t table_{};
};

}  // namespace assay::collector
