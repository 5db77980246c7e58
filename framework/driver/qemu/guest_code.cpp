#include "framework/driver/qemu/guest_code.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cstring>

namespace assay::qemu {
namespace {

bool is_x86(const isa::Architecture& architecture) {
    return architecture.describe == isa::describe_x86 ||
           architecture.describe == isa::describe_i386;
}

}  // namespace

GuestBlock* GuestCode::block_of(std::span<const Piece> instructions) {
    std::vector<std::uint8_t> bytes;
    for (const Piece& piece : instructions)
        bytes.insert(bytes.end(), piece.bytes.begin(), piece.bytes.end());
    std::vector<GuestBlock*>& known = blocks_by_pc_[instructions.front().pc];
    const auto same = std::find_if(known.begin(), known.end(), [&](const GuestBlock* block) {
        return block->parts.size() == instructions.size() && block->bytes == bytes;
    });
    if (same != known.end()) return *same;
    if (tables_.tables_full()) return nullptr;
    GuestBlock* const added = add_block(instructions);
    added->bytes = std::move(bytes);
    added->handler = handlers_.contains(added->pc);
    known.push_back(added);
    return added;
}

void GuestCode::name_functions() {
    const auto& names = tables_.spec().regions.functions;
    functions_ = driver::NamedFunctions({names, strnlen(names, sizeof names)});
}

void GuestCode::mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                       const std::string& path) {
    tables_.mapped(start, end, offset, path);
    landing_pads_.map(start, end, offset, path);
    if (functions_.empty()) return;
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    functions_.mapped(start, end, offset, descriptor);
    close(descriptor);
}

void GuestCode::unmapped(std::uint64_t start, std::uint64_t end) {
    tables_.unmapped(start, end);
    landing_pads_.unmap(start);
    functions_.unmapped(start, end);
}

void GuestCode::note_handler(std::uint64_t pc) {
    if (!handlers_.insert(pc).second) return;
    const auto known = blocks_by_pc_.find(pc);
    if (known == blocks_by_pc_.end()) return;
    for (GuestBlock* const block : known->second)
        __atomic_store_n(&block->handler, true, __ATOMIC_RELAXED);
}

bool GuestCode::is_incomplete(const Piece& piece) const {
    isa::Instruction described;
    return is_x86(architecture_) && !architecture_.describe(piece.bytes, described);
}

bool GuestCode::may_be_incomplete(const Piece& piece) const {
    constexpr std::uint64_t kLongest = 15, kPage = 4096;
    return is_x86(architecture_) && piece.pc % kPage + kLongest > kPage;
}

// x86-64 code of 16 and 32 bits is below 4 GiB.
bool GuestCode::is_of_unknown_mode(std::uint64_t pc) const {
    return is_machine_ && architecture_.elf == isa::kX86 && pc >> 32 == 0;
}

bool GuestCode::describe(const Piece& piece, isa::Instruction& described) const {
    if (is_of_unknown_mode(piece.pc)) {
        isa::describe_x86_flow(piece.bytes, described);
        return false;
    }
    return architecture_.describe != nullptr && architecture_.describe(piece.bytes, described);
}

// A translation can begin between a condition and the instructions that depend on it.
std::vector<std::span<const GuestCode::Piece>> GuestCode::divide(std::span<Piece> instructions,
                                                                 bool faults_anywhere) {
    constexpr std::size_t kLongest = 255;
    std::vector<std::span<const Piece>> parts;
    std::size_t begin = 0;
    unsigned followers = 0;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
        Piece& piece = instructions[i];
        isa::Instruction described;
        const bool known = !faults_anywhere || describe(piece, described);
        const bool may_fault =
            faults_anywhere && (described.operand_count != 0 || described.may_fault);
        const bool next_may_not_be = faults_anywhere && i + 2 == instructions.size() &&
                                     may_be_incomplete(instructions.back());
        if (followers != 0) conditional_.insert(piece.pc);
        piece.conditional = conditional_.contains(piece.pc);
        followers = std::max<unsigned>(followers, 1) - 1;
        if (described.conditional_followers != 0) followers = described.conditional_followers;
        if (i + 1 < instructions.size() && i + 1 - begin < kLongest && known && !may_fault &&
            !next_may_not_be && !functions_.begins_at(instructions[i + 1].pc))
            continue;
        parts.push_back(instructions.subspan(begin, i + 1 - begin));
        begin = i + 1;
    }
    return parts;
}

GuestBlock* GuestCode::add_block(std::span<const Piece> instructions) {
    GuestBlock& block = blocks_.emplace_back();
    block.index = tables_.next_block();
    block.pc = instructions.front().pc;
    block.end = instructions.back().pc + instructions.back().bytes.size();
    block.instr_count = static_cast<std::uint32_t>(instructions.size());
    block.enters_function = functions_.begins_at(block.pc);
    block.is_user = is_user(block.pc);
    if (block.is_user && user_pc_ == 0) __atomic_store_n(&user_pc_, block.pc, __ATOMIC_RELAXED);
    if (tables_.captures(trace::kCaptureBlocks)) {
        block.site = tables_.next_site();
        tables_.add_site(tables_.next().instr, 0, TRACE_SITE_BLOCK, 0);
    }
    last_line_ = UINT64_MAX;
    open_code_ = nullptr;
    for (const Piece& piece : instructions) add_instruction(piece, block);
    close_code();
    if (tables_.captures(trace::kCaptureCalls))
        add_call_sites(block.last, tables_.next().instr - 1);
    block.last.site = branch_site(block.last.flags, tables_.next().instr - 1);
    if (tables_.captures(trace::kCaptureContexts)) add_context_word(instructions, block);
    if (tables_.captures(trace::kCaptureContexts) || tables_.captures(trace::kCaptureCalls) ||
        !functions_.empty())
        block.lands = landing_pads_.calls(block.pc);
    block.fetch = block.parts.front().fetch;
    if (block.fetch != nullptr) block.fetch->block = block.index;
    tables_.add_block(instructions.front().pc);
    tables_.publish();
    if (block.index == 0 && tables_.captures(trace::kCaptureIntervals))
        for (const unsigned kind :
             {TRACE_SITE_BLOCK_COUNT, TRACE_SITE_BLOCK_CORRECTION, TRACE_SITE_INTERVAL})
            tables_.driver_site(0, kind);
    if (block.index == 0 && trace::has_bursts(tables_.spec().regions))
        for (const unsigned kind : {TRACE_SITE_BLOCK_COUNT, TRACE_SITE_BLOCK_MISPREDICTIONS,
                                    TRACE_SITE_BURST, TRACE_SITE_INTERVAL})
            tables_.driver_site(0, kind);
    if (block.index == 0 && trace::tells_contexts(tables_.spec()))
        tables_.driver_site(0, TRACE_SITE_CONTEXT);
    return &block;
}

void GuestCode::add_instruction(const Piece& piece, GuestBlock& block) {
    isa::Instruction described;
    GuestBlock::Part& part = block.parts.emplace_back();
    part.known = describe(piece, described);
    if (piece.conditional && described.operand_count != 0) described.flags |= TRACE_INSTR_VARIABLE;
    constexpr unsigned kLeads = TRACE_INSTR_INDIRECT | TRACE_INSTR_CALL | TRACE_INSTR_RETURN;
    if (piece.conditional && (described.is_direct || described.flags & kLeads))
        described.flags |= TRACE_INSTR_CONDITIONAL;
    part.clears_line = described.clears_line;
    if (part.clears_line && cleared_bytes_ != 0) described.add(TRACE_SITE_WRITE, cleared_bytes_);
    trace_instr_t row{};
    row.pc = piece.pc;
    row.length = static_cast<std::uint8_t>(piece.bytes.size());
    row.flags = described.flags;
    row.opcode = described.opcode;
    std::memcpy(row.bytes, piece.bytes.data(), std::min(piece.bytes.size(), sizeof row.bytes));
    for (unsigned i = described.operand_count; i-- > 0;)
        if (described.operands[i].kind != TRACE_SITE_READ)
            row.reserved = static_cast<std::uint8_t>(
                std::min<unsigned>(described.operands[i].bytes, UINT8_MAX));
    const std::uint32_t instr = tables_.next().instr;
    tables_.add_instr(row);
    block.last.pc = piece.pc;
    block.last.flags = described.flags;
    block.last.ends_handler = described.ends_handler;
    block.last.target =
        !described.is_direct ? 0 : piece.pc + static_cast<std::uint64_t>(described.distance);
    if (tables_.captures(trace::kCaptureCode)) add_code(piece, instr, part);
    if (tables_.captures(trace::kCaptureFetches)) add_fetch(piece, instr, part);
    if (tables_.captures(trace::kCaptureReferences))
        add_references(described, instr, piece.pc, part);
    if (part.operation != nullptr) close_code();
}

void GuestCode::add_references(const isa::Instruction& described, std::uint32_t instr,
                               std::uint64_t pc, GuestBlock::Part& part) {
    if (part.known && described.operand_count == 0) return;
    Operation& operation = operations_.emplace_back();
    part.operation = &operation;
    operation.pc = pc;
    operation.instr = instr;
    operation.address_register = described.address_register;
    operation.operand_count = described.operand_count;
    if (!part.known) return;
    operation.site = tables_.next_site();
    operation.variable = described.flags & TRACE_INSTR_VARIABLE;
    operation.bytes = described.operands[0].bytes;
    operation.writes = described.operands[0].kind != TRACE_SITE_READ;
    std::copy(std::begin(described.operands), std::end(described.operands), operation.operands);
    for (unsigned i = 0; i < described.operand_count; ++i)
        tables_.add_site(instr, described.operands[i].bytes, described.operands[i].kind, i);
    if (operation.variable) tables_.add_site(instr, 0, TRACE_SITE_COUNT, 0);
}

// The first kind of reference becomes the one that callbacks handle quickly.
const Operation::Seen* GuestCode::seen(Operation& operation, std::uint32_t info, unsigned bytes,
                                       bool writes) {
    if (architecture_.describe != nullptr && !is_of_unknown_mode(operation.pc)) return nullptr;
    for (const Operation::Seen& each : operation.seen)
        if (each.info == info) return &each;
    const std::uint32_t site = tables_.next_site();
    tables_.add_site(operation.instr, bytes, writes ? TRACE_SITE_WRITE : TRACE_SITE_READ,
                     static_cast<unsigned>(operation.seen.size()));
    tables_.publish();
    operation.seen.push_back({info, site, static_cast<std::uint16_t>(bytes), writes});
    if (operation.seen.size() == 1) {
        operation.site = site;
        operation.bytes = static_cast<std::uint16_t>(bytes);
        operation.writes = writes;
        __atomic_store_n(&operation.whole, info, __ATOMIC_RELEASE);
    }
    return &operation.seen.back();
}

void GuestCode::add_code(const Piece& piece, std::uint32_t instr, GuestBlock::Part& part) {
    if (open_code_ == nullptr) open_code_ = part.code = &code_fetches_.emplace_back();
    const std::uint64_t line = tables_.spec().code_line;
    for (std::uint64_t at = piece.pc, end = at + piece.bytes.size(); at < end;) {
        const std::uint64_t next = std::min(end, (at / line + 1) * line);
        std::vector<CodeFetches::Piece>& pieces = open_code_->pieces;
        if (pieces.empty() || pieces.back().pc / line != at / line)
            pieces.push_back({at, instr, 0, 0});
        pieces.back().bytes += static_cast<std::uint32_t>(next - at);
        at = next;
    }
}

void GuestCode::close_code() {
    if (open_code_ == nullptr) return;
    for (CodeFetches::Piece& piece : open_code_->pieces) {
        piece.site = tables_.next_site();
        tables_.add_site(piece.instr, piece.bytes, TRACE_SITE_CODE, 0);
    }
    open_code_ = nullptr;
}

void GuestCode::add_call_sites(GuestBlock::Last& last, std::uint32_t instr) {
    const auto add = [&](unsigned kind) {
        tables_.add_site(instr, 0, kind, 0);
        return tables_.next_site() - 1;
    };
    if (last.flags & TRACE_INSTR_CALL) {
        last.call_site = add(TRACE_SITE_CALL);
        last.target_site = add(TRACE_SITE_TARGET);
    } else if (last.flags & (TRACE_INSTR_RETURN | TRACE_INSTR_INDIRECT)) {
        last.return_site = add(TRACE_SITE_RETURN);
    }
}

void GuestCode::add_context_word(std::span<const Piece> instructions, GuestBlock& block) {
    std::vector<std::uint8_t> code;
    for (const Piece& piece : instructions)
        code.insert(code.end(), piece.bytes.begin(), piece.bytes.end());
    const std::uint64_t range = trace::range_of(block.pc);
    const std::uint32_t word =
        tables_.context_words().of_block(tables_.spec(), range, block.pc, code);
    block.context_word = static_cast<std::uint16_t>(word);
    tables_.set_context_word(block.index, word);
}

std::uint32_t GuestCode::branch_site(std::uint8_t flags, std::uint32_t instr) {
    const std::uint32_t wanted =
        tables_.captures(trace::kCaptureBranches) ? tables_.spec().branches : 0;
    const bool is_direct_call = flags & TRACE_INSTR_CALL && !(flags & TRACE_INSTR_INDIRECT);
    if (!((flags & TRACE_INSTR_CONDITIONAL && wanted & TRACE_CONDITIONAL_BRANCHES) ||
          (flags & TRACE_INSTR_INDIRECT && wanted & TRACE_INDIRECT_BRANCHES) ||
          (is_direct_call && wanted & TRACE_DIRECT_CALLS) ||
          (flags & TRACE_INSTR_RETURN && wanted & TRACE_RETURNS)))
        return GuestBlock::kNoSite;
    const std::uint32_t site = tables_.next_site();
    tables_.add_site(instr, 0, TRACE_SITE_BRANCH, 0);
    return site;
}

// Without a filter, each instruction has a check.
void GuestCode::add_fetch(const Piece& piece, std::uint32_t instr, GuestBlock::Part& part) {
    const trace::Filter& filter = tables_.spec().fetch;
    if (filter.sets == 0) {
        part.fetch = &fetches_.emplace_back(Fetch{piece.pc, tables_.next_site()});
    } else {
        const std::uint64_t first = piece.pc / filter.line_bytes;
        const std::uint64_t last = (piece.pc + piece.bytes.size() - 1) / filter.line_bytes;
        const std::uint64_t before = std::exchange(last_line_, last);
        if (last == before) return;
        part.fetch = &fetches_.emplace_back(
            Fetch{piece.pc, tables_.next_site(), line_number(first), line_number(last)});
    }
    tables_.add_site(instr, static_cast<unsigned>(piece.bytes.size()), TRACE_SITE_FETCH, 0);
}

// Numbers are small, begin with 1, and belong to the same set as the line.
std::uint32_t GuestCode::line_number(std::uint64_t line) {
    const auto known = line_numbers_.find(line);
    if (known != line_numbers_.end()) return known->second;
    const std::uint32_t sets = tables_.spec().fetch.sets;
    lines_of_set_.resize(sets, 1);
    const std::uint64_t set = line % sets;
    const std::uint32_t number = lines_of_set_[set]++ * sets + static_cast<std::uint32_t>(set);
    line_numbers_.emplace(line, number);
    return number;
}

}  // namespace assay::qemu
