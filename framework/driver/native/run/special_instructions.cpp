#include "framework/driver/native/run/special_instructions.h"

#include "assay/client.h"
#include "framework/driver/native/machine/target_memory.h"

#include <Zydis/Zydis.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string>

namespace assay::native {

bool identify(Context& context, const Instruction& instruction, const ShownProcessor& processor) {
    std::uint64_t(&gpr)[16] = context.gpr;
    const auto index = static_cast<std::uint32_t>(gpr[RCX]);
    if (instruction.form->mnemonic == ZYDIS_MNEMONIC_CPUID) {
        const auto leaf = static_cast<std::uint32_t>(gpr[RAX]);
        const CpuidAnswer answer = processor.cpuid(leaf, index);
        gpr[RAX] = answer.eax;
        gpr[RBX] = answer.ebx;
        gpr[RCX] = answer.ecx;
        gpr[RDX] = answer.edx;
        return true;
    }
    // ecx 0 selects XCR0. ecx 1 selects the components of XCR0 that are in use; a processor may
    // always report all of them (SDM volume 1, 13.6).
    if (index > (processor.has_xgetbv_of_used() ? 1U : 0U)) return false;
    gpr[RAX] = processor.xcr0();
    gpr[RDX] = 0;
    return true;
}

namespace {

struct Marker {
    std::uint64_t operation;
    std::array<std::uint64_t, 5> arguments;
};

// The string at that address, as far as it can be read, with a final zero byte.
std::string read_text(std::uint64_t address) {
    constexpr std::size_t kLongest = 1024;
    std::string text;
    char c = 0;
    while (text.size() < kLongest && address != 0 && read_target(address++, &c, 1) && c != 0)
        text += c;
    return text + '\0';
}

// Notes a marker that only profilers need. False if it is another one.
bool note(ThreadTrace& trace, const Marker& marker) {
    const auto& arguments = marker.arguments;
    switch (marker.operation) {
        case ASSAY_BEGIN_PHASE:
        case ASSAY_END_PHASE:
            trace.note(marker.operation, arguments, read_text(arguments[0]));
            return true;
        case ASSAY_REGISTER_REGION:
            trace.note(marker.operation, arguments,
                       read_text(arguments[2]) + read_text(arguments[3]));
            return true;
        case ASSAY_UNREGISTER_REGION:
            trace.note(marker.operation, arguments, "");
            return true;
        default:
            return false;
    }
}

}  // namespace

bool do_marker(Context& context, ThreadTrace& trace, Regions& regions) {
    Marker marker{};
    const bool readable = read_target(context.gpr[RAX], &marker, sizeof marker);
    const bool starts = readable && marker.operation == ASSAY_START_COLLECTING;
    const bool switches = starts || (readable && marker.operation == ASSAY_STOP_COLLECTING);
    const bool known =
        switches || (readable && (marker.operation == ASSAY_IS_PROFILING || note(trace, marker)));
    context.gpr[RDX] = known ? 1 : 0;
    return switches && regions.set_collecting(starts);
}

namespace {

// Bytes that are compared at once. Few, because most comparisons end early.
constexpr std::uint64_t kMostCompared = 256;
constexpr std::uint64_t kEndOfOffsets32 = std::uint64_t{1} << 32;
constexpr std::uint64_t kDirection = 0x400;

bool is_read(const MemoryReference& reference) {
    return reference.kind == TRACE_SITE_READ;
}

}  // namespace

bool compares(const Form& form) {
    const unsigned opcode = form.opcode & 0xff;
    return opcode == 0xa6 || opcode == 0xa7 || opcode == 0xae || opcode == 0xaf;
}

RepeatedString::RepeatedString(const Context& context, const Instruction& instruction,
                               const CodeWatch& watch, DriverLock& lock)
    : context_(context),
      watch_(watch),
      lock_(lock),
      form_(*instruction.form),
      until_equal_(std::find(instruction.bytes, instruction.bytes + form_.opcode_offset, 0xf2) !=
                   instruction.bytes + form_.opcode_offset),
      bytes_(form_.references[0].bytes),
      step_(static_cast<std::int64_t>(context.rflags & kDirection ? -bytes_ : bytes_)),
      count_(context.gpr[RCX]) {
    if (form_.references[0].address32) count_ = static_cast<std::uint32_t>(count_);
}

std::optional<RepeatedString::Stretch> RepeatedString::next() {
    if (done_ == count_ || end_ != End::kCount) return {};
    Stretch stretch;
    stretch.iterations = count_ - done_;
    for (unsigned r = 0; r < form_.reference_count; ++r) {
        stretch.addresses[r] = address_of(form_.references[r]);
        stretch.iterations = std::min(stretch.iterations, iterations_in_page(form_.references[r]));
    }
    if (compares(form_)) {
        compare(stretch.iterations);
    } else {
        // The instruction reads before it writes.
        for (const bool reads : {true, false})
            for (unsigned r = 0; r < form_.reference_count && end_ == End::kCount; ++r)
                if (is_read(form_.references[r]) == reads && !is_accessible(form_.references[r]))
                    end_ = End::kFault;
        if (end_ == End::kFault) stretch.iterations = 1;
    }
    done_ += stretch.iterations;
    return stretch;
}

// The offset of the next iteration.
std::uint64_t RepeatedString::offset_of(const MemoryReference& reference) const {
    const std::uint64_t offset =
        context_.gpr[reference.base] + static_cast<std::uint64_t>(step_) * done_;
    return reference.address32 ? static_cast<std::uint32_t>(offset) : offset;
}

std::uint64_t RepeatedString::address_of(const MemoryReference& reference) const {
    return offset_of(reference) + context_.segment_base(reference.segment);
}

// The number of iterations from the next one on that lie in the same page. A 32-bit offset that
// wraps also ends them. One iteration may lie in two pages.
std::uint64_t RepeatedString::iterations_in_page(const MemoryReference& reference) const {
    const auto before = [this](std::uint64_t at, std::uint64_t end) {
        return step_ < 0 ? at / bytes_ + 1 : std::max<std::uint64_t>((end - at) / bytes_, 1);
    };
    const std::uint64_t in_page = address_of(reference) % kPage;
    if (in_page + bytes_ > kPage) return 1;
    const std::uint64_t iterations = before(in_page, kPage);
    if (!reference.address32) return iterations;
    return std::min(iterations, before(offset_of(reference), kEndOfOffsets32));
}

// Checks the next iteration, and with it the other iterations in the same page.
bool RepeatedString::is_accessible(const MemoryReference& reference) const {
    const std::uint64_t first = address_of(reference), last = first + bytes_ - 1;
    const auto accessible = [&](std::uint64_t address) {
        unsigned char byte;
        return is_read(reference) ? read_target(address, &byte, 1) : is_writable(address);
    };
    return accessible(first) && (first / kPage == last / kPage || accessible(last));
}

// True also for code pages that the driver protects: the first write ends the protection.
bool RepeatedString::is_writable(std::uint64_t address) const {
    if (touch_target(address)) return true;
    const std::lock_guard guard(lock_);
    return watch_.guards(address) || touch_target(address);
}

bool RepeatedString::read(const MemoryReference& reference, std::uint64_t iterations,
                          unsigned char* to) const {
    std::uint64_t from = address_of(reference);
    if (step_ < 0) from -= (iterations - 1) * bytes_;
    return read_target(from, to, iterations * bytes_);
}

// Compares up to `iterations` iterations, which lie in the same pages, and at most kMostCompared
// bytes. Sets `iterations` to the number that the instruction executes.
void RepeatedString::compare(std::uint64_t& iterations) {
    unsigned char memory[2][kMostCompared];
    iterations = std::min(iterations, kMostCompared / bytes_);
    for (unsigned r = 0; r < form_.reference_count; ++r) {
        if (read(form_.references[r], iterations, memory[r])) continue;
        end_ = End::kFault;
        iterations = 1;
        return;
    }
    const bool scans = form_.reference_count == 1;
    const auto* const with =
        scans ? reinterpret_cast<const unsigned char*>(&context_.gpr[RAX]) : memory[1];
    std::uint64_t last = 0;
    switch (bytes_) {
        case 1:
            last = last_compared<std::uint8_t>(memory[0], with, scans, iterations);
            break;
        case 2:
            last = last_compared<std::uint16_t>(memory[0], with, scans, iterations);
            break;
        case 4:
            last = last_compared<std::uint32_t>(memory[0], with, scans, iterations);
            break;
        default:
            last = last_compared<std::uint64_t>(memory[0], with, scans, iterations);
            break;
    }
    if (last == 0) return;
    end_ = End::kComparison;
    iterations = last;
}

// The number of iterations up to the one that ends the comparison; 0 if none does. With
// `same_other`, `other` has one operand for all.
template <typename Unit>
std::uint64_t RepeatedString::last_compared(const unsigned char* one, const unsigned char* other,
                                            bool same_other, std::uint64_t iterations) const {
    for (std::uint64_t i = 0; i < iterations; ++i) {
        const std::uint64_t at = (step_ < 0 ? iterations - 1 - i : i) * sizeof(Unit);
        Unit a, b;
        std::memcpy(&a, one + at, sizeof a);
        std::memcpy(&b, same_other ? other : other + at, sizeof b);
        if ((a == b) == until_equal_) return i + 1;
    }
    return 0;
}

}  // namespace assay::native
