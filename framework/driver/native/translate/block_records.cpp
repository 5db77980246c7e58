#include "framework/driver/native/translate/block_records.h"

namespace assay::native {

void BlockRecords::place(Placer& placer, const PlannedBlock& block, unsigned instr) {
    if (instr == block.first) placer.place_before(instr);
}

// Only moves and lea: flags may be live.
void BlockRecords::emit(const Item& item) {
    const auto cursor = static_cast<std::uint8_t>(scratch_.cursor(0, item.position));
    const std::uint32_t site = writer_.new_site(item.instr, 0, TRACE_SITE_BLOCK, 0);
    hot_.with_memory(kStoreConstant, 0, Address{cursor, kNoGpr, 1, 0});
    hot_.u32(0);
    hot_.with_memory(kStoreConstant, 0, Address{cursor, kNoGpr, 1, sizeof(std::uint64_t)});
    hot_.u32(site);
    hot_.prefetch_for_write(Address{cursor, kNoGpr, 1, kPrefetched});
    hot_.lea(cursor, Address{cursor, kNoGpr, 1, kRecordBytes});
}

}  // namespace assay::native
