// The driver's side of the trace segment: publishes translated instructions, and hands full
// trace buffers to the collector.
#pragma once

#include "framework/driver/native/context.h"
#include "framework/driver/native/instruction.h"

#include <span>
#include <string_view>
#include <vector>

namespace assay::native {

class TraceWriter {
  public:
    // Maps the segment behind `fd`, and the thread's slot behind the context: the context is
    // allocated here, because both must lie side by side. Returns nullptr on failure.
    Context* attach(int fd);

    const trace::Spec& spec() const { return control_->spec; }
    // Of the process whose image this is, and the image's number within it.
    std::int32_t pid() const { return control_->pid; }
    std::uint32_t image() const { return control_->image; }
    bool captures(trace::Capture capture) const { return control_->spec.captures & capture; }

    // Appends to the tables; what a block needs is published by publish.
    std::uint32_t next_block() const { return blocks_used_; }
    std::uint32_t next_instr() const { return instrs_used_; }
    std::uint32_t next_site() const { return sites_used_; }
    void add_instr(const Instruction& instruction);
    void add_site(std::uint32_t instr, unsigned bytes, unsigned kind, unsigned operand);
    // The block consists of the instructions added since the last block.
    void add_block(std::uint64_t pc);
    void publish();
    bool tables_full() const;
    const trace_block_t& block(std::uint32_t index) const { return blocks_[index]; }
    std::uint32_t block_of(std::uint32_t site) const { return instrs_[sites_[site].instr].block; }
    bool is_fetch(std::uint32_t site) const { return sites_[site].kind == TRACE_SITE_FETCH; }
    // How often the site's block was executed, if block counts are captured.
    std::uint64_t executions(std::uint32_t site) const;
    // The buffer before the one that the cursor is in: full, and not used again soon.
    std::span<const trace_record_t> last_buffer() const;

    void mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                std::string_view path);
    void unmapped(std::uint64_t start, std::uint64_t end);
    void partial(std::uint32_t block, std::uint32_t executed, bool counted);
    void message(std::string_view text);
    void refuse(std::string_view text);
    // What runs natively after this image; "": it goes on itself.
    void leaves_for(std::string_view text);
    void set_state(trace::DriverState state);
    void set_pid(std::int32_t pid);

    // Appends one record (the cursor must be in memory, not in a register).
    void append(std::uint64_t value, std::uint32_t site, std::uint32_t aux = 0);
    // Hands the current buffer, filled to its end, to the collector and waits for a free one.
    // Returns the start of the next. Async-signal-safe.
    std::uint64_t next_buffer();
    // True if a store to `address` ran into the end of the current buffer.
    bool is_buffer_end(std::uint64_t address) const;
    void set_cursor(std::uint64_t cursor) {
        slot_->cursor.store(cursor, std::memory_order_relaxed);
    }
    // Makes this process stop writing to the collector: the child of a fork.
    void detach();
    bool detached() const { return detached_; }

  private:
    void log(trace::EventType type, const void* body, std::size_t bytes, std::string_view tail);
    void ring_doorbell();
    std::uint64_t buffer_address(std::uint32_t number) const;

    int fd_ = -1;
    trace::Control* control_ = nullptr;
    trace::ThreadSlot* slot_ = nullptr;
    unsigned char* log_ = nullptr;
    trace_block_t* blocks_ = nullptr;
    trace_instr_t* instrs_ = nullptr;
    trace_site_t* sites_ = nullptr;
    std::uint64_t ring_ = 0;  // buffers with a guard page behind each
    std::uint64_t log_used_ = 0;
    std::uint32_t blocks_used_ = 0, instrs_used_ = 0, sites_used_ = 0;
    std::uint32_t block_begin_ = 0;  // first instruction of the next block
    bool detached_ = false;
};

}  // namespace assay::native
