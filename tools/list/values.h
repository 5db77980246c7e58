// Prints lists of values with the help of the profilers that recorded them.
#pragma once

#include "assay/trace_types.h"
#include "framework/collector/profilers/crash_guard.h"
#include "framework/collector/profilers/profiler_handle.h"
#include "framework/events/series.h"
#include "tools/output/output.h"
#include "tools/profile/display_names.h"
#include "tools/profile/profile.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::list {

class ValuePrinter {
  public:
    // `lists` are the names of the lists to print. Their profilers are searched among `plugins`,
    // which are paths or names, and then by their names. At most `most` values of each list are
    // printed.
    ValuePrinter(const std::vector<std::string_view>& lists,
                 const std::vector<std::string>& plugins, std::size_t most);

    // Notes about missing profilers, one line each.
    const std::vector<std::string>& notes() const { return notes_; }
    // A line for each list, unless the profiler omits it. Lines have as many values as fit the
    // width, and at least one. If `instr` is null or the profiler is missing, prints the values
    // without its help.
    std::vector<std::string> print(std::span<const Profile::Values* const> lists,
                                   const trace_instr_t* instr, std::size_t width);

  private:
    collector::ProfilerHandle* profiler_of(std::string_view list) const;

    collector::CrashGuard guard_;
    std::vector<std::unique_ptr<collector::ProfilerHandle>> profilers_;
    std::vector<std::string> notes_;
    std::size_t most_;
};

// The series of an events file as tables of numbers.
void write_series(const events::Series& series, const DisplayNames& names, Output& output);

// Prints all series of a file. Throws Error if the file cannot be read or has no series.
void list_series(const std::string& path, NameStyle names, Output& output);

}  // namespace assay::list
