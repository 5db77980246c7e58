/* Asks for effective addresses, as DCPI's sample profiler does. */
#include "assay/vprofiler.h"

#include <stdlib.h>

static trace_vlist_table_t* table;

static const char* name(void) {
    return "values";
}

static int loads(uint16_t opcode, uint32_t flags) {
    return opcode == TRACE_OPCODE(0, 0x8B) && (flags & TRACE_INSTR_LOAD);
}

static trace_vlist_table_t* prof_init(void) {
    trace_vlist_t* list = trace_vlist_alloc();
    table = trace_vlist_table_alloc();
    trace_vlist_table_init(table);
    trace_vlist_init(list);
    trace_add_value_to_vlist(list, TRACE_EFFECTIVE_ADDRESS);
    trace_add_vlist_by_select(table, loads, list);
    free(list);
    return table;
}

static void release(void) {
    free(table);
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_name = name,
    .vp_release = release,
    .vp_prof_init = prof_init,
};
