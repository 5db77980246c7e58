#include "tools/trace/check.h"

#include "framework/isa/architecture.h"
#include "tools/trace/trace.h"

#include <fmt/core.h>
#include <utility>

namespace assay::tracing {
namespace {

constexpr unsigned kBranchFlags =
    TRACE_INSTR_CONDITIONAL | TRACE_INSTR_INDIRECT | TRACE_INSTR_CALL | TRACE_INSTR_RETURN;

// Bytes that an emulator reads or writes by one reference.
constexpr unsigned kMostTogether = 64;

bool is_data(unsigned kind) {
    return kind == TRACE_SITE_READ || kind == TRACE_SITE_WRITE || kind == TRACE_SITE_MODIFY;
}

}  // namespace

// Signals are recorded with calls. The returns from them are natively system calls.
bool has_flow(const replay::ImageTrace& image) {
    return image.content().has(TRACE_RECORDED_CALLS) &&
           !image.content().has(TRACE_RECORDED_SOME_BLOCKS) &&
           (image.emulated() != nullptr || image.content().has(TRACE_RECORDED_SYSTEM_CALLS));
}

CheckedCode::CheckedCode(const replay::ImageTrace& image, bool has_code, Violations& violations)
    : image_(image),
      has_references_(image.content().has(TRACE_RECORDED_REFERENCES)),
      has_code_(has_code),
      has_all_jumps_(has_flow(image)),
      instrs_(image.instrs().size()) {
    look_at_blocks(violations);
    for (std::uint32_t i = 0; i < instrs_.size(); ++i) look_at(i, violations);
    look_at_sites(violations);
    std::uint32_t referring = 0;
    for (const Instr& instr : instrs_) {
        referring_.push_back(referring);
        referring +=
            instr.varies || (instr.references != Instr::kAnyNumber && instr.references != 0);
    }
    referring_.push_back(referring);
}

void CheckedCode::look_at(std::uint32_t number, Violations& violations) {
    const trace_instr_t& instr = image_.instrs()[number];
    Instr& code = instrs_[number];
    const isa::Architecture* const architecture =
        image_.emulated() ? image_.emulated() : isa::architecture_of(isa::kX86);
    isa::Instruction described;
    const bool known = has_code_ && architecture && architecture->describe &&
                       architecture->describe({instr.bytes, instr.length}, described);
    code.leads_anywhere = true;
    if (!known) return;
    const auto wrong = [&](std::string what) {
        violations.add(Rule::kCode, {std::move(what), {}, 0, number});
    };
    if (described.length != instr.length)
        return wrong(fmt::format("an instruction has {} bytes instead of {}", instr.length,
                                 described.length));
    // An instruction after Arm's IT is conditional, which its own bytes do not say.
    const unsigned by_others =
        image_.emulated() != nullptr ? TRACE_INSTR_CONDITIONAL & instr.flags : 0U;
    if (((described.flags | by_others) ^ instr.flags) & kBranchFlags)
        return wrong(
            fmt::format("the flags {:#x} of an instruction do not fit its bytes", instr.flags));
    code.varies = has_references_ && instr.flags & TRACE_INSTR_VARIABLE;
    if (has_references_ && !described.clears_line) code.references = described.operand_count;
    if (image_.emulated() != nullptr) {
        // An emulator saves the state of the processor in pieces.
        for (unsigned i = 0; i < described.operand_count; ++i)
            if (described.operands[i].bytes > kMostTogether) code.references = Instr::kAnyNumber;
        // Each iteration of a string instruction is an execution.
        if (described.flags & TRACE_INSTR_VARIABLE) code.target = instr.pc;
    }
    if (described.is_direct)
        code.target = instr.pc + static_cast<std::uint64_t>(described.distance);
    // A system call is made again after a signal that came before it.
    constexpr std::uint16_t kSystemCall = TRACE_OPCODE(1, 0x05);
    if (image_.emulated() == nullptr && instr.opcode == kSystemCall) code.target = instr.pc;
    code.leads_anywhere =
        !has_all_jumps_ || instr.flags & (TRACE_INSTR_INDIRECT | TRACE_INSTR_RETURN);
    code.leads_on = !described.is_direct || instr.flags & TRACE_INSTR_CONDITIONAL;
}

void CheckedCode::look_at_blocks(Violations& violations) const {
    for (const trace_block_t& block : image_.blocks()) {
        const std::uint32_t last = block.first_instr + block.instr_count - 1;
        for (std::uint32_t i = block.first_instr; i < last; ++i) {
            const trace_instr_t& instr = image_.instrs()[i];
            if (instr.pc + instr.length != image_.instrs()[i + 1].pc)
                violations.add(Rule::kCode,
                               {"an instruction does not follow the one before it in its block",
                                {},
                                0,
                                i + 1});
            if (instr.flags & kBranchFlags)
                violations.add(Rule::kCode,
                               {"a branch is not the last instruction of its block", {}, 0, i});
        }
    }
}

void CheckedCode::look_at_sites(Violations& violations) const {
    for (const trace_site_t& site : image_.sites()) {
        if (!is_data(site.kind)) continue;
        const trace_instr_t& instr = image_.instrs()[site.instr];
        const bool reads = site.kind != TRACE_SITE_WRITE, writes = site.kind != TRACE_SITE_READ;
        const bool fits = (!reads || instr.flags & TRACE_INSTR_LOAD) &&
                          (!writes || instr.flags & TRACE_INSTR_STORE) && site.bytes != 0;
        if (!fits)
            violations.add(Rule::kCode, {fmt::format("{} of {} bytes does not fit its instruction",
                                                     kind_name(site.kind), site.bytes),
                                         {},
                                         0,
                                         site.instr});
    }
}

}  // namespace assay::tracing
