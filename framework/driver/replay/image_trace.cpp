#include "framework/driver/replay/image_trace.h"

#include "framework/support/error.h"

#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <string_view>

namespace assay::replay {
namespace {

constexpr std::uint32_t kMaxInstrBytes = 15;  // Intel SDM volume 2, section 2.3.11
constexpr std::uint32_t kMaxBlockInstrs = 255;

// Members that were added later than the file was written are 0.
template <typename T>
T structure(const std::vector<std::byte>& content) {
    T made{};
    std::memcpy(&made, content.data(), std::min(content.size(), sizeof made));
    return made;
}

template <typename T>
bool take_rows(std::vector<T>& to, std::uint32_t first, std::uint32_t count,
               const std::vector<std::byte>& content, std::size_t& at) {
    if (first != to.size() || count > (content.size() - at) / sizeof(T)) return false;
    to.resize(to.size() + count);
    if (count != 0) std::memcpy(to.data() + first, content.data() + at, count * sizeof(T));
    at += count * sizeof(T);
    return true;
}

}  // namespace

ImageTrace::ImageTrace(const recording::TraceFileReader& file,
                       const recording::RecordedImage& image)
    : file_(file), pid_(image.pid), number_(image.number) {
    for (const recording::ChunkPlace& chunk : image.chunks) {
        try {
            take(chunk);
        } catch (const Error& damage) {
            if (problem_.empty()) problem_ = damage.what();
        }
    }
    if (image_.size == 0 || blocks_.empty())
        throw Error(fmt::format("{} has nothing of process {} that could be replayed{}",
                                file.path(), pid_, problem_.empty() ? "" : ": " + problem_));
    if (problem_.empty()) problem_ = file.damage();
}

void ImageTrace::take(const recording::ChunkPlace& chunk) {
    switch (chunk.header.kind) {
        case TRACE_CHUNK_IMAGE:
            return take_image(file_.read(chunk));
        case TRACE_CHUNK_CODE:
            take_code(file_.read(chunk));
            return;
        case TRACE_CHUNK_EVENTS: {
            const std::vector<std::byte> content = file_.read(chunk);
            events_.insert(events_.end(), content.begin(), content.end());
            return;
        }
        case TRACE_CHUNK_RECORDS:
            if (chunk.header.slot >= trace::kMaxThreads)
                throw Error(fmt::format("{} is damaged: a thread in slot {}", file_.path(),
                                        chunk.header.slot));
            records_[chunk.header.slot].push_back(chunk);
            return;
        case TRACE_CHUNK_POINTS:
            return take_points(file_.read(chunk));
        case TRACE_CHUNK_END:
            return take_end(file_.read(chunk));
        default:
            return;  // of a later version
    }
}

// Of bursts, there is one in each period, behind its warm-up.
void ImageTrace::take_image(const std::vector<std::byte>& content) {
    constexpr std::uint64_t kLongestPeriod = 1'000'000'000'000'000;  // as --sample has it
    auto image = structure<trace_image_t>(content);
    const bool whole = image.sample_period == 0
                           ? image.sample_burst == 0 && image.sample_warm_up == 0
                           : image.sample_period <= kLongestPeriod && image.sample_burst != 0 &&
                                 image.sample_burst < image.sample_period &&
                                 image.sample_warm_up <= image.sample_period - image.sample_burst;
    if (!whole)
        throw Error(fmt::format(
            "{} is damaged: process {} has bursts of {} instructions behind {}, in every {}",
            file_.path(), pid_, image.sample_burst, image.sample_warm_up, image.sample_period));
    image.size = sizeof image;
    image_ = image;
}

void ImageTrace::take_end(std::vector<std::byte> content) {
    const auto size = structure<std::uint32_t>(content);
    std::vector<trace_thread_end_t> ends;
    std::size_t at = size;
    bool good = size >= sizeof size && size <= content.size();
    const std::size_t rows = good ? (content.size() - size) / sizeof ends[0] : 0;
    good = good && rows <= trace::kMaxThreads &&
           take_rows(ends, 0, static_cast<std::uint32_t>(rows), content, at) &&
           std::all_of(ends.begin(), ends.end(),
                       [](const trace_thread_end_t& end) { return end.slot < trace::kMaxThreads; });
    if (!good) throw Error(fmt::format("{} is damaged: the end of process {}", file_.path(), pid_));
    content.resize(size);
    end_ = structure<trace_image_end_t>(content);
    thread_ends_ = std::move(ends);
}

// Everything that indexes is checked here.
void ImageTrace::take_code(const std::vector<std::byte>& content) {
    const auto head = structure<trace_code_t>(content);
    const std::size_t first_block = blocks_.size(), first_site = sites_.size();
    std::size_t at = sizeof head;
    bool good = content.size() >= sizeof head &&
                take_rows(blocks_, head.first_block, head.blocks, content, at) &&
                take_rows(instrs_, head.first_instr, head.instrs, content, at) &&
                take_rows(sites_, head.first_site, head.sites, content, at);
    std::size_t instr = head.first_instr;
    for (std::size_t b = first_block; good && b < blocks_.size(); ++b) {
        const trace_block_t& block = blocks_[b];
        good = block.first_instr == instr && block.instr_count <= instrs_.size() - instr &&
               block.instr_count != 0 && block.instr_count <= kMaxBlockInstrs;
        for (std::uint32_t i = 0; good && i < block.instr_count; ++i, ++instr)
            good = instrs_[instr].block == b && instrs_[instr].length != 0 &&
                   instrs_[instr].length <= kMaxInstrBytes;
    }
    good = good && instr == instrs_.size();
    for (std::size_t s = first_site; good && s < sites_.size(); ++s)
        good = sites_[s].instr < instrs_.size();
    if (good) return;
    throw Error(fmt::format("{} is damaged: its code of process {} does not fit together",
                            file_.path(), pid_));
}

void ImageTrace::take_points(const std::vector<std::byte>& content) {
    about_points_ = structure<trace_points_t>(content);
    std::size_t at = about_points_.size;
    if (at >= sizeof about_points_.size && at <= content.size() && about_points_.count != 0 &&
        about_points_.count <= trace::kMostPoints &&
        take_rows(points_, 0, about_points_.count, content, at))
        return;
    throw Error(
        fmt::format("{} is damaged: its simulation points of process {}", file_.path(), pid_));
}

trace::Command ImageTrace::command() const {
    const std::string_view log(reinterpret_cast<const char*>(events_.data()), events_.size());
    return trace::command_from(log).value_or(trace::Command{"???", {"???"}});
}

std::uint64_t ImageTrace::instructions() const {
    std::uint64_t all = 0;
    for (const auto& [slot, chunks] : records_)
        for (const recording::ChunkPlace& chunk : chunks) all += chunk.header.instructions;
    return all;
}

}  // namespace assay::replay
