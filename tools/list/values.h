// Lists of values as the profilers that have seen them print them.
#pragma once

#include "assay/trace_types.h"
#include "framework/collector/profilers/crash_guard.h"
#include "framework/collector/profilers/profiler_handle.h"
#include "framework/events/series.h"
#include "tools/output/output.h"
#include "tools/profile/profile.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::list {

class ValuePrinter {
  public:
    // `lists`: the names of the lists that will be printed. Their profilers are looked for among
    // `plugins`, paths or names, and then by their names. At most `most` values of each are
    // printed.
    ValuePrinter(const std::vector<std::string_view>& lists,
                 const std::vector<std::string>& plugins, std::size_t most);

    // What is worth knowing of profilers that are not there, in a line each.
    const std::vector<std::string>& notes() const { return notes_; }
    // One line, or none if the profiler leaves the list out. As it is if `instr` is null, or if the
    // profiler is not there.
    std::vector<std::string> print(std::span<const Profile::Values* const> lists,
                                   const trace_instr_t* instr);

  private:
    collector::ProfilerHandle* profiler_of(std::string_view list) const;

    collector::CrashGuard guard_;
    std::vector<std::unique_ptr<collector::ProfilerHandle>> profilers_;
    std::vector<std::string> notes_;
    std::size_t most_;
};

// The series of an events file as tables of numbers.

void write_series(const events::Series& series, Output& output);

// Those of a file, one behind the other. Throws Error if it cannot be read or has none.
void list_series(const std::string& path, Output& output);

}  // namespace assay::list
