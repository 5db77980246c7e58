/* The sample value profiler of DCPI's manual, dcpivprofiler(1): the effective addresses of 64-bit
 * loads. Only two kinds of lines differ: those marked "Alpha", which depended on that processor,
 * and those marked "assay". */
#include <assay/vprofiler.h> /* assay: its folder */
#include <stdio.h>
#include <stdlib.h>

#define VSAMPLE_BUFFER_SIZE 1024
static vsample_t vsample_buffer[VSAMPLE_BUFFER_SIZE];

static int select_loads_stores(uint16_t opc, uint32_t flags) /* Alpha: types */
{
    switch (opc) {
        case TRACE_OPCODE(0, 0x8B): /* Alpha: op_ldq, op_ldq_u; here mov r, [m] */
            return (flags & TRACE_INSTR_LOAD) != 0;
    }
    return 0;
}

static trace_vlist_table_t* table;

static trace_vlist_table_t* vp_prof_init(void) {
    trace_vlist_t* vlist;

    table = trace_vlist_table_alloc();
    trace_vlist_table_init(table);
    vlist = trace_vlist_alloc();
    trace_vlist_init(vlist);
    trace_add_value_to_vlist(vlist, TRACE_EFFECTIVE_ADDRESS); /* Alpha: TRACE_REGB */
    trace_add_vlist_by_select(table, select_loads_stores, vlist);

    free(vlist);
    return table;
}

static int vp_prof_process(uint32_t pid, trace_parser_t* parser, const vsample_t** vsamples) {
    int n = 0, nvalues, no_context;
    uint64_t pc, c0, c1, address; /* Alpha: rb */
    uint32_t inst;                /* Alpha: union alpha_instruction */

    (void)pid;
    no_context = (!trace_parser_has_context(parser));
    while ((nvalues = trace_parser_next(parser, &inst, &pc, &c0, &c1, 1, &address)) >= 0) {
        if (nvalues == 1) {
            if (no_context) {
                c0 = c1 = 0;
            }
            vsample_buffer[n].pc = pc;
            vsample_buffer[n].value = address; /* Alpha: rb + displacement */
            vsample_buffer[n].context0 = c0;
            vsample_buffer[n].context1 = c1;
            vsample_buffer[n].event = VP_VALUE; /* assay: a value, seen once */
            vsample_buffer[n].weight = 1;       /* assay */
            n++;
            if (n >= VSAMPLE_BUFFER_SIZE) {
                break;
            }
        }
    }

    *vsamples = vsample_buffer;
    return n;
}

static const char* vp_name(void) {
    return "vp-ldq-addr";
}

static const char* vp_preface(const trace_instr_t* inst) /* Alpha: uint inst */
{
    (void)inst;
    return "addr";
}

static const char* vp_format(const trace_instr_t* inst, uint64_t value) {
    static char buffer[32];

    (void)inst;
    sprintf(buffer, "%lx", value & ((1UL << 48) - 1));
    return buffer;
}

VP_EXPORT const vp_dispatch_t assay_vp_dispatch = {
    /* assay: the table has a size and a version, and more functions */
    .size = sizeof(vp_dispatch_t),
    .abi_version = VP_ABI_VERSION,
    .vp_prof_init = vp_prof_init,
    .vp_prof_process = vp_prof_process,
    .vp_name = vp_name,
    .vp_preface = vp_preface,
    .vp_format = vp_format,
};
