#include "tools/check_plugin/synthetic_trace.h"

#include "assay/client.h"
#include "framework/x86/decoder.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace assay::check {
namespace {

using Bytes = std::initializer_list<std::uint8_t>;

// Instructions of every kind that profilers treat specially.
const std::array<std::vector<std::uint8_t>, 18> kInstructions{
    Bytes{0x55},                                // push rbp
    Bytes{0x48, 0x89, 0xe5},                    // mov rbp, rsp
    Bytes{0x48, 0x8b, 0x07},                    // mov rax, [rdi]
    Bytes{0x48, 0x89, 0x06},                    // mov [rsi], rax
    Bytes{0x48, 0x83, 0x07, 0x01},              // add qword [rdi], 1
    Bytes{0x8a, 0x07},                          // mov al, [rdi]
    Bytes{0xf3, 0x0f, 0x10, 0x07},              // movss xmm0, [rdi]
    Bytes{0x0f, 0x10, 0x07},                    // movups xmm0, [rdi]
    Bytes{0xc5, 0xfc, 0x11, 0x0e},              // vmovups [rsi], ymm1
    Bytes{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x07},  // vmovups zmm0, [rdi]
    Bytes{0xc4, 0xe2, 0x65, 0x90, 0x0c, 0x97},  // vpgatherdd ymm1, [rdi + ymm2*4], ymm3
    Bytes{0xf3, 0xa4},                          // rep movsb
    Bytes{0xf3, 0xa6},                          // repe cmpsb
    Bytes{0x48, 0x89, 0xfc},                    // mov rsp, rdi
    Bytes{0xe8, 0x00, 0x00, 0x00, 0x00},        // call
    Bytes{0xff, 0x10},                          // call [rax]
    Bytes{0x75, 0xfe},                          // jne
    Bytes{0xc3},                                // ret
};
constexpr std::uint64_t kHeap = 0x7f0000001000, kStack = 0x7ffc00000000;
constexpr std::uint8_t kUnknownKind = 250;
constexpr std::uint32_t kContexts = 200;

}  // namespace

SyntheticTrace::SyntheticTrace() {
    addresses_.map(0x401000, 0x402000, 0x1000, "/usr/bin/synthetic");
    contexts_.push_back({0, 0, 0, 0});
    for (std::uint32_t i = 1; i < kContexts; ++i)
        contexts_.push_back({0x401000 + i, 0x401100 + i, i / 2,
                             i % 16 == 0 ? std::uint32_t{TRACE_CONTEXT_SIGNAL} : 0});
    markers_ = {{0, ASSAY_BEGIN_PHASE, 0, 0, "phase", ""},
                {1, ASSAY_REGISTER_REGION, kHeap, 4096, "label", "owner"},
                {1, ASSAY_REGISTER_REGION, kHeap + 64, 1 << 30, "", ""},
                {1, 1'000'000, 0, 0, "", ""},
                {2, ASSAY_UNREGISTER_REGION, 12345, 0, "", ""},
                {2, ASSAY_END_PHASE, 0, 0, "another phase", ""}};
}

std::uint64_t SyntheticTrace::random() {
    // xorshift64, Marsaglia 2003.
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
}

void SyntheticTrace::add_code(std::uint64_t pc) {
    constexpr std::size_t kShared = kInstructions.size() - 1;
    const auto add_block = [&](std::size_t first, std::uint64_t at) {
        const auto block = static_cast<std::uint32_t>(blocks_.size());
        const auto first_instr = static_cast<std::uint32_t>(instrs_.size());
        blocks_.push_back({at, first_instr, 0});
        for (std::size_t i = first; i < kInstructions.size(); ++i)
            add_instr(kInstructions[i], at, block);
        blocks_.back().instr_count = static_cast<std::uint32_t>(instrs_.size()) - first_instr;
    };
    add_block(0, pc);
    add_block(kShared, instrs_.back().pc);
}

void SyntheticTrace::add_instr(std::span<const std::uint8_t> bytes, std::uint64_t& pc,
                               std::uint32_t block) {
    native::Decoder decoder;
    native::Instruction decoded;
    decoder.decode(bytes, pc, decoded);
    const native::Form& form = *decoded.form;
    trace_instr_t instr{};
    instr.pc = pc;
    instr.block = block;
    instr.length = form.length;
    instr.flags = form.trace_flags;
    instr.opcode = form.opcode;
    std::memcpy(instr.bytes, bytes.data(), bytes.size());
    instrs_.push_back(instr);
    pc += form.length;

    if (blocks_.back().first_instr + 1 == instrs_.size()) {
        add_site(TRACE_SITE_BLOCK, 0, 0);
        add_site(TRACE_SITE_BLOCK_LEFT, 0, 0);
    }
    add_site(TRACE_SITE_FETCH, form.length, 0);
    for (std::uint8_t i = 0; i < form.reference_count; ++i)
        add_site(form.references[i].kind, form.references[i].bytes, i);
    if (instr.flags & TRACE_INSTR_VARIABLE) {
        if (form.reference_count == 0) add_site(TRACE_SITE_READ, 4, 0);
        add_site(TRACE_SITE_COUNT, 0, 0);
    }
    // Adds more values than one profiler requests. A profiler also sees the values of others,
    // including wide ones.
    const auto add_value = [&](trace_value_t value) {
        add_site(TRACE_SITE_VALUE, 8, trace::value_byte(value));
        const bool stored = (value & ~trace_value_t{TRACE_BEFORE}) == TRACE_STORED;
        for (unsigned at = 8; stored && at < form.references[0].bytes; at += 8)
            add_site(TRACE_SITE_VALUE_REST, 8, trace::value_byte(value));
    };
    for (trace_value_t value = TRACE_NONE; value <= TRACE_LATENCY; ++value) {
        add_value(value);
        if (value != TRACE_NONE) add_value(value | TRACE_BEFORE);
    }
    for (trace_value_t i = 0; i < 16; ++i)
        add_site(TRACE_SITE_VALUE, 8, trace::value_byte(TRACE_GPR0 + i));
    if (instr.flags & TRACE_INSTR_CALL) add_site(TRACE_SITE_CALL, 0, 0);
    if (instr.flags & TRACE_INSTR_CALL && instr.flags & TRACE_INSTR_INDIRECT)
        add_site(TRACE_SITE_TARGET, 0, 0);
    if (instr.flags & TRACE_INSTR_RETURN) add_site(TRACE_SITE_RETURN, 0, 0);
    for (const std::uint8_t kind :
         {std::uint8_t{TRACE_SITE_STACK}, std::uint8_t{TRACE_SITE_SIGNAL},
          std::uint8_t{TRACE_SITE_INTERRUPTED}, std::uint8_t{TRACE_SITE_SYSTEM_CALL},
          std::uint8_t{TRACE_SITE_SYSTEM_CALL_RESULT}, std::uint8_t{TRACE_SITE_SYSTEM_CALL_TIME},
          kUnknownKind})
        if (form.opcode == TRACE_OPCODE(0, 0x89)) add_site(kind, 0, 0);
}

void SyntheticTrace::add_site(std::uint8_t kind, std::uint16_t bytes, std::uint8_t operand) {
    sites_.push_back({static_cast<std::uint32_t>(instrs_.size() - 1), bytes, kind, operand});
}

bool SyntheticTrace::is_data(std::uint32_t site) const {
    return sites_[site].kind >= TRACE_SITE_READ && sites_[site].kind <= TRACE_SITE_MODIFY;
}

TrialTrace::Buffer SyntheticTrace::ordinary(std::uint32_t thread, std::size_t count) {
    Buffer buffer{thread, {}, {}, markers_, {}};
    for (std::uint32_t i = 0; buffer.records.size() < count; ++i) {
        const auto site = static_cast<std::uint32_t>(i % sites_.size());
        std::uint64_t value = kHeap + 8 * (random() % 4096);
        switch (sites_[site].kind) {
            case TRACE_SITE_FETCH:
            case TRACE_SITE_INTERRUPTED:
                value = instrs_[sites_[site].instr].pc;
                break;
            case TRACE_SITE_TARGET:
                value = instrs_.front().pc;
                break;
            case TRACE_SITE_BLOCK:
                value = 0;
                break;
            case TRACE_SITE_BLOCK_LEFT:
                value = blocks_[instrs_[sites_[site].instr].block].instr_count;
                break;
            case TRACE_SITE_COUNT:
                value = 1;  // the only reference of each preceding operand
                break;
            case TRACE_SITE_SYSTEM_CALL:
                value = random() % 512;
                break;
            case TRACE_SITE_CALL:
            case TRACE_SITE_RETURN:
            case TRACE_SITE_STACK:
            case TRACE_SITE_SIGNAL:
                value = kStack - 16 * (random() % 64);
                break;
            default:
                break;
        }
        const bool goes_on = with_runs_ && is_data(site);
        const auto left_out = goes_on ? static_cast<std::uint32_t>(random() % 3) : 0;
        buffer.records.push_back({value, site, left_out});
        buffer.contexts.push_back(i / 64 % kContexts);
    }
    return buffer;
}

TrialTrace::Buffer SyntheticTrace::strange(std::uint32_t thread, std::size_t count) {
    constexpr std::array<std::uint64_t, 10> kEdges{0,
                                                   1,
                                                   63,
                                                   4095,
                                                   0x7fff'ffff'ffff,
                                                   0x8000'0000'0000,
                                                   0xffff'8000'0000'0000,
                                                   UINT64_MAX - 63,
                                                   UINT64_MAX - 1,
                                                   UINT64_MAX};
    Buffer buffer{thread, {}, {}, markers_, {}};
    for (std::size_t i = 0; i < count; ++i) {
        const auto site = static_cast<std::uint32_t>(random() % sites_.size());
        std::uint64_t value = random() % 2 ? kEdges[random() % kEdges.size()] : random();
        const bool ticks =
            sites_[site].kind == TRACE_SITE_VALUE && sites_[site].operand == TRACE_LATENCY;
        if (ticks || sites_[site].kind == TRACE_SITE_COUNT) value %= 1 << 20;
        const bool aux = sites_[site].kind == TRACE_SITE_COUNT ||
                         sites_[site].kind == TRACE_SITE_SIGNAL || (with_runs_ && is_data(site));
        buffer.records.push_back(
            {value, site, aux ? static_cast<std::uint32_t>(random() % 65) : 0});
        buffer.contexts.push_back(static_cast<std::uint32_t>(random() % kContexts));
    }
    return buffer;
}

std::vector<std::uint64_t> SyntheticTrace::counts(std::uint64_t times) const {
    return std::vector<std::uint64_t>(instrs_.size(), times);
}

}  // namespace assay::check
