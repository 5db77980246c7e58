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

// Members that are newer than the file are 0.
template <typename T>
T structure(const std::vector<std::byte>& content) {
    T made{};
    std::memcpy(&made, content.data(), std::min(content.size(), sizeof made));
    return made;
}

// The next rows of a chunk; nothing if the chunk is shorter.
template <typename T>
std::optional<std::vector<T>> take_rows(std::uint32_t count, const std::vector<std::byte>& content,
                                        std::size_t& at) {
    if (count > (content.size() - at) / sizeof(T)) return {};
    std::vector<T> rows(count);
    if (count != 0) std::memcpy(rows.data(), content.data() + at, count * sizeof(T));
    at += count * sizeof(T);
    return rows;
}

template <typename T, typename Rows>
void append(std::vector<T>& to, const Rows& rows) {
    to.insert(to.end(), rows.begin(), rows.end());
}

// Weights are rounded, so that the weight of a single point can be slightly above 1.
bool is_interval(const trace_point_t& point) {
    return point.begin <= point.end && point.weight >= 0 && point.weight < 2;
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
            return;  // written by a later version
    }
}

// Each period has one burst, after its warm-up.
void ImageTrace::take_image(const std::vector<std::byte>& content) {
    constexpr std::uint64_t kLongestPeriod = 1'000'000'000'000'000;  // the limit of --sample
    auto image = structure<trace_image_t>(content);
    const bool whole = image.sample_period == 0
                           ? image.sample_burst == 0 && image.sample_warm_up == 0
                           : image.sample_period <= kLongestPeriod && image.sample_burst != 0 &&
                                 image.sample_burst < image.sample_period &&
                                 image.sample_warm_up <= image.sample_period - image.sample_burst;
    if (!whole)
        throw Error(fmt::format(
            "{} is damaged: process {} has bursts of {} instructions after a warm-up of {}, in "
            "every {}",
            file_.path(), pid_, image.sample_burst, image.sample_warm_up, image.sample_period));
    if (image.emulated != 0) {
        emulated_ = isa::architecture_of({image.elf_machine, image.elf_class, image.elf_data,
                                          image.emulated == TRACE_EMULATED_MICROCONTROLLER});
        if (emulated_ == nullptr || image.emulated > TRACE_EMULATED_MICROCONTROLLER)
            throw Error(fmt::format(
                "{} is damaged, or of a later version: process {} has an unknown instruction set "
                "(ELF machine {})",
                file_.path(), pid_, image.elf_machine));
    }
    image.size = sizeof image;
    image_ = image;
}

void ImageTrace::take_end(std::vector<std::byte> content) {
    const auto size = structure<std::uint32_t>(content);
    std::optional<std::vector<trace_thread_end_t>> ends;
    if (size >= sizeof size && size <= content.size()) {
        std::size_t at = size;
        const std::size_t rows = (content.size() - size) / sizeof(trace_thread_end_t);
        if (rows <= trace::kMaxThreads)
            ends = take_rows<trace_thread_end_t>(static_cast<std::uint32_t>(rows), content, at);
    }
    const auto has_slot = [](const trace_thread_end_t& end) {
        return end.slot < trace::kMaxThreads;
    };
    if (!ends || !std::all_of(ends->begin(), ends->end(), has_slot))
        throw Error(fmt::format("{} is damaged: the end of process {}", file_.path(), pid_));
    content.resize(size);
    end_ = structure<trace_image_end_t>(content);
    thread_ends_ = *std::move(ends);
}

// The readers use the rows of these tables as indexes without a check. The whole chunk is therefore
// checked before any of its rows is appended.
void ImageTrace::take_code(const std::vector<std::byte>& content) {
    const auto head = structure<trace_code_t>(content);
    std::size_t at = sizeof head;
    if (content.size() >= sizeof head && head.first_block == blocks_.size() &&
        head.first_instr == instrs_.size() && head.first_site == sites_.size()) {
        const auto blocks = take_rows<trace_block_t>(head.blocks, content, at);
        const auto instrs = take_rows<trace_instr_t>(blocks ? head.instrs : 0, content, at);
        const auto sites = take_rows<trace_site_t>(blocks && instrs ? head.sites : 0, content, at);
        if (blocks && instrs && sites && fits(*blocks, *instrs, *sites)) {
            append(blocks_, *blocks);
            append(instrs_, *instrs);
            append(sites_, *sites);
            return;
        }
    }
    throw Error(fmt::format("{} is damaged: its code of process {} does not fit together",
                            file_.path(), pid_));
}

// True if these rows can follow the present ones: each new instruction belongs to one new block,
// and each new site to an instruction.
bool ImageTrace::fits(const std::vector<trace_block_t>& blocks,
                      const std::vector<trace_instr_t>& instrs,
                      const std::vector<trace_site_t>& sites) const {
    std::size_t next = 0;  // of `instrs`
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const trace_block_t& block = blocks[b];
        if (block.first_instr != instrs_.size() + next || block.instr_count == 0 ||
            block.instr_count > kMaxBlockInstrs || block.instr_count > instrs.size() - next ||
            block.pc != instrs[next].pc)
            return false;
        for (const std::size_t end = next + block.instr_count; next < end; ++next)
            if (instrs[next].block != blocks_.size() + b || instrs[next].length == 0 ||
                instrs[next].length > kMaxInstrBytes)
                return false;
    }
    return next == instrs.size() &&
           std::all_of(sites.begin(), sites.end(), [&](const trace_site_t& site) {
               return site.instr < instrs_.size() + instrs.size();
           });
}

// An image has only one such chunk.
void ImageTrace::take_points(const std::vector<std::byte>& content) {
    const auto about = structure<trace_points_t>(content);
    std::size_t at = about.size;
    if (points_.empty() && at >= sizeof about.size && at <= content.size() && about.count != 0 &&
        about.count <= trace::kMostPoints) {
        auto points = take_rows<trace_point_t>(about.count, content, at);
        if (points && std::all_of(points->begin(), points->end(), is_interval)) {
            about_points_ = about;
            points_ = *std::move(points);
            return;
        }
    }
    throw Error(
        fmt::format("{} is damaged: its simulation points of process {}", file_.path(), pid_));
}

void ImageTrace::begin_mixture() {
    blocks_.clear();
    instrs_.clear();
    sites_.clear();
    events_.clear();
    records_.clear();
    image_.slice = 0;
}

void ImageTrace::mix(const ImageTrace& other, std::span<const trace_block_t> blocks,
                     std::span<const trace_instr_t> instrs, std::span<const trace_site_t> sites,
                     std::span<const std::byte> events) {
    append(blocks_, blocks);
    append(instrs_, instrs);
    append(sites_, sites);
    append(events_, events);
    image_.captures &= other.image_.captures;
    image_.values &= other.image_.values;
    if (!other.end_ || other.end_->state != TRACE_IMAGE_ENDED) end_ = other.end_;
    if (problem_.empty()) problem_ = other.problem_;
}

bool is_replaced(const recording::TraceFileReader& file, const recording::RecordedImage& image) {
    for (const recording::ChunkPlace& chunk : image.chunks) {
        if (chunk.header.kind != TRACE_CHUNK_END) continue;
        try {
            return structure<trace_image_end_t>(file.read(chunk)).state == TRACE_IMAGE_REPLACED;
        } catch (const Error&) {
            // the replay of the image reports the damage
        }
    }
    return false;
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
