// The conversion of one file of drmemtrace. Each thread has a file; the timestamps in the files
// tell which thread comes next.
#pragma once

#include "framework/isa/architecture.h"
#include "tools/trace/drmemtrace_file.h"
#include "tools/trace/trace_maker.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::tracing::drmemtrace {

// The number of records that were left out, in all files together.
struct LeftOut {
    std::uint64_t line_operations = 0;
    std::map<unsigned, std::uint64_t> markers;  // by type
};

// What the headers of the files say. All files agree.
struct Header {
    std::uint64_t version = kOldestVersion, type = 0;

    bool has_bytes() const { return (type & kEncodings) != 0 && (type & kSynthetic) == 0; }
    bool operator==(const Header&) const = default;
};

// The program and the threads of a trace.
struct Trace {
    TraceMaker& maker;
    LeftOut left_out;
    std::map<std::uint64_t, std::uint32_t> threads;  // numbers, by DynamoRIO's identifiers
    std::optional<Header> header;                    // once an instruction was read
    std::optional<std::uint64_t> process;
};

// An instruction whose bytes are known.
struct Code {
    std::array<std::uint8_t, kMostInstructionBytes> bytes{};
    isa::Instruction described;
    bool is_known = false;  // and `described` is valid

    bool modifies() const {
        return std::any_of(described.operands, described.operands + described.operand_count,
                           [](const auto& each) { return each.kind == TRACE_SITE_MODIFY; });
    }
};

// Reads a file up to a time.
class Input {
  public:
    Input(const std::string& path, Trace& trace) : reader_(path), trace_(trace) {}

    // Reads on until an instruction is later than `until`. False at the end.
    bool run(std::uint64_t until);
    std::uint64_t time() const { return time_; }

  private:
    void take(const Entry& entry);
    void take_marker(const Entry& entry);
    void take_file_type(std::uint64_t type);
    void take_encoding(const Entry& entry);
    void begin(const Entry& entry);
    void begin_program();
    void repeat(const Entry& entry);
    void refer(const Entry& entry);
    void operate_on_line(const Entry& entry);
    void use_code(const Entry& entry);
    void find_iterations();
    void flush();
    void flush_before(std::uint64_t pc);
    std::uint32_t number_of(std::uint64_t thread);

    EntryReader reader_;
    const Entry* held_ = nullptr;  // the next record, if it has been read
    Trace& trace_;
    Header header_;
    std::uint64_t time_ = 0;
    bool has_ended_ = false;
    std::optional<std::uint64_t> thread_, process_;
    std::set<std::uint64_t> own_threads_;

    std::vector<std::uint8_t> encoding_;            // of the next instruction
    std::unordered_map<std::uint64_t, Code> code_;  // by address
    // An instruction is complete when the next one begins.
    std::optional<TraceMaker::Instruction> pending_;
    const Code* pending_code_ = nullptr;
    std::vector<Reference> references_;           // of the pending instruction
    std::optional<std::uint64_t> next_;           // where the thread goes on after it, if known
    std::optional<std::uint64_t> branch_target_;  // of the next instruction
    bool rseq_aborts_ = false;
    bool is_checked_ = false;  // that the present thread belongs to the trace
};

}  // namespace assay::tracing::drmemtrace
