// A trace for check-plugin, either synthetic or recorded.
#pragma once

#include "framework/collector/profilers/trace_parser.h"
#include "framework/collector/trace/contexts.h"
#include "framework/collector/trace/interval_reader.h"
#include "framework/collector/trace/segment.h"
#include "framework/collector/trace/trace_reader.h"
#include "framework/driver/replay/image_trace.h"

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace assay::check {

// A read-only copy of an array, directly before an inaccessible page. The copy becomes inaccessible
// when it is destroyed. Reading beyond the end, writing, and later use therefore fault.

template <typename T>
class GuardedCopy {
  public:
    explicit GuardedCopy(const std::vector<T>& array) : count_(array.size()) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t bytes = count_ * sizeof(T);
        bytes_ = (bytes + page - 1) / page * page + page;
        void* const memory =
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        memory_ = static_cast<char*>(memory);
        data_ = memory_ + bytes_ - page - bytes;
        if (bytes != 0) std::memcpy(data_, array.data(), bytes);
        mprotect(memory_, bytes_ - page, PROT_READ);
        mprotect(memory_ + bytes_ - page, page, PROT_NONE);
    }
    // Keeps the address range reserved, so that no other mapping gets it.
    ~GuardedCopy() {
        madvise(memory_, bytes_, MADV_DONTNEED);
        mprotect(memory_, bytes_, PROT_NONE);
    }
    GuardedCopy(const GuardedCopy&) = delete;
    GuardedCopy& operator=(const GuardedCopy&) = delete;

    std::span<const T> span() const { return {reinterpret_cast<const T*>(data_), count_}; }

  private:
    std::size_t count_, bytes_ = 0;
    char *memory_ = nullptr, *data_ = nullptr;
};

template <typename T>
class GuardedRoom {
  public:
    explicit GuardedRoom(std::size_t count) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t bytes = count * sizeof(T);
        const std::size_t room = (bytes + page - 1) / page * page;
        bytes_ = room + 2 * page;
        void* const memory = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        memory_ = static_cast<char*>(memory);
        if (room != 0) mprotect(memory_ + page, room, PROT_READ | PROT_WRITE);
        begin_ = memory_ + page;
        data_ = begin_ + room - bytes;
        std::memset(begin_, kUntouched, static_cast<std::size_t>(data_ - begin_));
    }
    ~GuardedRoom() { munmap(memory_, bytes_); }
    GuardedRoom(const GuardedRoom&) = delete;
    GuardedRoom& operator=(const GuardedRoom&) = delete;

    // Initially all zero.
    T* data() const { return reinterpret_cast<T*>(data_); }
    // False if bytes between the start of the page and data() were written.
    bool untouched_before() const {
        return std::all_of(begin_, data_, [](char c) { return c == kUntouched; });
    }

  private:
    static constexpr char kUntouched = 0x5a;
    std::size_t bytes_ = 0;
    char *memory_ = nullptr, *begin_ = nullptr, *data_ = nullptr;
};

class TrialTrace {
  public:
    // Arguments of one call of vp_prof_process.
    struct Buffer {
        std::uint32_t thread = 0;
        std::vector<trace_record_t> records;
        std::vector<std::uint32_t> contexts;  // by record; for profilers that capture calls
        std::vector<trace_marker_t> markers;
        std::span<const collector::Interval> intervals;
        std::uint32_t misses = 0;  // TRACE_FETCH_MISSES and TRACE_DATA_MISSES
    };

    virtual ~TrialTrace() = default;

    // The tables in their current state.
    virtual std::vector<trace_block_t> blocks() const = 0;
    virtual std::vector<trace_instr_t> instrs() const = 0;
    virtual std::vector<trace_site_t> sites() const = 0;
    virtual std::vector<trace_context_t> contexts() const = 0;
    virtual const collector::AddressMap& addresses() const = 0;
    // Executions by instruction. A synthetic trace counts `times` for each instruction.
    virtual std::vector<std::uint64_t> counts(std::uint64_t times) const = 0;
    // By block; empty without a branch predictor.
    virtual std::vector<std::uint64_t> mispredictions() const { return {}; }
    // The incomplete intervals at the end.
    virtual std::span<const collector::Interval> rests() { return {}; }

    // Called if the profiler has requested trace_capture_runs.
    virtual void leave_out() {}
};

// A trace of assay record, for check-plugin --trace.
class TraceFile {
  public:
    // Replays the whole trace once. Throws Error if the file cannot be read, is damaged, or has no
    // process.
    explicit TraceFile(const std::string& path);

    const std::string& path() const { return file_.path(); }
    std::size_t images() const { return file_.images().size(); }
    replay::ImageTrace image(std::size_t number) const { return {file_, file_.images()[number]}; }

  private:
    const recording::TraceFileReader file_;
};

// One process image, for one replay.
class RecordedTrace final : public TrialTrace {
  public:
    // `image` must outlive this object. Throws Error.
    explicit RecordedTrace(const replay::ImageTrace& image);

    using Take = std::function<void(const Buffer& buffer)>;
    // Replays the records that `wanted` and `values` request, in order. `calls` adds the contexts
    // of records. Throws Error if the trace is damaged or lacks requested data.
    void replay(const trace::Spec& wanted, const trace::ValueLists& values, bool calls,
                const Take& take);

    std::vector<trace_block_t> blocks() const override { return copy(reader_.code().blocks); }
    std::vector<trace_instr_t> instrs() const override { return copy(reader_.code().instrs); }
    std::vector<trace_site_t> sites() const override { return copy(reader_.code().sites); }
    std::vector<trace_context_t> contexts() const override {
        return copy(stacks_.contexts().table());
    }
    const collector::AddressMap& addresses() const override { return reader_.addresses(); }
    std::vector<std::uint64_t> counts(std::uint64_t) const override {
        return reader_.counts().instruction_counts();
    }
    std::vector<std::uint64_t> mispredictions() const override {
        return reader_.counts().mispredictions();
    }
    std::span<const collector::Interval> rests() override;

  private:
    template <typename T>
    static std::vector<T> copy(std::span<const T> all) {
        return {all.begin(), all.end()};
    }
    void take(collector::TraceReader::Source source, std::span<const trace_record_t> records,
              std::span<const trace_marker_t> markers);
    void read(const std::function<bool()>& ended);

    const replay::ImageTrace& image_;
    collector::Segment segment_;
    collector::ShadowStacks stacks_;
    collector::IntervalReader intervals_;
    collector::TraceReader reader_;
    const std::unique_ptr<trace::Readers> readers_ = std::make_unique<trace::Readers>();
    bool calls_ = false;
    Take take_;
};

}  // namespace assay::check
