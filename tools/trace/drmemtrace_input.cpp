#include "tools/trace/drmemtrace_input.h"

#include "framework/trace/segment_layout.h"

#include <elf.h>
#include <fmt/core.h>
#include <string_view>
#include <utility>

namespace assay::tracing::drmemtrace {
namespace {

constexpr isa::ElfKind kElfOfAarch64{EM_AARCH64, ELFCLASS64, ELFDATA2LSB};

// References beyond this number are taken for another execution of the same instruction.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

bool is_instruction(unsigned type) {
    return (type >= kInstr && type <= kReturn) || type == kSysenter || type == kTakenJump ||
           type == kUntakenJump;
}
bool is_prefetch(unsigned type) {
    return (type >= kFirstPrefetch && type <= kLastPrefetch) ||
           (type >= kFirstOtherPrefetch && type <= kLastOtherPrefetch);
}

std::uint8_t flags_of(unsigned type) {
    switch (type) {
        case kConditionalJump:
        case kTakenJump:
        case kUntakenJump:
            return TRACE_INSTR_CONDITIONAL;
        case kIndirectJump:
            return TRACE_INSTR_INDIRECT;
        case kDirectCall:
            return TRACE_INSTR_CALL;
        case kIndirectCall:
            return TRACE_INSTR_CALL | TRACE_INSTR_INDIRECT;
        case kReturn:
            return TRACE_INSTR_RETURN;
        default:
            return 0;
    }
}

}  // namespace

// --- The thread's instructions.

std::uint32_t Input::number_of(std::uint64_t thread) {
    const auto [known, is_new] =
        trace_.threads.try_emplace(thread, static_cast<std::uint32_t>(trace_.threads.size()));
    if (is_new && trace_.threads.size() > trace::kMaxThreads)
        reader_.fail(fmt::format("the trace has more than {} threads", trace::kMaxThreads));
    if (own_threads_.insert(thread).second && !is_new)
        reader_.fail(
            fmt::format("thread {} is also in another file: files of processors instead "
                        "of threads are not supported",
                        thread));
    return known->second;
}

// What comes next confirms the known successor, or something else has led there.
void Input::flush_before(std::uint64_t pc) {
    if (next_ == pc) next_.reset();
    flush();
}

void Input::flush() {
    if (!pending_) return;
    find_iterations();
    trace_.maker.switch_to(number_of(*thread_));
    trace_.maker.add(*pending_, references_);
    if (next_) trace_.maker.go_on_at(*next_);
    pending_.reset();
    next_.reset();
    references_.clear();
}

// An instruction with a variable number of references has as many iterations as fit its operands.
void Input::find_iterations() {
    if (!(pending_->flags & TRACE_INSTR_VARIABLE) || !pending_code_) return;
    const isa::Instruction& described = pending_code_->described;
    const std::size_t operands = described.operand_count;
    if (operands == 0 || references_.size() % operands != 0) return;
    for (std::size_t i = 0; i < references_.size(); ++i)
        if (references_[i].kind != described.operands[i % operands].kind ||
            references_[i].bytes != described.operands[i % operands].bytes)
            return;
    pending_->in_iteration = static_cast<std::uint8_t>(operands);
}

void Input::begin_program() {
    if (!thread_ || !process_) reader_.fail("an instruction before the thread and its process");
    if (trace_.header && *trace_.header != header_)
        reader_.fail(fmt::format(
            "version {} and file type {:#x}, but another file has version {} "
            "and file type {:#x}",
            header_.version, header_.type, trace_.header->version, trace_.header->type));
    if (trace_.process && *trace_.process != *process_)
        reader_.fail(
            fmt::format("process {}, but another file is of process {}: import the files "
                        "of each process alone",
                        *process_, *trace_.process));
    trace_.process = process_;
    if (std::exchange(trace_.header, header_)) return;
    if (header_.has_bytes() && (header_.type & (kX86 | kAarch64)) == 0)
        reader_.fail(fmt::format("file type {:#x} has encodings of an unknown instruction set",
                                 header_.type));
    TraceMaker::Program program;
    program.has_references = (header_.type & kInstructionsOnly) == 0;
    if (header_.has_bytes() && header_.type & kAarch64) program.elf = kElfOfAarch64;
    trace_.maker.describe(program);
}

void Input::begin(const Entry& entry) {
    const std::uint64_t pc = entry.value();
    if (entry.size == 0 || entry.size > kMostInstructionBytes)
        reader_.fail(fmt::format("an instruction of {} bytes, which must be 1 to {}", entry.size,
                                 kMostInstructionBytes));
    flush_before(pc);
    if (!std::exchange(is_checked_, true)) begin_program();
    const std::uint8_t flags = flags_of(entry.type);
    pending_ = {pc, static_cast<std::uint8_t>(entry.size), flags,
                entry.type == kDirectJump || flags != 0};
    use_code(entry);
    if (entry.type == kUntakenJump) next_ = pc + entry.size;
    if (entry.type == kTakenJump && pending_code_ && pending_code_->described.is_direct)
        next_ = pc + static_cast<std::uint64_t>(
                         static_cast<std::int64_t>(pending_code_->described.distance));
    if (flags & (TRACE_INSTR_INDIRECT | TRACE_INSTR_RETURN)) next_ = branch_target_;
    branch_target_.reset();
    rseq_aborts_ = false;
}

// The bytes of an instruction precede it when it is executed for the first time.
void Input::use_code(const Entry& entry) {
    pending_code_ = nullptr;
    const std::vector<std::uint8_t> encoding = std::exchange(encoding_, {});
    if (!header_.has_bytes()) return;
    if (!encoding.empty()) {
        if (encoding.size() != entry.size)
            reader_.fail(fmt::format("an instruction of {} bytes has an encoding of {} bytes",
                                     entry.size, encoding.size()));
        Code code;
        std::copy(encoding.begin(), encoding.end(), code.bytes.begin());
        const isa::ElfKind elf = header_.type & kAarch64 ? kElfOfAarch64 : isa::kX86;
        code.is_known = isa::architecture_of(elf)->describe(encoding, code.described) &&
                        code.described.length == entry.size;
        if (!code.is_known) code.described = {};
        code_.insert_or_assign(entry.value(), code);
    }
    const auto found = code_.find(entry.value());
    if (found == code_.end()) {
        if (header_.type & kKernelCode) return;  // it can lack encodings
        reader_.fail(fmt::format("no encoding of the instruction at {:#x}", entry.value()));
    }
    const Code& code = found->second;
    pending_->has_bytes = true;
    pending_->bytes = code.bytes;
    pending_->opcode = code.described.opcode;
    if (!code.is_known) return;
    constexpr unsigned kBranches =
        TRACE_INSTR_CONDITIONAL | TRACE_INSTR_INDIRECT | TRACE_INSTR_CALL | TRACE_INSTR_RETURN;
    pending_->flags = code.described.flags;
    // Only string instructions have opcodes of one byte and varying references.
    const bool is_string =
        code.described.flags & TRACE_INSTR_VARIABLE && code.described.opcode < 256;
    if (is_string) pending_->flags |= TRACE_INSTR_REPEATED;
    pending_->is_branch = pending_->is_branch || (code.described.flags & kBranches) != 0;
    pending_code_ = &code;
}

// --- Its references.

void Input::refer(const Entry& entry) {
    if (!pending_) reader_.fail("a reference before any instruction");
    if (entry.size == 0) reader_.fail("a reference of 0 bytes");
    const std::uint64_t address = entry.value();
    if (!references_.empty() && references_.front().kind == TRACE_SITE_VALUE) {
        references_.clear();
        ++trace_.left_out.line_operations;
    }
    if (references_.size() == kMostAtOnce) {
        const TraceMaker::Instruction again = *pending_;
        const auto next = std::exchange(next_, std::nullopt);
        flush();
        pending_ = again;
        next_ = next;
    }
    const auto is_same = [&](const Reference& each) {
        return each.kind == TRACE_SITE_READ && each.address == address && each.bytes == entry.size;
    };
    if (entry.type == kWrite && !(pending_->flags & TRACE_INSTR_VARIABLE) &&
        (!pending_code_ || pending_code_->modifies())) {
        const auto read = std::find_if(references_.begin(), references_.end(), is_same);
        if (read != references_.end()) {
            read->kind = TRACE_SITE_MODIFY;
            return;
        }
    }
    references_.push_back(
        {address, entry.size,
         static_cast<std::uint8_t>(entry.type == kRead ? TRACE_SITE_READ : TRACE_SITE_WRITE)});
}

// A prefetch or a flush. The instruction's bytes tell which one.
void Input::operate_on_line(const Entry& entry) {
    if (!pending_) reader_.fail("a prefetch or flush before any instruction");
    const bool is_recorded = pending_code_ && !(header_.type & kAarch64) && references_.empty() &&
                             !(pending_->flags & TRACE_INSTR_VARIABLE);
    if (!is_recorded) {
        ++trace_.left_out.line_operations;
        return;
    }
    references_.push_back({entry.value(), sizeof(std::uint64_t), TRACE_SITE_VALUE});
}

void Input::repeat(const Entry& entry) {
    if (!pending_ || pending_->pc != entry.value() || pending_->length != entry.size)
        return begin(entry);
    encoding_.clear();
}

// --- Records.

void Input::take_encoding(const Entry& entry) {
    // A synthetic encoding can be longer than the instruction.
    constexpr std::size_t kMostBytes = 32;
    if (entry.size == 0 || entry.size > entry.bytes.size() ||
        encoding_.size() + entry.size > kMostBytes)
        reader_.fail(
            fmt::format("an encoding of {} bytes after {} others", entry.size, encoding_.size()));
    encoding_.insert(encoding_.end(), entry.bytes.begin(), entry.bytes.begin() + entry.size);
}

void Input::take_file_type(std::uint64_t type) {
    const auto refuse = [&](std::string_view why) {
        reader_.fail(fmt::format("file type {:#x}: {}", type, why));
    };
    if (type & kFiltered) refuse("references or instructions were filtered out while tracing");
    if (type & k32Bits) refuse("traces of 32-bit programs are not supported");
    constexpr std::uint64_t kKnown =
        kInstructionsOnly | kAarch64 | kX86 | kEncodings | kSynthetic | kKernelCode | kOthers;
    if (type & ~kKnown) refuse(fmt::format("the bits {:#x} are unknown", type & ~kKnown));
    header_.type = type;
}

void Input::take_marker(const Entry& entry) {
    const std::uint64_t value = entry.value();
    switch (entry.size) {
        case kVersion:
            if (value < kOldestVersion || value > kLatestVersion)
                reader_.fail(fmt::format("version {} of drmemtrace; known are {} to {}", value,
                                         kOldestVersion, kLatestVersion));
            header_.version = value;
            return;
        case kFileType:
            return take_file_type(value);
        case kTimestamp:
            time_ = value;
            return;
        case kBranchTarget:
            branch_target_ = value;
            return;
        case kRseqAbort:
            rseq_aborts_ = true;
            return;
        case kKernelEvent:
            // After an abort, the value is that of the handler.
            if (pending_ && !next_ && value != 0 && !rseq_aborts_ &&
                header_.version >= kVersionOfKernelPc)
                next_ = value;
            return;
        case kSplitValue:
        case kFilterEndpoint:
            reader_.fail(
                fmt::format("marker {} belongs to raw or filtered traces, which are not "
                            "supported",
                            entry.size));
        default:
            if (entry.size > kLastKnownMarker) ++trace_.left_out.markers[entry.size];
    }
}

void Input::take(const Entry& entry) {
    if (has_ended_) reader_.fail("a record follows the footer");
    if (is_instruction(entry.type)) return begin(entry);
    if (is_prefetch(entry.type)) return operate_on_line(entry);
    switch (entry.type) {
        case kRead:
        case kWrite:
            return refer(entry);
        case kNoFetch:
            return repeat(entry);
        case kEncoding:
            return take_encoding(entry);
        case kInstrFlush:
        case kDataFlush:
            return operate_on_line(entry);
        case kMarker:
            return take_marker(entry);
        case kThread:
            if (thread_ && *thread_ != entry.value()) {
                flush();
                process_.reset();
            }
            thread_ = entry.value();
            is_checked_ = false;
            return;
        case kPid:
            process_ = entry.value();
            is_checked_ = false;
            return;
        case kThreadExit:
            return flush();
        case kFooter:
            flush();
            has_ended_ = true;
            return;
        case kHeader:
        case kInstrFlushEnd:
        case kDataFlushEnd:
            return;
        default:
            reader_.fail(
                fmt::format("type {} is unknown, or not one of post-processed traces", entry.type));
    }
}

// Records of the pending instruction, and of what interrupts it, can follow a timestamp.
bool Input::run(std::uint64_t until) {
    for (;;) {
        if (!held_) held_ = reader_.next();
        if (!held_) return false;
        if (time_ > until && is_instruction(held_->type)) {
            flush_before(held_->value());
            return true;
        }
        take(*std::exchange(held_, nullptr));
    }
}

}  // namespace assay::tracing::drmemtrace
