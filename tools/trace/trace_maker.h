// Makes a trace (assay/trace_file.h) of one program from the addresses of its instructions and
// their references.
#pragma once

#include "framework/isa/architecture.h"
#include "framework/recording/record_coding.h"
#include "framework/recording/trace_file_writer.h"
#include "tools/trace/places.h"
#include "tools/trace/walk.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace assay::tracing {

class TraceMaker {
  public:
    // Makes the file `path`, or empties it. `source` becomes the command of the trace. Throws
    // Error.
    TraceMaker(const std::string& path, const std::string& source);

    struct Program {
        isa::ElfKind elf = isa::kX86;
        bool has_references = true;
    };
    // Without a call: `Program{}`. Call it before the first instruction.
    void describe(const Program& program) { program_ = program; }

    struct Instruction {
        std::uint64_t pc;
        std::uint8_t length;  // 1 to 15 bytes
        std::uint8_t flags;   // TRACE_INSTR_*, of branches; with bytes all of them
        bool is_branch;       // including direct jumps, which have no flag
        bool has_bytes = false;
        std::array<std::uint8_t, kMostInstructionBytes> bytes = {};
        std::uint16_t opcode = 0;  // with bytes
        // With TRACE_INSTR_VARIABLE: how many references the instruction makes in each iteration,
        // of the same kinds and sizes. 0: unknown.
        std::uint8_t in_iteration = 0;
    };
    // The following instructions are those of this thread, from 0. The first call has 0, and each
    // further one a known number or the next one.
    void switch_to(std::uint32_t thread);
    // Adds the next executed instruction. A Reference can be of TRACE_SITE_VALUE: the address of an
    // instruction that refers to no data, such as a prefetch. Throws Error if the file cannot be
    // written.
    void add(const Instruction& instruction, std::span<const Reference> references);
    // After the last instruction, the thread went on here, whatever instruction follows.
    void go_on_at(std::uint64_t pc);
    // Call it after the last instruction. Throws Error.
    void finish();

    std::uint64_t instructions() const { return instructions_; }

  private:
    struct Thread {
        recording::RecordEncoder encoder;
        std::uint64_t executed = 0, in_chunk = 0;  // instructions, before this chunk and in it
    };
    // An instruction of the next block. `key_` identifies the block.
    struct Piece {
        Instruction instruction;
        std::uint32_t first_reference;
    };
    std::span<const Reference> references_of(std::size_t piece) const;
    void close_block();
    std::uint32_t block_of_pieces();
    void add_sites(const Instruction& instruction, std::uint32_t number,
                   std::span<const Reference> references);
    void add_site(std::uint32_t instr, unsigned kind, unsigned bytes, unsigned operand);
    void record(const Instruction& instruction, std::span<const Reference> references,
                std::uint32_t& site);
    void encode();
    void write_chunk(std::uint32_t number);
    void begin_image();
    void write_code();
    void append(trace_chunk_t header, std::span<const std::byte> content);

    recording::TraceFileWriter file_;
    const std::string source_;
    Program program_;
    bool has_begun_ = false;
    std::map<std::uint32_t, Thread> threads_;
    Thread* thread_;  // the present one
    std::uint32_t number_ = 0;
    std::vector<Piece> pieces_;          // of the present thread, as `records_`
    std::vector<Reference> references_;  // of the pieces
    std::string key_;
    std::unordered_map<std::string, std::uint32_t> known_;  // blocks by key
    std::vector<std::uint32_t> first_sites_;                // by block
    std::vector<trace_block_t> blocks_;
    std::vector<trace_instr_t> instrs_;
    std::vector<trace_site_t> sites_;
    std::size_t blocks_written_ = 0, instrs_written_ = 0, sites_written_ = 0;
    std::vector<trace_record_t> records_;
    std::optional<std::uint32_t> goes_on_site_;
    std::uint64_t event_bytes_ = 0, parts_ = 0, instructions_ = 0;
};

}  // namespace assay::tracing
