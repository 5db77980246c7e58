// A thread of the program under QEMU: its slot of the trace segment, the filters of its references,
// and its first level of caches. Only the thread itself uses these, except where noted.
#pragma once

#include "framework/driver/qemu/guest_code.h"
#include "framework/driver/qemu/regions.h"
#include "framework/driver/shared/burst_places.h"
#include "framework/driver/shared/first_level.h"
#include "framework/driver/shared/followed_contexts.h"
#include "framework/driver/shared/predictor.h"
#include "framework/driver/shared/trace_tables.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace assay::qemu {

class GuestThread {
  public:
    // `lock`: of the code and the tables. `is_machine`: the thread is a vCPU of a whole machine.
    GuestThread(GuestCode& code, Regions& regions, std::mutex& lock, bool is_machine)
        : code_(code), regions_(regions), lock_(lock), is_machine_(is_machine) {}
    // Maps the slot `number`. False if there is no memory.
    bool map(driver::TraceTables& tables, std::uint32_t number);
    // The same for the child of a fork, at the same addresses: translated code increments counters
    // there.
    bool map_again(std::uint32_t number);
    // For the child of a fork that nobody profiles.
    void detach();
    // A thread with this number begins in the slot.
    void begin(std::uint32_t thread);
    // The thread becomes the only one of a fork's child. It is in the same part of the program.
    void begin_in_child();
    // Gives the unfinished buffer to the collector.
    void end();

    std::uint64_t* counters() const { return counters_; }
    void append(std::uint64_t value, std::uint32_t site, std::uint32_t aux = 0) {
        trace_record_t* const record = next_;
        *record = {value, site, aux};
        set_next(record + 1);
    }

    // --- References. Each function records the reference unless the filter of its name drops it.

    // True if the reference stays in the most recent line of its set.
    bool is_recent(std::uint64_t address, unsigned bytes) const {
        std::uint64_t line;
        std::memcpy(&line, filter_ + (address & set_mask_), sizeof line);
        return (((address ^ line) | ((address + bytes - 1) ^ line)) & -line_bytes_) == 0;
    }
    void refer(std::uint64_t address, std::uint32_t site) { append(address, site); }
    void refer_recent(std::uint64_t address, unsigned bytes, std::uint32_t site) {
        const Lines lines = lines_of(address, bytes);
        bool passes = use_recent(lines.first);
        if (lines.last != lines.first) passes = use_recent(lines.last) || passes;
        if (passes) append(address, site);
    }
    void refer_first_writes(std::uint64_t address, unsigned bytes, bool write, std::uint32_t site) {
        const Lines lines = lines_of(address, bytes);
        bool passes = use_written(lines.first, write);
        if (lines.last != lines.first) passes = use_written(lines.last, write) || passes;
        if (passes) append(address, site);
    }
    void refer_misses(std::uint64_t address, unsigned bytes, std::uint32_t site) {
        const Lines lines = lines_of(address, bytes);
        if (lines.first == lines.last && level_->uses_known(lines.first)) [[likely]]
            return;
        refer_other_lines(address, bytes, site);
    }

    // Fetches of code in the lines with these numbers (GuestCode::line_number), at most two.
    void fetch_recent(std::uint64_t pc, std::uint32_t first, std::uint32_t last,
                      std::uint32_t site) {
        bool passes = use_code(first);
        if (last != first) passes = use_code(last) || passes;
        if (passes) append(pc, site);
    }
    void fetch_misses(std::uint64_t pc, std::uint32_t first, std::uint32_t last,
                      std::uint32_t site) {
        if (first == last) {
            if (first == last_code_line_) return;
            last_code_line_ = first;
            if (level_->uses_known_code(first)) [[likely]]
                return;
        }
        fetch_other_lines(pc, first, last, site);
    }

    // --- The present execution of an instruction whose references come in parts.

    struct Parts {
        const Operation* operation = nullptr;
        unsigned operand = 0;          // the next or present one
        bool begun = false;            // the present operand has been referred to
        std::uint64_t address = 0;     // of the present operand
        std::uint64_t references = 0;  // so far, of all operands
    };
    Parts parts;
    // What the latest one of these references was, decoded.
    struct Access {
        std::uint32_t info;  // QEMU's description
        unsigned bytes;
        bool writes;
    };
    Access last_access{UINT32_MAX, 0, false};
    // Records how many references the execution has made, if executions can differ in that.
    void end_execution();

    // --- The order of blocks. Only called if the specification asks for it.

    // Must be called before the thread executes the block. Counts and records the block, and the
    // branch that has led to it.
    void enter(const GuestBlock& block);
    // False if the block lies outside of the part of the program that is profiled: see Regions.
    bool is_profiled() const { return is_profiled_; }
    // The program asks to go on where the innermost signal handler has interrupted it.
    void return_from_signal() { resumes_ = !interrupted_.empty(); }

  private:
    bool go_on_in_regions(const GuestBlock& block);

    // --- thread_bursts.cpp: with --sample

    void begin_bursts(std::uint32_t thread);
    void end_bursts();
    // The thread goes on with this block of the part that is sampled. True in a burst, and in the
    // warm-up before it.
    bool go_on_in_bursts(const GuestBlock& block);
    void change_burst(std::uint64_t pc);
    void send_end(trace::EndOf of);
    void send_intervals();
    // Lines that are not where the first level last had them, or two.
    void refer_other_lines(std::uint64_t address, unsigned bytes, std::uint32_t site);
    void fetch_other_lines(std::uint64_t pc, std::uint32_t first, std::uint32_t last,
                           std::uint32_t site);

    // --- thread_flow.cpp

    void leave(const GuestBlock& from, const GuestBlock& to);
    // True if control does not come from `from` to the handler at `to` by itself.
    bool is_interrupt(const GuestBlock& from, const GuestBlock& to) const;
    bool may_end_handler(const GuestBlock& block) const;
    void enter_handler(const GuestBlock& interrupted, const GuestBlock& handler);
    void end_branch(const GuestBlock& from, const GuestBlock& to);
    void follow_call(const GuestBlock& from, const GuestBlock& to);
    // The call that control comes back from, as the number of calls around it; nothing for a jump.
    std::optional<std::size_t> returned_to(const GuestBlock& to, bool is_return);
    std::size_t leave_handlers(std::size_t depth);
    void leave_calls(std::size_t depth, const GuestBlock& to);
    // The outermost `depth` calls have not returned.
    void keep_calls(std::size_t depth) {
        return_addresses_.resize(depth);
        place_.leave(depth);
    }

    bool map_contexts(std::uint32_t number);
    // Ends intervals in a block that is not counted yet.
    void end_intervals(const GuestBlock& block);
    void send_counts();

    struct Lines {
        std::uint64_t first, last;
    };
    // The addresses of the lines of a reference. Only the first bytes of one larger than a line
    // count.
    Lines lines_of(std::uint64_t address, unsigned bytes) const {
        const std::uint64_t size = line_bytes_;
        return {address & -size, (address + (bytes < size ? bytes : size) - 1) & -size};
    }
    std::uint64_t& entry_of(std::uint64_t line) {
        return *reinterpret_cast<std::uint64_t*>(filter_ + (line & set_mask_));
    }
    bool use_recent(std::uint64_t line) {
        std::uint64_t& recent = entry_of(line);
        if (recent == line) return false;
        recent = line;
        return true;
    }
    bool use_written(std::uint64_t line, bool write) {
        std::uint64_t& recent = entry_of(line);
        std::uint64_t& written = (&recent)[1];
        if (recent == line && (!write || written == line)) return false;
        if (recent != line) written = 0;
        recent = line;
        if (write) written = line;
        return true;
    }
    bool use_code(std::uint32_t line) {
        std::uint32_t& recent = code_filter_[line & code_mask_];
        if (recent == line) return false;
        recent = line;
        return true;
    }
    // Keeps the position for the collector, and leaves room for one more record.
    void set_next(trace_record_t* next) {
        next_ = next;
        slot_->cursor.store(reinterpret_cast<std::uint64_t>(next), std::memory_order_relaxed);
        if (next == end_) [[unlikely]]
            complete();
    }
    bool map_slot(void* where, std::uint32_t number);
    bool map_first_level();
    void begin_buffer();
    void complete();

    static constexpr std::uint32_t kFilterBytes = 4096;
    static constexpr std::uint32_t kMostCodeSets = 1024;

    // The context of references, if they tell it.
    std::uint32_t context() const { return tells_contexts_ ? contexts_->number() : 0; }

    trace_record_t *next_ = nullptr, *end_ = nullptr;
    trace::ThreadSlot* slot_ = nullptr;
    std::uint64_t* counters_ = nullptr;
    std::uint64_t line_bytes_ = 1, set_mask_ = 0;
    driver::FirstLevel* level_ = nullptr;
    std::uint32_t last_code_line_ = 0;
    std::uint32_t code_mask_ = 0;
    std::uint32_t buffers_ = 0;  // a power of two
    driver::TraceTables* tables_ = nullptr;
    const GuestBlock* before_ = nullptr;  // the block that the thread executes
    std::uint64_t to_go_ = 0;          // instructions to the end of the interval; 0: no intervals
    std::vector<std::uint64_t> sent_;  // the counters when they were last sent
    std::unique_ptr<driver::Predictor> predictor_;
    // QEMU before version 9 does not tell the stack pointer. Each call that has not returned stands
    // for a frame of kFrameBytes.
    static constexpr std::uint64_t kFrameBytes = 16;
    std::vector<std::uint64_t> return_addresses_;  // of the calls, the innermost last
    // Recent calls by the address after them: how many calls were around them. For longjmp(3).
    struct PastCall {
        std::uint64_t behind;
        std::size_t depth;
    };
    std::array<PastCall, 4096> past_calls_{};
    PastCall& past_call(std::uint64_t behind) {
        return past_calls_[(behind ^ behind >> 12) / 2 % past_calls_.size()];
    }
    std::uint64_t stack_begin_ = 0;
    std::uint64_t stack_pointer() const {
        return stack_begin_ - return_addresses_.size() * kFrameBytes;
    }
    // Interrupts of a machine, its other exceptions, and signals of a program. QEMU does not tell
    // them: a block follows that the block before does not lead to. The interrupted block goes on
    // after the handler.
    struct Interrupted {
        const GuestBlock* block;
        std::uint64_t* in_node;
        std::size_t depth;  // the handler's frame among return_addresses_
        bool is_profiled;
    };
    static constexpr std::size_t kMostInterrupted = 256;
    GuestCode& code_;
    Regions& regions_;
    Regions::Place place_;
    // See native/process/bursts.h.
    struct Bursts {
        enum class Part : std::uint8_t { kRest, kWarmUp, kBurst };
        driver::BurstPlaces places;
        Part part = Part::kRest;
        std::uint64_t executed = 0, boundary = 0;  // instructions of the part that is sampled
        std::uint64_t next_interval = 0;           // its start; 0: no intervals
    };
    Bursts bursts_;
    std::mutex& lock_;
    const bool is_machine_;
    bool has_regions_ = false;  // not all is profiled
    bool is_profiled_ = true;   // `before_`
    bool follows_calls_ = false;
    bool tells_contexts_ = false;
    bool resumes_ = false;                  // the innermost handler has returned
    std::vector<Interrupted> interrupted_;  // the innermost last
    trace::ContextNodes* nodes_ = nullptr;
    std::unique_ptr<driver::FollowedContexts> contexts_;
    std::uint64_t* in_node_ = nullptr;  // the counters of `before_` in its context
    alignas(64) unsigned char filter_[kFilterBytes] = {};
    std::uint32_t code_filter_[kMostCodeSets] = {};
};

}  // namespace assay::qemu
