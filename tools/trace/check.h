// assay trace --check: whether a trace can be the recording of a program.
#pragma once

#include "framework/driver/replay/image_trace.h"
#include "tools/trace/trace.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay::tracing {

// What a trace must obey.
enum class Rule : std::uint8_t {
    kCode,        // the tables of instructions and sites agree with the instructions' bytes
    kFlow,        // a block begins where the block before it leads
    kReferences,  // an instruction makes its references, in order
    kThreads,     // threads begin and end once
    kEvents,      // parts and markers name events that exist, in order
    kCounts,      // headers and ends of images have the numbers that were read
};
inline constexpr std::size_t kRules = static_cast<std::size_t>(Rule::kCounts) + 1;

struct Violation {
    std::string what;
    std::optional<std::uint32_t> thread;  // from 0
    std::uint64_t instruction = 0;        // of the thread, from 1
    std::optional<std::uint32_t> instr;   // index in the instruction table
};

// The first violation of each rule, and the number of all.
class Violations {
  public:
    struct Found {
        std::uint64_t count = 0;
        Violation first;
    };
    // True if the caller must describe the violation with describe().
    bool add(Rule rule) { return ++found_[static_cast<std::size_t>(rule)].count == 1; }
    void describe(Rule rule, Violation first) {
        found_[static_cast<std::size_t>(rule)].first = std::move(first);
    }
    void add(Rule rule, Violation violation) {
        if (add(rule)) describe(rule, std::move(violation));
    }
    const std::array<Found, kRules>& found() const { return found_; }

  private:
    std::array<Found, kRules> found_;
};

// True if the recording has all records that the control flow can be checked with.
bool has_flow(const replay::ImageTrace& image);

// What the bytes of an image's instructions say.
class CheckedCode {
  public:
    // Adds what is wrong with the tables themselves. `image` must outlive this object.
    // `has_code`: the bytes of instructions are known.
    CheckedCode(const replay::ImageTrace& image, bool has_code, Violations& violations);

    struct Instr {
        static constexpr std::uint8_t kAnyNumber = UINT8_MAX;

        std::uint8_t references = kAnyNumber;  // of each execution
        bool varies = false;                   // TRACE_SITE_COUNT tells their number
        bool leads_on = true;                  // to the next instruction
        bool leads_anywhere = false;
        std::uint64_t target = 0;  // of a direct branch
    };
    const Instr& operator[](std::uint32_t instr) const { return instrs_[instr]; }
    // How many of the instructions before this one make references in each execution.
    std::uint32_t referring_before(std::uint32_t instr) const { return referring_[instr]; }

  private:
    void look_at(std::uint32_t instr, Violations& violations);
    void look_at_blocks(Violations& violations) const;
    void look_at_sites(Violations& violations) const;

    const replay::ImageTrace& image_;
    const bool has_references_, has_code_, has_all_jumps_;
    std::vector<Instr> instrs_;
    std::vector<std::uint32_t> referring_;
};

// Counts of what was checked.
struct Checked {
    std::uint64_t images = 0, threads = 0, instructions = 0, blocks = 0, references = 0;
    bool flow = true;                              // of all images
    std::uint64_t returns = 0, other_returns = 0;  // all, and those not behind the last call
};

// Follows one thread.
class CheckedThread {
  public:
    // `number`: from 0. All other arguments must outlive this object.
    CheckedThread(const replay::ImageTrace& image, const CheckedCode& code, std::uint32_t number,
                  Violations& violations)
        : image_(image), code_(code), number_(number), violations_(violations) {}

    // The next records follow so many instructions of the thread.
    void begin_chunk(std::uint64_t executed);
    void take(const trace_record_t& record);
    // Call it after the last record.
    void finish();

    const Checked& checked() const { return checked_; }

  private:
    // Where the thread can go on.
    struct Next {
        bool anywhere = true;
        std::uint64_t pcs[2] = {0, 0};

        bool has(std::uint64_t pc) const { return anywhere || pc == pcs[0] || pc == pcs[1]; }
    };
    struct Call {
        std::uint64_t frame;   // the stack pointer after its return
        std::uint64_t behind;  // the address after the call; 0 for a signal handler
    };

    Next after(std::uint32_t instr) const;
    void begin_block(std::uint32_t block);
    void leave_block(std::uint32_t block, std::uint64_t executed);
    void go_to(std::uint64_t pc, std::uint32_t instr);
    void refer(std::uint32_t instr);
    void count_references(std::uint32_t instr, std::uint64_t value);
    void pass(std::uint32_t instr);
    void close_references(std::uint32_t end, bool last_is_whole);
    void call(std::uint64_t frame, std::uint64_t behind);
    void return_to(std::uint64_t stack);
    void forget_flow();
    template <typename What>
    void violate(Rule rule, std::uint32_t instr, const What& what);

    const replay::ImageTrace& image_;
    const CheckedCode& code_;
    const std::uint32_t number_;
    Violations& violations_;
    trace_position_t position_{};
    std::uint64_t place_ = 0;  // of the present record
    Checked checked_;
    Next next_;
    std::optional<std::uint32_t> block_;  // that is being executed
    bool has_ended_ = false;
    // The instructions of the block before `passed_` have been compared with their references.
    std::uint32_t passed_ = 0;
    std::uint64_t references_ = 0;  // of instruction `passed_`
    bool is_counted_ = false;       // instruction `passed_` had its TRACE_SITE_COUNT
    std::vector<Call> calls_;
    std::optional<std::uint64_t> expected_return_;
    Next interrupted_;  // where the last signal handler could have begun
};

// Checks an image, and adds what was checked to `all`. Returns a line for each rule that is
// violated. Throws Error if records are missing.
std::vector<std::string> check_image(const Options& options, const replay::ImageTrace& image,
                                     const recording::RecordedImage& recorded, Checked& all);
std::string description(const Checked& all);

}  // namespace assay::tracing
