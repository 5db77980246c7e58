#include "framework/driver/qemu/regions.h"

namespace assay::qemu {

void Regions::initialise(const trace::Spec& spec) {
    has_functions_ = spec.regions.functions[0] != '\0';
    from_ = spec.regions.from_instruction;
    to_ = spec.regions.to_instruction;
    in_range_ = from_ <= 1;
    samples_ = trace::has_bursts(spec.regions);
}

bool Regions::enter(Place& place, const GuestBlock& block, std::size_t calls) {
    if (place.counts) {
        place.executed += block.instr_count;
        const bool is_late = to_ != 0 && place.executed > to_;
        in_range_.store(place.executed >= from_ && !is_late, std::memory_order_relaxed);
    }
    if (block.enters_function && place.entered == Place::kOutside) place.entered = calls;
    return in_range_.load(std::memory_order_relaxed) &&
           (!has_functions_ || place.entered != Place::kOutside);
}

}  // namespace assay::qemu
