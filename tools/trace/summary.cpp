#include "tools/trace/listing.h"

#include "framework/support/error.h"
#include "framework/support/text.h"
#include "tools/output/formats.h"

#include <fmt/core.h>
#include <set>

namespace assay::tracing {
namespace {

struct Counts {
    std::uint64_t threads = 0, instructions = 0, blocks = 0, reads = 0, writes = 0, modifies = 0,
                  values = 0;
    std::uint64_t bursts = 0;        // bursts that began
    std::uint64_t stored_bytes = 0;  // in the file, chunk headers included
    std::string problem;
};

// Counts a wide value once, and an execution without a value not at all.
bool is_value(const trace_site_t& site) {
    return site.kind == TRACE_SITE_VALUE && site.operand != TRACE_NONE;
}

Counts count(const replay::ImageTrace& image, const recording::RecordedImage& recorded) {
    Counts counts;
    std::set<std::uint32_t> threads;
    for (const recording::ChunkPlace& chunk : recorded.chunks) {
        counts.stored_bytes += sizeof chunk.header + chunk.header.stored_bytes;
        if (chunk.header.kind != TRACE_CHUNK_RECORDS) continue;
        counts.instructions += chunk.header.instructions;
        threads.insert(chunk.header.thread);
    }
    counts.threads = threads.size();
    const std::uint32_t before_burst =
        image.image().sample_warm_up != 0 ? trace::kWarmUpEnds : trace::kRestEnds;
    replay::PartSequence parts(image);
    for (replay::PartSequence::Part part; parts.next(part);) {
        for (const trace_record_t& record : part.records) {
            const unsigned kind = image.sites()[record.site].kind;
            counts.blocks += kind == TRACE_SITE_BLOCK ? 1 : 0;
            counts.reads += kind == TRACE_SITE_READ ? 1 : 0;
            counts.writes += kind == TRACE_SITE_WRITE ? 1 : 0;
            counts.modifies += kind == TRACE_SITE_MODIFY ? 1 : 0;
            counts.bursts += kind == TRACE_SITE_BURST && record.aux == before_burst ? 1 : 0;
            counts.values += is_value(image.sites()[record.site]) ? 1 : 0;
        }
    }
    counts.problem = image.problem().empty() ? parts.problem() : image.problem();
    return counts;
}

const char* ending(const std::optional<trace_image_end_t>& end) {
    switch (end ? end->state : 0) {
        case TRACE_IMAGE_ENDED:
            return "ended";
        case TRACE_IMAGE_KILLED:
            return "killed";
        case TRACE_IMAGE_REFUSED:
            return "not run further by assay";
        case TRACE_IMAGE_REPLACED:
            return "became another program (execve)";
        case TRACE_IMAGE_DAMAGED:
            return "damaged";
        default:
            return "not recorded";
    }
}

bool is_complete(const replay::ImageTrace& image, const Counts& counts) {
    return counts.problem.empty() && image.end() && image.end()->state != TRACE_IMAGE_DAMAGED;
}

double bytes_each(const Counts& counts) {
    return counts.instructions == 0 ? 0
                                    : static_cast<double>(counts.stored_bytes) /
                                          static_cast<double>(counts.instructions);
}

std::string text(const replay::ImageTrace& image, const Counts& counts) {
    std::string out = fmt::format("Process {}, image {}: {}\n", image.pid(), image.number(),
                                  printable(join(image.command().arguments, " ")));
    const auto add = [&](std::string_view name, std::uint64_t number) {
        out += fmt::format("  {:<24}{:>20}\n", name, with_thousands(number));
    };
    add("threads", counts.threads);
    add("instructions", counts.instructions);
    add("blocks", counts.blocks);
    add("reads", counts.reads);
    add("writes", counts.writes);
    add("modifies", counts.modifies);
    add("values", counts.values);
    if (image.image().sample_period != 0)
        out += fmt::format("  {:<24}{:>20}  of {} in every {} instructions, after {} to warm up\n",
                           "bursts", with_thousands(counts.bursts),
                           with_thousands(image.image().sample_burst),
                           with_thousands(image.image().sample_period),
                           with_thousands(image.image().sample_warm_up));
    add("bytes in the file", counts.stored_bytes);
    out += fmt::format("  {:<24}{:>20.3f}\n", "bytes for an instruction", bytes_each(counts));
    out += fmt::format("  {:<24}{:>20}\n", "end", ending(image.end()));
    const bool complete = is_complete(image, counts);
    out += fmt::format("  {:<24}{:>20}\n", "complete", complete ? "yes" : "no");
    if (!counts.problem.empty()) out += fmt::format("  {}\n", printable(counts.problem));
    return out;
}

std::string csv_text(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) out.append(c == '"' ? 2 : 1, c);
    return out + "\"";
}

constexpr const char* kCsvHead =
    "pid,image,command,threads,instructions,blocks,reads,writes,modifies,values,bytes,end,"
    "complete\n";

std::string csv(const replay::ImageTrace& image, const Counts& counts) {
    return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", image.pid(), image.number(),
                       csv_text(join(image.command().arguments, " ")), counts.threads,
                       counts.instructions, counts.blocks, counts.reads, counts.writes,
                       counts.modifies, counts.values, counts.stored_bytes,
                       csv_text(ending(image.end())), is_complete(image, counts) ? "yes" : "no");
}

std::string json(const replay::ImageTrace& image, const Counts& counts) {
    return fmt::format(
        "{{\"pid\":{},\"image\":{},\"command\":{},\"threads\":{},\"instructions\":{},"
        "\"blocks\":{},\"reads\":{},\"writes\":{},\"modifies\":{},\"values\":{},\"bytes\":{},"
        "\"end\":{},"
        "\"complete\":{}}}\n",
        image.pid(), image.number(), json_string(join(image.command().arguments, " ")),
        counts.threads, counts.instructions, counts.blocks, counts.reads, counts.writes,
        counts.modifies, counts.values, counts.stored_bytes, json_string(ending(image.end())),
        is_complete(image, counts));
}

}  // namespace

void write_summary_head(const Options& options, Sink& sink) {
    if (options.format == Format::kCsv) sink.write(kCsvHead);
}

void write_summary(const Options& options, const replay::ImageTrace& image,
                   const recording::RecordedImage& recorded, Sink& sink) {
    const Counts counts = count(image, recorded);
    switch (options.format) {
        case Format::kCsv:
            return sink.write(csv(image, counts));
        case Format::kJson:
            return sink.write(json(image, counts));
        default:
            return sink.write(text(image, counts));
    }
}

}  // namespace assay::tracing
