#include "framework/driver/native/trace/regions.h"

#include "framework/driver/native/load/elf_functions.h"
#include "framework/trace/object_sites.h"
#include "framework/x86/instruction.h"

#include <algorithm>
#include <cstring>

namespace assay::native {
namespace {

constexpr std::int64_t kNever = trace::kLongestCountdown;
constexpr std::uint64_t kOutside = 0;

}  // namespace

void Regions::initialise(const trace::Spec& spec) {
    const trace::Regions& wanted = spec.regions;
    functions_ = driver::NamedFunctions(
        {wanted.functions, strnlen(wanted.functions, sizeof wanted.functions)});
    collects_ = wanted.off_at_start == 0;
    from_ = wanted.from_instruction;
    to_ = wanted.to_instruction;
    in_range_ = from_ <= 1;
    always_counts_ = spec.objects != trace::Spec::kNoObjects;
    counts_ = always_counts_ || !in_range_ || to_ != 0;
    samples_ = trace::has_bursts(wanted);
}

void Regions::mapped(std::uint64_t start, std::uint64_t end, std::uint64_t offset,
                     const std::string& path) {
    if (!has_functions()) return;
    functions_.mapped(start, end, offset, OpenFile(path).descriptor());
}

void Regions::unmapped(std::uint64_t start, std::uint64_t end) {
    functions_.unmapped(start, end);
}

void Regions::begin(Context& context, bool first_thread) const {
    context.enters_above = kOutside;
    context.set_leaves_above();
    context.countdown = kNever;
    if (first_thread && (!in_range_ || to_ != 0))
        context.countdown = static_cast<std::int64_t>(in_range_ ? to_ : from_ - 1);
    context.countdown_begin = context.countdown;
}

bool Regions::set_collecting(bool wanted) {
    const bool changes = collects_ != wanted;
    collects_ = wanted;
    return changes;
}

void Regions::enter(Context& context) const {
    context.enters_above = context.gpr[RSP];
    context.set_leaves_above();
}

void Regions::leave_functions(Context& context) const {
    if (context.enters_above == kOutside || context.gpr[RSP] <= context.enters_above) return;
    context.enters_above = kOutside;
    context.set_leaves_above();
}

void Regions::reach(Context& context) {
    const auto remaining = static_cast<std::uint64_t>(context.countdown);
    const bool begins = !in_range_;
    in_range_ = begins;
    const bool goes_on = begins && to_ != 0;
    counts_ = goes_on || always_counts_;
    const std::uint64_t done = executed(context);
    context.countdown = kNever;
    if (goes_on)
        context.countdown = static_cast<std::int64_t>(to_ - std::min(to_, from_ - 1 - remaining));
    else
        context.countdown -= static_cast<std::int64_t>(done);
    context.countdown_begin = context.countdown + static_cast<std::int64_t>(done);
}

}  // namespace assay::native
