#include "framework/driver/shared/trace_tables.h"

#include "framework/trace/futex.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

namespace assay::driver {

// Maps the segment at `where`, in place of the old one, or anywhere.
bool TraceTables::map(void* where) {
    void* memory = mmap(where, trace::kThreadsOffset, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE | (where ? MAP_FIXED : 0), fd_, 0);
    if (memory == MAP_FAILED) return false;
    auto* base = static_cast<unsigned char*>(memory);
    control_ = reinterpret_cast<trace::Control*>(base);
    value_lists_ = reinterpret_cast<const trace::ValueLists*>(base + trace::kValueListsOffset);
    points_ = reinterpret_cast<const trace::SimulationPoint*>(base + trace::kPointsOffset);
    log_ = base + trace::kEventLogOffset;
    blocks_ = reinterpret_cast<trace_block_t*>(base + trace::kBlocksOffset);
    instrs_ = reinterpret_cast<trace_instr_t*>(base + trace::kInstrsOffset);
    sites_ = reinterpret_cast<trace_site_t*>(base + trace::kSitesOffset);
    context_words_ = reinterpret_cast<std::uint16_t*>(base + trace::kContextWordsOffset);
    return true;
}

// The log has the same address in every image.
bool TraceTables::map_allocations() {
    if (spec().objects == 0) return true;
    void* memory = mmap(allocations_, trace::kAllocationsBytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE | (allocations_ ? MAP_FIXED : 0), fd_,
                        static_cast<off_t>(trace::kAllocationsOffset));
    if (memory == MAP_FAILED) return false;
    allocations_ = static_cast<trace::AllocationEntry*>(memory);
    return true;
}

bool TraceTables::attach(const trace::Launch& launch) {
    fd_ = descriptors_.own(launch.segment_fd);  // kept open for the slots of later threads
    lifeline_ = descriptors_.adopt(launch.lifeline_fd);
    channel_ = descriptors_.adopt_common(launch.channel_fd);
    if (!map(nullptr) || !map_allocations()) return false;
    log_used_ = control_->event_log_bytes.load(std::memory_order_relaxed);
    return control_->magic == trace::kMagic && control_->layout_version == trace::kLayoutVersion;
}

// Events about code and the command. The other events happened only to the parent.
std::string TraceTables::lasting_events() const {
    std::string events;
    for (std::uint64_t at = 0; at < log_used_;) {
        trace::EventHeader header;
        std::memcpy(&header, log_ + at, sizeof header);
        const std::uint64_t bytes = (sizeof header + header.bytes + 7) & ~7ULL;
        if (header.type == trace::EventType::kCommand || header.type == trace::EventType::kMapped ||
            header.type == trace::EventType::kUnmapped ||
            header.type == trace::EventType::kMappedFile)
            events.append(reinterpret_cast<const char*>(log_ + at), bytes);
        at += bytes;
    }
    return events;
}

bool TraceTables::move_to(NewImage& image) {
    const std::string events = lasting_events();
    if (!image.write_log(events) ||
        !image.write(trace::kBlocksOffset, blocks_, next_.block * sizeof *blocks_) ||
        !image.write(trace::kInstrsOffset, instrs_, next_.instr * sizeof *instrs_) ||
        !image.write(trace::kSitesOffset, sites_, next_.site * sizeof *sites_) ||
        (captures(trace::kCaptureContexts) &&
         !image.write(trace::kContextWordsOffset, context_words_,
                      next_.block * sizeof *context_words_)) ||
        !image.write(trace::kAllocationsOffset, allocations_,
                     allocation_count_ * sizeof *allocations_) ||
        !image.announce(channel_))
        return false;
    fd_ = descriptors_.own(image.take_segment());
    lifeline_ = descriptors_.adopt(image.take_lifeline());
    if (!map(control_) || !map_allocations()) return false;
    control_->inherited_allocations = allocation_count_;
    control_->allocation_count.store(allocation_count_, std::memory_order_release);
    log_used_ = events.size();
    partials_.clear();
    publish();
    slots_.clear();
    set_state(trace::DriverState::kRunning);
    return true;
}

void TraceTables::look_for_collector() {
    // POLLERR means that no process has the reading end (poll(2)). The announcement holds it open
    // until a collector starts.
    pollfd lifeline{lifeline_, 0, 0};
    if (poll(&lifeline, 1, 0) > 0 && lifeline.revents & POLLERR)
        detached_.store(true, std::memory_order_relaxed);
}

// Tables begin at multiples of this size. Giving so much memory its pages at once takes less than
// half of the time of the faults.
constexpr std::uint64_t kPopulatedBytes = 64 * 1024;

// memcmp is right, because rows have no padding.
template <typename Row>
void TraceTables::add(Row* rows, std::uint32_t& next, const Row& row) {
    static_assert(kPopulatedBytes % sizeof row == 0);
    if (compares_) {
        same_ = same_ && std::memcmp(&rows[next], &row, sizeof row) == 0;
    } else {
        if (next % (kPopulatedBytes / sizeof row) == 0 && populates_)
            madvise(&rows[next], kPopulatedBytes, MADV_POPULATE_WRITE);
        rows[next] = row;
    }
    ++next;
}

void TraceTables::add_instr(trace_instr_t row) {
    row.block = next_.block;
    add(instrs_, next_.instr, row);
}

void TraceTables::add_site(std::uint32_t instr, unsigned bytes, unsigned kind, unsigned operand) {
    add(sites_, next_.site,
        trace_site_t{instr, static_cast<std::uint16_t>(bytes), static_cast<std::uint8_t>(kind),
                     static_cast<std::uint8_t>(operand)});
}

void TraceTables::begin_comparison(const TableRows& first) {
    end_ = next_;
    next_ = first;
    block_begin_ = first.instr;
    compares_ = same_ = true;
}

bool TraceTables::end_comparison(const TableRows& end) {
    const bool same = same_ && next_ == end;
    next_ = end_;
    block_begin_ = end_.instr;
    compares_ = false;
    return same;
}

std::uint32_t TraceTables::driver_site(std::uint32_t instr, unsigned kind) {
    const std::uint64_t key = std::uint64_t{instr} << 8 | kind;
    if (const auto known = driver_sites_.find(key); known != driver_sites_.end())
        return known->second;
    const std::uint32_t site = next_site();
    add_site(instr, 0, kind, 0);
    driver_sites_.emplace(key, site);
    publish();
    return site;
}

void TraceTables::add_block(std::uint64_t pc) {
    add(blocks_, next_.block, trace_block_t{pc, block_begin_, next_.instr - block_begin_});
    block_begin_ = next_.instr;
}

void TraceTables::publish() {
    if (detached()) return;
    control_->run_count.store(std::max(run_count(), object_runs_.count()),
                              std::memory_order_release);
    control_->instr_count.store(next_.instr, std::memory_order_release);
    control_->site_count.store(next_.site, std::memory_order_release);
    control_->block_count.store(next_.block, std::memory_order_release);
}

bool TraceTables::tables_full() const {
    constexpr std::uint32_t kMargin = 16384;  // more than one unit needs
    return next_.block + kMargin > trace::max_blocks(spec()) ||
           next_.instr + kMargin > trace::kMaxInstrs || next_.site + kMargin > trace::kMaxSites;
}

void TraceTables::log(trace::EventType type, const void* body, std::size_t bytes,
                      std::string_view tail) {
    if (detached()) return;
    const std::uint64_t length = (sizeof(trace::EventHeader) + bytes + tail.size() + 7) & ~7ULL;
    if (log_used_ + length > trace::kEventLogBytes) return;
    const trace::EventHeader header{type, static_cast<std::uint32_t>(bytes + tail.size())};
    unsigned char* at = log_ + log_used_;
    std::memcpy(at, &header, sizeof header);
    if (bytes) std::memcpy(at + sizeof header, body, bytes);
    if (!tail.empty()) std::memcpy(at + sizeof header + bytes, tail.data(), tail.size());
    log_used_ += length;
    control_->event_log_bytes.store(log_used_, std::memory_order_release);
}

void TraceTables::mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                         std::string_view path) {
    const trace::MappedEvent body{start, end, offset, next_.block, 0};
    log(trace::EventType::kMapped, &body, sizeof body, path);
}

void TraceTables::unmapped(std::uint64_t start, std::uint64_t end) {
    const trace::UnmappedEvent body{start, end};
    log(trace::EventType::kUnmapped, &body, sizeof body, {});
}

// Leaves room for other events.
void TraceTables::partial(trace::PartialEvent partial) {
    constexpr std::uint64_t kMostBytes = trace::kEventLogBytes / 2;
    const auto key = [](const trace::PartialEvent& of) {
        return std::array{of.block, of.executed, of.counted, of.slot, of.node};
    };
    auto known = partials_.find(key(partial));
    if (known == partials_.end() && log_used_ >= kMostBytes) {
        partial.node = trace::PartialEvent::kAnyNode;
        known = partials_.find(key(partial));
    }
    if (known != partials_.end()) {
        auto& times = reinterpret_cast<trace::PartialEvent*>(log_ + known->second)->times;
        std::atomic_ref(times).fetch_add(1, std::memory_order_relaxed);
        return;
    }
    partial.times = 1;
    const std::uint64_t at = log_used_ + sizeof(trace::EventHeader);
    log(trace::EventType::kPartial, &partial, sizeof partial, {});
    if (log_used_ > at) partials_.emplace(key(partial), at);
}

// Leaves room for other events.
void TraceTables::marker(const trace::MarkerEvent& marker, std::string_view text) {
    constexpr std::uint64_t kMostBytes = trace::kEventLogBytes / 4 * 3;
    if (log_used_ < kMostBytes)
        log(trace::EventType::kMarker, &marker, sizeof marker, text);
    else if (!std::exchange(markers_lost_, true))
        message(
            "the program names too many phases and memory regions, or changes the sizes of its "
            "pages too often: the rest is not recorded");
}

// Leaves room for other events.
std::optional<std::uint32_t> TraceTables::mapped_file(std::string_view path) {
    constexpr std::uint64_t kMostBytes = trace::kEventLogBytes / 2;
    if (const auto known = mapped_files_.find(path); known != mapped_files_.end())
        return known->second;
    if (log_used_ >= kMostBytes || mapped_files_.size() == trace::kMaxMappedFiles)
        return std::nullopt;
    log(trace::EventType::kMappedFile, nullptr, 0, path);
    const auto number = static_cast<std::uint32_t>(mapped_files_.size());
    mapped_files_.emplace(path, number);
    return number;
}

bool TraceTables::add_allocation(const trace::AllocationEntry& entry) {
    if (detached()) return false;
    if (allocation_count_ == trace::kMaxAllocations) {
        if (!std::exchange(allocations_lost_, true))
            message(
                "the program allocates memory too often: blocks that it allocates from now on are "
                "not recorded");
        return false;
    }
    allocations_[allocation_count_++] = entry;
    control_->allocation_count.store(allocation_count_, std::memory_order_release);
    return true;
}

void TraceTables::thread_name(std::uint32_t thread, std::string_view name) {
    const trace::ThreadNameEvent body{thread, 0};
    if (!name.empty()) log(trace::EventType::kThreadName, &body, sizeof body, name);
}

void TraceTables::message(std::string_view text) {
    log(trace::EventType::kMessage, nullptr, 0, text);
}

void TraceTables::problem(std::string_view text) {
    log(trace::EventType::kProblem, nullptr, 0, text);
}

void TraceTables::refuse(std::string_view text) {
    if (detached()) {  // no collector can show the text
        const std::string line = "assay: " + std::string(text) + "\n";
        [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), line.size());
        return;
    }
    log(trace::EventType::kRefused, nullptr, 0, text);
    set_state(trace::DriverState::kRefused);
}

void TraceTables::leaves_for(std::string_view text) {
    log(trace::EventType::kLeaves, nullptr, 0, text);
}

void TraceTables::set_state(trace::DriverState state) {
    if (detached()) return;
    control_->state.store(state, std::memory_order_release);
    ring_doorbell();
}

void TraceTables::set_pid(std::int32_t pid) {
    control_->pid = pid;
}

void TraceTables::ring_doorbell() {
    control_->doorbell.fetch_add(1, std::memory_order_seq_cst);
    if (control_->collector_sleeps.load(std::memory_order_seq_cst))
        trace::futex_wake(control_->doorbell);
}

std::uint64_t TraceTables::executions(std::uint32_t site) const {
    std::uint64_t sum = 0;
    const std::uint32_t block = block_of(site);
    for (const trace::ThreadSlot* slot : slots_) sum += trace::executions(slot, spec(), block);
    return sum;
}

std::uint32_t TraceTables::new_slot() {
    return static_cast<std::uint32_t>(slots_.size());
}

void TraceTables::publish_slot(trace::ThreadSlot* slot) {
    slots_.push_back(slot);
    if (detached()) return;
    control_->thread_count.store(static_cast<std::uint32_t>(slots_.size()),
                                 std::memory_order_release);
}

void TraceTables::hand_over(trace::ThreadSlot& slot, std::uint32_t records, std::uint64_t next) {
    std::uint32_t produced = slot.produced.load(std::memory_order_relaxed);
    const std::uint32_t index = produced & (slot.buffer_count - 1);
    slot.owner[index].store(slot.thread.load(std::memory_order_relaxed), std::memory_order_relaxed);
    if (spec().slice != 0 || captures(trace::kCaptureMappings))
        slot.place_in_order[index].store(next_place_in_order(), std::memory_order_relaxed);
    slot.filled[index].store(records, std::memory_order_release);
    // The cursor goes to the next buffer first, and the start follows. A collector that finds this
    // process dead can then tell which buffer the cursor belongs to.
    slot.cursor.store(next, std::memory_order_relaxed);
    slot.buffer_start.store(next, std::memory_order_release);
    slot.produced.store(++produced, std::memory_order_seq_cst);
    // Waking the collector costs more than filling a buffer, so it is woken only for several
    // buffers. With slices most buffers have few records.
    const std::uint32_t parts = spec().slice != 0 ? 2 : 4;
    if (produced % std::max(slot.buffer_count / parts, 1U) == 0) ring_doorbell();
    while (produced - slot.consumed.load(std::memory_order_seq_cst) >= slot.buffer_count) {
        slot.producer_waits.store(1, std::memory_order_seq_cst);
        const std::uint32_t consumed = slot.consumed.load(std::memory_order_seq_cst);
        if (produced - consumed < slot.buffer_count) break;
        constexpr timespec kPatience{1, 0};
        trace::futex_wait(slot.consumed, consumed, &kPatience);
        look_for_collector();
        if (detached()) break;
    }
    slot.producer_waits.store(0, std::memory_order_relaxed);
}

void TraceTables::detach() {
    constexpr int kFailedChild = 125;
    detached_ = true;
    fd_ = lifeline_ = -1;
    if (mmap(blocks_, trace::kThreadsOffset - trace::kBlocksOffset, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        _exit(kFailedChild);
}

}  // namespace assay::driver
