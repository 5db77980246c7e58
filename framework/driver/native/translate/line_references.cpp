#include "framework/driver/native/translate/line_references.h"

namespace assay::native {

void LineReferences::constant(Operands& operands) {
    const Item& item = operands.item;
    operands.a = scratch_.acquire(item.flags_live ? bit(RAX) : GprMask{0}, item.position);
    const std::uint64_t line = line_of(constant_address(operands));
    const std::size_t set = line & static_cast<std::uint64_t>(data_set_mask(spec_.data));
    const std::size_t entry = kTag + set;
    const bool straddles = line_of(static_cast<std::uint64_t>(item.high) - 1) != line;
    const bool rax_free = scratch_.is_free(RAX) && operands.a != RAX;
    const KeptFlags flags(hot_, item.flags_live, rax_free);
    std::uint64_t differs = 0;
    if (straddles) {
        differs = hot_.jump(hot_.address);
    } else {
        hot_.load_address(operands.a, line);
        hot_.with_context(kCompareMemory, operands.a, tag_of(operands) + set);
        differs = hot_.jump_if(kNotEqual, hot_.address);
        constant_hit(operands, entry);
    }
    const std::uint64_t back = hot_.address;
    flags.restore(hot_);
    hot_.patch(differs, cold_.address);
    if (straddles)
        record_each(operands, 1, back);
    else
        constant_miss(operands, entry, back);
}

}  // namespace assay::native
