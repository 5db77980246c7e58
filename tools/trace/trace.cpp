#include "tools/trace/trace.h"

#include "framework/support/error.h"
#include "framework/support/log.h"
#include "framework/symbols/image_cache.h"
#include "framework/symbols/symbolizer.h"
#include "tools/trace/export.h"
#include "tools/trace/import.h"
#include "tools/trace/listing.h"
#include "tools/trace/summary.h"

#include <fmt/core.h>
#include <unistd.h>
#include <set>
#include <vector>

namespace assay::tracing {
namespace {

std::vector<recording::RecordedImage> selected_images(const recording::TraceFileReader& file,
                                                      const Options& options) {
    std::vector<recording::RecordedImage> selected;
    for (const recording::RecordedImage& image : file.images())
        if ((!options.pid || image.pid == *options.pid) &&
            (!options.image || image.number == *options.image))
            selected.push_back(image);
    if (!selected.empty()) return selected;
    if (file.images().empty()) throw Error(fmt::format("{} has no process", file.path()));
    throw Error(
        fmt::format("{} has no such process: assay trace --summary {} shows which there are",
                    file.path(), file.path()));
}

// A damaged trace is shown as far as it goes, and is no success.
int tell_of(const std::set<std::string>& problems) {
    for (const std::string& problem : problems) log::problem(problem);
    return problems.empty() ? 0 : kExitFailure;
}

int summarize(const Options& options, const recording::TraceFileReader& file) {
    Sink sink(options.output);
    write_summary_head(options, sink);
    std::set<std::string> problems;
    for (const recording::RecordedImage& image : selected_images(file, options)) {
        try {
            write_summary(options, replay::ImageTrace(file, image), image, sink);
        } catch (const Error& error) {
            problems.insert(error.what());
        }
    }
    sink.finish();
    if (!file.damage().empty()) problems.insert(file.damage());
    return tell_of(problems);
}

int list(const Options& options, const recording::TraceFileReader& file) {
    const std::vector<recording::RecordedImage> images = selected_images(file, options);
    symbols::Symbolizer symbolizer(symbols::kDebugRoot, symbols::ImageCache::folder_of_user());
    Sink sink(options.output);
    Listing listing(options, sink);
    std::set<std::string> problems, said;
    for (const recording::RecordedImage& recorded : images) {
        try {
            const replay::ImageTrace image(file, recorded);
            const Places places(image, symbolizer);
            for (const std::string& remark : places.problems())
                if (said.insert(remark).second) log::remark(remark);
            const std::string missing = listing.write(image, places, images.size() > 1);
            for (const std::string& problem : {image.problem(), missing})
                if (!problem.empty()) problems.insert(problem);
        } catch (const Error& error) {
            problems.insert(error.what());
        }
    }
    sink.finish();
    return tell_of(problems);
}

// Other formats have one process, and but for memref one thread: the first ones, unless others are
// asked for.
int convert(const Options& options, const recording::TraceFileReader& file) {
    if (options.format == Format::kChampsim && options.output.empty() && isatty(STDOUT_FILENO) != 0)
        throw Error("--format=champsim is not for terminals: name a file with -o");
    const std::vector<recording::RecordedImage> images = selected_images(file, options);
    const replay::ImageTrace image(file, images.front());
    if (const std::string lacks =
            recording::missing_records(TRACE_RECORDED_REFERENCES, image.content());
        !lacks.empty())
        throw Error(fmt::format("{} does not have {}", file.path(), lacks));
    Region region = options.region;
    if (options.format != Format::kMemref && !region.thread) region.thread = 0;
    std::set<std::uint32_t> threads;
    for (const recording::ChunkPlace& chunk : images.front().chunks)
        if (chunk.header.kind == TRACE_CHUNK_RECORDS) threads.insert(chunk.header.thread);
    if (region.thread && !threads.contains(*region.thread))
        throw Error(fmt::format("{} has no thread {} of process {}", file.path(), *region.thread,
                                image.pid()));
    const bool chosen = !region.thread || options.region.thread || threads.size() == 1;
    if (images.size() > 1 || !chosen)
        log::remark(fmt::format("of process {}, image {}{}: others by --pid, --image and --thread",
                                image.pid(), image.number(),
                                region.thread ? fmt::format(", thread {}", *region.thread) : ""));
    Sink sink(options.output);
    const std::string missing = export_image(options.format, image, region, sink);
    sink.finish();
    std::set<std::string> problems{image.problem(), missing};
    problems.erase("");
    return tell_of(problems);
}

int run(const Options& options) {
    if (options.import) {
        import_trace({*options.import, options.file, options.output, options.reference_bytes});
        return 0;
    }
    const recording::TraceFileReader file(options.file);
    if (is_export(options.format)) return convert(options, file);
    const bool glance = options.nothing_asked && options.output.empty() && isatty(STDOUT_FILENO);
    return options.summary || glance ? summarize(options, file) : list(options, file);
}

}  // namespace
}  // namespace assay::tracing

namespace assay {

int trace_main(int argc, char** argv) {
    const std::optional<tracing::Options> options = tracing::parse_options(argc, argv);
    return options ? tracing::run(*options) : 0;
}

}  // namespace assay
