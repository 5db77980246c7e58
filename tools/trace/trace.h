// assay trace: shows the content of a trace as text.
#pragma once

#include "tools/command_line/command_line.h"
#include "tools/expressions/expressions.h"
#include "tools/trace/walk.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace assay::tracing {

// The command line of assay trace.

enum class Format : std::uint8_t {
    kText,
    kCsv,
    kJson,
    kTrace,
    kChampsim,
    kDin,
    kLackey,
    kMemref,
    kDrmemtrace,  // only imported
};

// True for formats of other programs. They contain one process, and only references.
inline bool is_export(Format format) {
    return format >= Format::kChampsim;
}

struct Options {
    std::string file;
    std::string output;  // "": standard output
    Format format = Format::kText;
    std::optional<Format> import;  // the format of `file`
    unsigned reference_bytes = 1;  // for an import
    bool summary = false;
    bool check = false;
    bool instructions = false;
    std::optional<std::uint32_t> pid, image;
    Region region;
    std::optional<Pattern> function;
    std::optional<std::pair<std::uint64_t, std::uint64_t>> addresses;  // both ends included
    std::uint32_t kinds = 0;     // the records to show: bit 1 << TRACE_SITE_*
    bool nothing_asked = false;  // no filter, and text as the format
};

// For the table of commands.
std::vector<Option> options();

// No value if --help was given and its text has been printed. Throws Error.
std::optional<Options> parse_options(int argc, const char* const* argv);

// The name of a kind of records, as for --kind. "" if it has no name.
const char* kind_name(unsigned kind);

}  // namespace assay::tracing

namespace assay {

// The subcommand. argv[0] is its name. Throws Error.
int trace_main(int argc, char** argv);

}  // namespace assay
