/* Captures registers of each kind, as assay plugins names them. */
#include "assay/vprofiler.h"

#include <stdlib.h>

static trace_vlist_table_t* table;

static const char* name(void) {
    return "registers";
}

static int is_nop(uint16_t opcode, uint32_t flags) {
    (void)flags;
    return opcode == TRACE_OPCODE(0, 0x90);
}

static trace_vlist_table_t* prof_init(void) {
    static const trace_value_t wanted[] = {TRACE_ST0,      (TRACE_ST0 + 7) | TRACE_BEFORE,
                                           TRACE_GPR0 + 3, TRACE_MASK0 + 1,
                                           TRACE_MMX0 + 2, TRACE_VECTOR0 + 31,
                                           TRACE_LATENCY};
    trace_vlist_t* const list = trace_vlist_alloc();
    table = trace_vlist_table_alloc();
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i)
        trace_add_value_to_vlist(list, wanted[i]);
    trace_add_vlist_by_select(table, is_nop, list);
    trace_capture_references(table, 64, 0);
    trace_capture_code(table, 64);
    free(list);
    return table;
}

static void prof_release(void) {
    free(table);
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = name,
    .vp_prof_init = prof_init,
    .vp_prof_release = prof_release,
};
