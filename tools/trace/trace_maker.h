// Makes a trace (assay/trace_file.h) of one thread from the addresses of its instructions and their
// references.
#pragma once

#include "framework/recording/record_coding.h"
#include "framework/recording/trace_file_writer.h"
#include "tools/trace/walk.h"

#include <cstddef>
#include <cstdint>
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

    struct Instruction {
        std::uint64_t pc;
        std::uint8_t length;  // 1 to 15 bytes
        std::uint8_t flags;   // TRACE_INSTR_*, of branches
        bool is_branch;       // including direct jumps, which have no flag
    };
    // Adds the next executed instruction. Throws Error if the file cannot be written.
    void add(const Instruction& instruction, std::span<const Reference> references);
    // Call it after the last instruction. Throws Error.
    void finish();

    std::uint64_t instructions() const { return executed_ + in_chunk_; }

  private:
    // An instruction of the next block. `key_` identifies the block.
    struct Piece {
        Instruction instruction;
        std::uint32_t first_reference;
    };
    std::span<const Reference> references_of(std::size_t piece) const;
    void close_block();
    std::uint32_t block_of_pieces();
    void add_sites(const trace_instr_t& instr, std::uint32_t number,
                   std::span<const Reference> references);
    void add_site(std::uint32_t instr, unsigned kind, unsigned bytes, unsigned operand);
    void record(std::span<const Reference> references, std::uint32_t& site);
    void encode();
    void write_chunk();
    void write_code();
    void append(trace_chunk_t header, std::span<const std::byte> content);

    recording::TraceFileWriter file_;
    recording::RecordEncoder encoder_;
    std::vector<Piece> pieces_;
    std::vector<Reference> references_;  // of the pieces
    std::string key_;
    std::unordered_map<std::string, std::uint32_t> known_;  // blocks by key
    std::vector<std::uint32_t> first_sites_;                // by block
    std::vector<trace_block_t> blocks_;
    std::vector<trace_instr_t> instrs_;
    std::vector<trace_site_t> sites_;
    std::size_t blocks_written_ = 0, instrs_written_ = 0, sites_written_ = 0;
    std::vector<trace_record_t> records_;
    std::uint64_t event_bytes_ = 0, parts_ = 0;
    std::uint64_t executed_ = 0, in_chunk_ = 0;  // instructions, in earlier chunks and in this one
};

}  // namespace assay::tracing
