#include "tools/trace/trace_maker.h"

#include "assay/trace_vlist.h"
#include "framework/trace/command_event.h"
#include "framework/trace/segment_layout.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace assay::tracing {
namespace {

constexpr std::size_t kInstructionsInBlock = 64;
constexpr std::uint64_t kRecordsInChunk = std::uint64_t{1} << 21;
constexpr std::size_t kBytesInChunk = std::size_t{64} << 20;
constexpr std::size_t kCodeInChunk = std::size_t{1} << 20;  // instructions
// The number of the only process.
constexpr std::uint32_t kPid = 1;
// An instruction with more references is recorded with a variable number of references.
constexpr std::size_t kFixedReferences = 4;

// One reference of each kind and size, in the order of the first occurrences.
std::vector<Reference> classes_of(std::span<const Reference> references) {
    std::vector<Reference> classes;
    for (const Reference& reference : references)
        if (std::none_of(classes.begin(), classes.end(), [&](const Reference& each) {
                return each.kind == reference.kind && each.bytes == reference.bytes;
            }))
            classes.push_back(reference);
    return classes;
}

// How the references of an instruction are recorded.
enum class Form : std::uint8_t {
    kFixed,       // each has a site
    kIterations,  // those of one iteration have a site, and a count follows
    kClasses,     // all of one kind and size have a site, and their count follows
};
Form form_of(const TraceMaker::Instruction& instruction, std::span<const Reference> references) {
    if (instruction.flags & TRACE_INSTR_VARIABLE)
        return instruction.in_iteration != 0 ? Form::kIterations : Form::kClasses;
    return references.size() <= kFixedReferences ? Form::kFixed : Form::kClasses;
}

std::span<const Reference> iteration_of(const TraceMaker::Instruction& instruction,
                                        std::span<const Reference> references) {
    return references.first(std::min<std::size_t>(instruction.in_iteration, references.size()));
}

template <typename T>
void append_rows(std::vector<std::byte>& to, std::span<const T> rows) {
    const auto bytes = std::as_bytes(rows);
    to.insert(to.end(), bytes.begin(), bytes.end());
}

template <typename T>
void append_bytes(std::string& to, const T& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Adds the encoding. If it is unknown, operand-size prefixes make a no-operation of the right
// length (Intel SDM volume 2, NOP).
void set_code(trace_instr_t& instr, const TraceMaker::Instruction& from) {
    constexpr std::uint8_t kOperandSize = 0x66, kNop = 0x90;
    std::memset(instr.bytes, kOperandSize, instr.length - 1U);
    instr.bytes[instr.length - 1] = kNop;
    instr.opcode = TRACE_OPCODE(0, kNop);
    if (!from.has_bytes) return;
    std::copy_n(from.bytes.begin(), instr.length, std::begin(instr.bytes));
    instr.opcode = from.opcode;
}

// The records of a repeated comparison do not tell what ended it. Its result ends most.
std::uint32_t end_of(const TraceMaker::Instruction& instruction) {
    const unsigned opcode = instruction.opcode & 0xfeU;  // cmps and scas
    return opcode == 0xa6 || opcode == 0xae ? 1 : 0;
}

}  // namespace

TraceMaker::TraceMaker(const std::string& path, const std::string& source)
    : file_(path), source_(source), thread_(&threads_[0]) {}

void TraceMaker::begin_image() {
    if (std::exchange(has_begun_, true)) return;
    trace_image_t image{};
    image.size = sizeof image;
    // The trace claims to have calls but contains none: profilers that ask for calls then run
    // without stacks.
    image.captures = TRACE_RECORDED_BLOCKS | TRACE_RECORDED_CALLS;
    if (program_.has_references)
        image.captures |= TRACE_RECORDED_REFERENCES | TRACE_RECORDED_LINE_OPERATIONS;
    if (program_.elf != isa::kX86) {
        image.emulated = TRACE_EMULATED_PROGRAM;
        image.elf_machine = program_.elf.machine;
        image.elf_class = program_.elf.word_class;
        image.elf_data = program_.elf.byte_order;
    }
    trace_chunk_t header{};
    header.kind = TRACE_CHUNK_IMAGE;
    append(header, std::as_bytes(std::span(&image, 1)));
    const std::string event = trace::command_event({source_, {source_}});
    header.kind = TRACE_CHUNK_EVENTS;
    append(header, std::as_bytes(std::span(event)));
    event_bytes_ = event.size();
}

void TraceMaker::switch_to(std::uint32_t thread) {
    if (thread == number_) return;
    close_block();
    encode();
    number_ = thread;
    thread_ = &threads_[thread];
}

void TraceMaker::append(trace_chunk_t header, std::span<const std::byte> content) {
    header.pid = kPid;
    header.image = 1;
    file_.append(header, content);
}

std::span<const Reference> TraceMaker::references_of(std::size_t piece) const {
    const std::size_t end =
        piece + 1 < pieces_.size() ? pieces_[piece + 1].first_reference : references_.size();
    const std::size_t first = pieces_[piece].first_reference;
    return std::span(references_).subspan(first, end - first);
}

// A block is a sequence of adjacent instructions, each with the same references: profilers multiply
// a block's references by its executions.
void TraceMaker::add(const Instruction& instruction, std::span<const Reference> references) {
    if (!pieces_.empty()) {
        const Instruction& last = pieces_.back().instruction;
        if (last.is_branch || last.pc + last.length != instruction.pc ||
            pieces_.size() == kInstructionsInBlock)
            close_block();
    }
    pieces_.push_back({instruction, static_cast<std::uint32_t>(references_.size())});
    references_.insert(references_.end(), references.begin(), references.end());
    append_bytes(key_, instruction.pc);
    append_bytes(key_, instruction.length);
    append_bytes(key_, instruction.flags);
    if (instruction.has_bytes)
        key_.append(reinterpret_cast<const char*>(instruction.bytes.data()), instruction.length);
    const Form form = form_of(pieces_.back().instruction, references);
    append_bytes(key_, form);
    std::vector<Reference> classes;
    if (form == Form::kClasses) classes = classes_of(references);
    const std::span<const Reference> shape = form == Form::kFixed ? references
                                             : form == Form::kIterations
                                                 ? iteration_of(instruction, references)
                                                 : classes;
    append_bytes(key_, static_cast<std::uint32_t>(shape.size()));
    for (const Reference& reference : shape) {
        append_bytes(key_, reference.kind);
        append_bytes(key_, reference.bytes);
    }
}

void TraceMaker::add_site(std::uint32_t instr, unsigned kind, unsigned bytes, unsigned operand) {
    sites_.push_back({instr, static_cast<std::uint16_t>(bytes), static_cast<std::uint8_t>(kind),
                      static_cast<std::uint8_t>(operand)});
}

void TraceMaker::add_sites(const Instruction& instruction, std::uint32_t number,
                           std::span<const Reference> references) {
    const Form form = form_of(instruction, references);
    if (form == Form::kClasses) {
        const std::vector<Reference> classes = classes_of(references);
        for (unsigned i = 0; i < classes.size(); ++i) {
            add_site(number, classes[i].kind, classes[i].bytes, i);
            add_site(number, TRACE_SITE_COUNT, 0, 0);
        }
        return;
    }
    if (form == Form::kIterations) references = iteration_of(instruction, references);
    for (unsigned i = 0; i < references.size(); ++i)
        add_site(number, references[i].kind, references[i].bytes,
                 references[i].kind == TRACE_SITE_VALUE ? unsigned{TRACE_EFFECTIVE_ADDRESS} : i);
    if (form == Form::kIterations) add_site(number, TRACE_SITE_COUNT, 0, 0);
}

std::uint32_t TraceMaker::block_of_pieces() {
    const auto [known, is_new] =
        known_.try_emplace(key_, static_cast<std::uint32_t>(blocks_.size()));
    if (!is_new) return known->second;
    const auto block = static_cast<std::uint32_t>(blocks_.size());
    const auto first = static_cast<std::uint32_t>(instrs_.size());
    blocks_.push_back(
        {pieces_.front().instruction.pc, first, static_cast<std::uint32_t>(pieces_.size())});
    first_sites_.push_back(static_cast<std::uint32_t>(sites_.size()));
    add_site(first, TRACE_SITE_BLOCK, 0, 0);
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        const std::span<const Reference> references = references_of(i);
        trace_instr_t instr{};
        instr.pc = pieces_[i].instruction.pc;
        instr.block = block;
        instr.length = pieces_[i].instruction.length;
        unsigned flags = pieces_[i].instruction.flags;
        for (const Reference& reference : references) {
            if (reference.kind == TRACE_SITE_VALUE) continue;
            if (reference.kind != TRACE_SITE_WRITE) flags |= TRACE_INSTR_LOAD;
            if (reference.kind != TRACE_SITE_READ) flags |= TRACE_INSTR_STORE;
        }
        if (form_of(pieces_[i].instruction, references) == Form::kClasses)
            flags |= TRACE_INSTR_VARIABLE;
        instr.flags = static_cast<std::uint8_t>(flags);
        set_code(instr, pieces_[i].instruction);
        instrs_.push_back(instr);
        add_sites(pieces_[i].instruction, first + static_cast<std::uint32_t>(i), references);
    }
    return block;
}

// `site` is the instruction's first site, and after the call the site after its last.
void TraceMaker::record(const Instruction& instruction, std::span<const Reference> references,
                        std::uint32_t& site) {
    const Form form = form_of(instruction, references);
    if (form == Form::kFixed) {
        for (const Reference& reference : references)
            records_.push_back({reference.address, site++, 0});
        return;
    }
    if (form == Form::kIterations) {
        const std::size_t sites = iteration_of(instruction, references).size();
        for (std::size_t i = 0; i < references.size(); ++i)
            records_.push_back(
                {references[i].address, site + static_cast<std::uint32_t>(i % sites), 0});
        site += static_cast<std::uint32_t>(sites);
        records_.push_back(
            {references.size() / instruction.in_iteration, site++, end_of(instruction)});
        return;
    }
    const std::vector<Reference> classes = classes_of(references);
    std::vector<std::uint64_t> counts(classes.size());
    for (const Reference& reference : references) {
        std::size_t which = 0;
        while (classes[which].kind != reference.kind || classes[which].bytes != reference.bytes)
            ++which;
        ++counts[which];
        records_.push_back({reference.address, static_cast<std::uint32_t>(site + 2 * which), 0});
    }
    for (const std::uint64_t count : counts) {
        records_.push_back({count, site + 1, 0});
        site += 2;
    }
}

void TraceMaker::close_block() {
    if (pieces_.empty()) return;
    std::uint32_t site = first_sites_[block_of_pieces()];
    records_.push_back({0, site++, 0});
    for (std::size_t i = 0; i < pieces_.size(); ++i)
        record(pieces_[i].instruction, references_of(i), site);
    thread_->in_chunk += pieces_.size();
    instructions_ += pieces_.size();
    pieces_.clear();
    references_.clear();
    key_.clear();
    if (records_.size() >= trace::kRecordsPerBuffer) encode();
    if (thread_->encoder.records() >= kRecordsInChunk ||
        thread_->encoder.bytes() >= kBytesInChunk ||
        instrs_.size() - instrs_written_ >= kCodeInChunk)
        write_chunk(number_);
}

void TraceMaker::go_on_at(std::uint64_t pc) {
    close_block();
    if (instrs_.empty()) return;
    if (!goes_on_site_) {
        goes_on_site_ = static_cast<std::uint32_t>(sites_.size());
        add_site(0, TRACE_SITE_BURST, 0, 0);
    }
    records_.push_back({pc, *goes_on_site_, trace::kGoesOnAt});
}

// A part has at most as many records as a trace buffer.
void TraceMaker::encode() {
    begin_image();
    for (std::span<const trace_record_t> left = records_; !left.empty();) {
        const auto part = left.first(std::min<std::size_t>(left.size(), trace::kRecordsPerBuffer));
        thread_->encoder.begin_part(parts_++, part.size(), event_bytes_, {});
        thread_->encoder.add(part, sites_);
        left = left.subspan(part.size());
    }
    records_.clear();
}

void TraceMaker::write_code() {
    const auto blocks = std::span<const trace_block_t>(blocks_).subspan(blocks_written_);
    const auto instrs = std::span<const trace_instr_t>(instrs_).subspan(instrs_written_);
    const auto sites = std::span<const trace_site_t>(sites_).subspan(sites_written_);
    if (sites.empty()) return;
    const trace_code_t head{
        static_cast<std::uint32_t>(blocks_written_), static_cast<std::uint32_t>(blocks.size()),
        static_cast<std::uint32_t>(instrs_written_), static_cast<std::uint32_t>(instrs.size()),
        static_cast<std::uint32_t>(sites_written_),  static_cast<std::uint32_t>(sites.size())};
    std::vector<std::byte> content;
    append_rows(content, std::span(&head, 1));
    append_rows(content, blocks);
    append_rows(content, instrs);
    append_rows(content, sites);
    trace_chunk_t header{};
    header.kind = TRACE_CHUNK_CODE;
    append(header, content);
    blocks_written_ = blocks_.size();
    instrs_written_ = instrs_.size();
    sites_written_ = sites_.size();
}

void TraceMaker::write_chunk(std::uint32_t number) {
    if (number == number_) encode();
    write_code();
    Thread& thread = threads_[number];
    trace_chunk_t header{};
    header.kind = TRACE_CHUNK_RECORDS;
    header.thread = header.slot = number;
    header.first_instruction = thread.executed;
    header.instructions = thread.in_chunk;
    header.records = thread.encoder.records();
    if (header.records == 0) return;
    thread.executed += std::exchange(thread.in_chunk, 0);
    append(header, thread.encoder.take());
}

void TraceMaker::finish() {
    close_block();
    for (const auto& [number, thread] : threads_) write_chunk(number);
    trace_image_end_t end{};
    end.size = sizeof end;
    end.state = TRACE_IMAGE_ENDED;
    end.threads = static_cast<std::uint32_t>(threads_.size());
    end.parts = parts_;
    trace_chunk_t header{};
    header.kind = TRACE_CHUNK_END;
    append(header, std::as_bytes(std::span(&end, 1)));
}

}  // namespace assay::tracing
