// The functions that assay offers to a profiler, vp_host_t, as virtual functions of a class. A run
// uses their arguments, and assay check-plugin checks them.
#pragma once

#include "assay/vprofiler.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::collector {

inline constexpr std::size_t kLongestPartName = 256;

// The number of the profile part `name`. Adds a new name to `named`. Returns 0 if there are too
// many parts.
std::uint32_t part_number(std::vector<std::string>& named, const std::string& name);

class Host {
  public:
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

  protected:
    explicit Host(std::string command);
    ~Host() = default;

    // For vp_init. Valid as long as this object.
    const vp_host_t* host_table() const { return &table_; }
    // Change the members of the table.
    void say_command(std::string command);
    void say_sampling(bool samples) { table_.samples = samples ? 1 : 0; }

    // The profiler's calls. Text arguments can be nullptr.
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
