// Converts traces of DynamoRIO's drmemtrace.
#include "framework/support/error.h"
#include "framework/support/log.h"
#include "tools/trace/drmemtrace_input.h"
#include "tools/trace/import.h"

#include <fmt/core.h>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <queue>
#include <string_view>
#include <system_error>
#include <utility>

namespace assay::tracing {
namespace drmemtrace {
namespace {

// The files of a folder that drmemtrace has made, without those that are no traces.
std::vector<std::string> files_of(const std::string& path, const std::string& output) {
    namespace fs = std::filesystem;
    constexpr std::string_view kNoTraces[] = {"serial_schedule.bin",
                                              "cpu_schedule.bin",
                                              "modules.log",
                                              "funclist.log",
                                              "encodings.bin",
                                              "v2p.textproto",
                                              "."};
    if (!fs::is_directory(path)) return {path};
    const fs::path inner = fs::path(path) / "trace";
    std::vector<std::string> files;
    for (const auto& each :
         fs::directory_iterator(fs::is_directory(inner) ? inner : fs::path(path))) {
        const std::string name = each.path().filename().string();
        std::error_code ignored;
        const bool is_trace =
            !each.is_directory(ignored) && !fs::equivalent(each.path(), output, ignored) &&
            std::none_of(std::begin(kNoTraces), std::end(kNoTraces),
                         [&](std::string_view other) { return name.starts_with(other); });
        if (is_trace) files.push_back(each.path().string());
    }
    if (files.empty()) throw Error(fmt::format("{} has no files of traces", path));
    std::sort(files.begin(), files.end());
    return files;
}

void tell_of(const LeftOut& left_out, const std::string& path) {
    const auto tell = [&](std::uint64_t count, const std::string& what) {
        log::remark(fmt::format("{}: left out {} record{} of {}", path, count,
                                count == 1 ? "" : "s", what));
    };
    if (left_out.line_operations != 0)
        tell(left_out.line_operations, "prefetches and flushes, which need encodings of x86-64");
    for (const auto& [type, count] : left_out.markers)
        tell(count, fmt::format("type {}, an unknown marker", type));
}

}  // namespace
}  // namespace drmemtrace

void read_drmemtrace(const Import& import, TraceMaker& maker) {
    using drmemtrace::Input;
    drmemtrace::Trace trace{maker, {}, {}, {}, {}};
    std::vector<std::unique_ptr<Input>> inputs;
    using Turn = std::pair<std::uint64_t, std::size_t>;  // time and number of an input
    std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
    for (const std::string& file : drmemtrace::files_of(import.file, import.output)) {
        inputs.push_back(std::make_unique<Input>(file, trace));
        if (inputs.back()->run(0)) turns.emplace(inputs.back()->time(), inputs.size() - 1);
    }
    while (!turns.empty()) {
        const std::size_t number = turns.top().second;
        turns.pop();
        Input& input = *inputs[number];
        if (input.run(turns.empty() ? UINT64_MAX : turns.top().first))
            turns.emplace(input.time(), number);
        else
            inputs[number].reset();
    }
    drmemtrace::tell_of(trace.left_out, import.file);
}

}  // namespace assay::tracing
